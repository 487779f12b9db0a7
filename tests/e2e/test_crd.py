"""What the API server itself refuses and lets through: every rule of the CRD, and every sample for users."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from tests.e2e.conftest import SYSTEM
from tests.e2e.kubernetes import KubectlError, Kubernetes

SAMPLES = sorted((Path(__file__).parents[2] / "docs" / "samples").glob("*.yaml"))
OLDER = sorted((Path(__file__).parent / "older_samples").glob("*/*.yaml"))
"""As the documentation of earlier versions had them; they are never edited."""
FULL: dict[str, Any] = {
    "projectRef": {"name": "p"},
    "areas": ["trends"],
    "maxSteps": 50,
    "minSteps": 5,
    "effort": "low",
    "image": "a:1",
    "profile": "small",
    "podPatch": {"nodeSelector": {"a": "b"}},
    "serviceAccountName": "sa",
    "imagePullSecrets": ["one"],
    "secretRefs": [{"name": "one"}],
    "budget": {"maxTokens": 1000, "maxCostUSD": 1, "maxBytesScanned": 1000, "maxRows": 1000, "maxDurationSeconds": 100},
    "activeDeadlineSeconds": 2000,
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def nobody_observes(kubernetes: Kubernetes) -> Iterator[None]:
    """An operator that other tests have installed is away meanwhile."""
    there = kubernetes.find("deployment", "assay", namespace=SYSTEM)
    if there is not None:
        kubernetes.kubectl("scale", "deployment/assay", "-n", SYSTEM, "--replicas=0")
        kubernetes.kubectl("wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=assay-operator", "-n", SYSTEM, "--timeout=60s", timeout_s=70)  # fmt: skip
    yield
    if there is not None:
        kubernetes.kubectl("scale", "deployment/assay", "-n", SYSTEM, "--replicas=1")
        kubernetes.kubectl("rollout", "status", "deployment/assay", "-n", SYSTEM, "--timeout=90s", timeout_s=100)  # fmt: skip


@pytest.fixture
def namespace(kubernetes: Kubernetes) -> Iterator[str]:
    name = f"crd-{uuid4().hex[:8]}"
    kubernetes.kubectl("create", "namespace", name)
    yield name
    kubernetes.kubectl("delete", "namespace", name, "--wait=false")


def a_run(namespace: str, name: str = "shop", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "assay.dev/v1alpha1",
        "kind": "DiscoveryRun",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"projectRef": {"name": "p"}, **spec},
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"project": {"id": "x"}}, "exactly one of projectRef and project is needed"),
        ({"projectRef": None}, "exactly one of projectRef and project is needed"),
        ({"maxSteps": 10, "minSteps": 11}, "minSteps must be at most maxSteps"),
        ({"minSteps": 101}, "minSteps must be at most maxSteps (100 unless set)"),
        ({"activeDeadlineSeconds": 1000}, "at least 900 more than budget.maxDurationSeconds"),
        ({"maxSteps": 0}, "spec.maxSteps"),
        ({"maxSteps": "many"}, "spec.maxSteps"),
        ({"effort": "huge"}, "spec.effort"),
        ({"budget": {"maxCostUSD": 0}}, "spec.budget.maxCostUSD"),
        ({"retry": {"maxInfraRetries": 21}}, "spec.retry.maxInfraRetries"),
        ({"retention": {"onDelete": "Keep"}}, "spec.retention.onDelete"),
        ({"secretRefs": [{}]}, "spec.secretRefs[0].name"),
        ({"areas": ["a"] * 33}, "spec.areas"),
        ({"command": ["sh"]}, 'unknown field "spec.command"'),
        ({"podPatch": {"securityContext": {}}}, 'unknown field "spec.podPatch.securityContext"'),
    ],
)
def test_spec_that_cannot_be_is_refused_with_its_field(
    kubernetes: Kubernetes, namespace: str, change: dict[str, Any], message: str
) -> None:
    body = a_run(namespace)
    body["spec"] = {name: value for name, value in {**body["spec"], **change}.items() if value is not None}
    with pytest.raises(KubectlError) as refused:
        kubernetes.apply(body, server_dry_run=True)
    assert message in str(refused.value)


def test_name_from_which_no_job_name_can_be_made_is_refused(kubernetes: Kubernetes, namespace: str) -> None:
    for name in ("a" * 51, "with.dot"):
        with pytest.raises(KubectlError, match="DNS label of at most 50 characters"):
            kubernetes.apply(a_run(namespace, name), server_dry_run=True)


def test_object_without_a_spec_is_refused(kubernetes: Kubernetes, namespace: str) -> None:
    body = a_run(namespace)
    del body["spec"]
    with pytest.raises(KubectlError, match="spec: Required value"):
        kubernetes.apply(body, server_dry_run=True)


def test_every_frozen_field_is_frozen_and_every_limit_only_rises(
    kubernetes: Kubernetes, namespace: str
) -> None:
    kubernetes.apply(a_run(namespace, **FULL))
    changes: list[tuple[dict[str, Any], str]] = [
        ({"projectRef": {"name": "q"}}, "projectRef is frozen"),
        ({"projectRef": None, "project": {"name": "x"}}, "project is frozen"),
        ({"areas": ["other"]}, "areas is frozen"),
        ({"maxSteps": 51}, "maxSteps is frozen"),
        ({"minSteps": None}, "minSteps is frozen"),
        ({"effort": "high"}, "effort is frozen"),
        ({"image": "a:2"}, "image is frozen"),
        ({"profile": "large"}, "profile is frozen"),
        ({"podPatch": {"nodeSelector": {"a": "c"}}}, "podPatch is frozen"),
        ({"serviceAccountName": "other"}, "serviceAccountName is frozen"),
        ({"imagePullSecrets": []}, "imagePullSecrets is frozen"),
        ({"secretRefs": [{"name": "two"}]}, "secretRefs is frozen"),
        ({"budget": {"maxTokens": 999}}, "maxTokens may only be raised or removed"),
        ({"budget": {"maxCostUSD": 0.5}}, "maxCostUSD may only be raised or removed"),
        ({"budget": {"maxBytesScanned": 1}}, "maxBytesScanned may only be raised or removed"),
        ({"budget": {"maxRows": 1}}, "maxRows may only be raised or removed"),
        ({"budget": {"maxDurationSeconds": 60}}, "maxDurationSeconds may only be raised or removed"),
        ({"activeDeadlineSeconds": 1500}, "activeDeadlineSeconds may only be raised or removed"),
    ]
    for change, message in changes:
        with pytest.raises(KubectlError) as refused:
            kubernetes.patch("discoveryrun", "shop", {"spec": change}, namespace=namespace)
        assert message in str(refused.value), (change, str(refused.value))
    kubernetes.patch(
        "discoveryrun",
        "shop",
        {
            "spec": {
                "budget": {"maxTokens": 2000, "maxRows": None},
                "activeDeadlineSeconds": 3000,
                "suspend": True,
            }
        },
        namespace=namespace,
    )
    kubernetes.patch(
        "discoveryrun", "shop", {"spec": {"budget": None, "activeDeadlineSeconds": None}}, namespace=namespace
    )
    with pytest.raises(KubectlError, match="the run began without one"):
        kubernetes.patch("discoveryrun", "shop", {"spec": {"budget": {"maxTokens": 9}}}, namespace=namespace)


def test_cancel_cannot_be_taken_back_and_a_queue_not_changed_after_the_first_attempt(
    kubernetes: Kubernetes, namespace: str
) -> None:
    kubernetes.apply(a_run(namespace, queueName="one"))
    kubernetes.patch("discoveryrun", "shop", {"spec": {"queueName": "two"}}, namespace=namespace)
    kubernetes.kubectl(
        "patch", "discoveryrun", "shop", "-n", namespace, "--subresource=status", "--type=merge",
        "-p", '{"status": {"attempt": 1}}',
    )  # fmt: skip
    with pytest.raises(KubectlError, match="queueName may change only before the first attempt"):
        kubernetes.patch("discoveryrun", "shop", {"spec": {"queueName": "three"}}, namespace=namespace)
    with pytest.raises(KubectlError, match="priorityClassName may change only before the first attempt"):
        kubernetes.patch("discoveryrun", "shop", {"spec": {"priorityClassName": "p"}}, namespace=namespace)
    kubernetes.patch("discoveryrun", "shop", {"spec": {"cancel": True}}, namespace=namespace)
    with pytest.raises(KubectlError, match="cancel cannot be taken back"):
        kubernetes.patch("discoveryrun", "shop", {"spec": {"cancel": False}}, namespace=namespace)


def test_new_object_has_a_status_that_nobody_has_observed(kubernetes: Kubernetes, namespace: str) -> None:
    kubernetes.apply(a_run(namespace))
    assert kubernetes.get("drun", "shop", namespace=namespace)["status"]["observedGeneration"] == -1
    assert "PHASE" in kubernetes.kubectl("get", "assay", "-n", namespace)
    assert "discoveryrun" not in kubernetes.kubectl("get", "all", "-n", namespace)


@pytest.mark.parametrize("sample", [*SAMPLES, *OLDER], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_sample_for_users_is_accepted(kubernetes: Kubernetes, namespace: str, sample: Path) -> None:
    body = yaml.safe_load(sample.read_text())
    body["metadata"]["namespace"] = namespace
    kubernetes.apply(body)
    assert kubernetes.get("drun", body["metadata"]["name"], namespace=namespace)["spec"]["suspend"] is False
