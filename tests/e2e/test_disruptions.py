"""Rows 3, 5 and 8 to 11 of the failure table, done for real: the node, the scheduler or a queue takes the attempt away."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.e2e import control_plane
from tests.e2e.kubernetes import KubectlError, until
from tests.e2e.tenant import Tenant


def running_at(tenant: Tenant, step: int, **spec: Any) -> dict[str, Any]:
    """A slow run that has stored a step; returns its pod."""
    wanted: dict[str, Any] = {"maxSteps": 40, **spec}
    tenant.apply(slow=True, **wanted)
    tenant.at_step(step)
    return the_pod(tenant)


def the_pod(tenant: Tenant) -> dict[str, Any]:
    [pod] = tenant.kubernetes.list("pods", namespace=tenant.namespace, labels="assay.dev/run=shop")
    return pod


def fails_as(tenant: Tenant, class_: str, *reasons: str, limit_s: float = 150) -> dict[str, Any]:
    status: dict[str, Any] = tenant.phase("Failed", limit_s=limit_s)["status"]
    failure = status["failure"]
    assert failure["class"] == class_, failure
    assert failure["reason"] in reasons, failure
    return status


def test_scratch_space_above_its_limit(tenant: Tenant) -> None:
    """Row 8: the agent's own log is its scratch space too."""
    tenant.apply(slow=True, maxSteps=40, podPatch={"resources": {"limits": {"ephemeral-storage": "4Ki"}}})
    fails_as(tenant, "Resource", "EphemeralStorageExceeded")


def test_taint_that_the_pod_does_not_tolerate(tenant: Tenant) -> None:
    """Row 9, DeletionByTaintManager; the operator tolerates it, as a value of the chart says."""
    running_at(tenant, 2)
    node = the_pod(tenant)["spec"]["nodeName"]
    tenant.kubernetes.kubectl("taint", "node", node, "assay-test=out:NoExecute")
    try:
        fails_as(tenant, "Infrastructure", "DeletionByTaintManager")
    finally:
        tenant.kubernetes.kubectl("taint", "node", node, "assay-test=out:NoExecute-")
    assert tenant.condition("Resumable")["status"] == "True"


def test_eviction_as_drain_asks_for_it(tenant: Tenant) -> None:
    """Row 9, EvictionByEvictionAPI, with the retry that was asked for."""
    pod = running_at(tenant, 3, retry={"maxInfraRetries": 1, "backoffSeconds": 1})
    kept = tenant.queries()
    name = pod["metadata"]["name"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": tenant.namespace},
    }
    path = f"/api/v1/namespaces/{tenant.namespace}/pods/{name}/eviction"
    tenant.kubernetes.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(eviction))
    done = tenant.phase("Succeeded", "Failed", after_attempt=2, limit_s=180)["status"]
    assert done["phase"] == "Succeeded", done
    assert done["attempts"][0]["reason"] == "EvictionByEvictionAPI"
    assert tenant.warehouse_saw_once(kept)


def test_preemption_by_a_pod_of_higher_priority(tenant: Tenant) -> None:
    """Row 9, PreemptionByScheduler."""
    pod = running_at(
        tenant, 2, podPatch={"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "2Gi"}}}
    )
    node = tenant.kubernetes.get("node", pod["spec"]["nodeName"], namespace=tenant.namespace)
    room = _bytes(node["status"]["allocatable"]["memory"])
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "assay-test-high"}, "value": 1_000_000}  # fmt: skip
    container = {
        "name": "x",
        "image": "localhost/pause:1",
        "imagePullPolicy": "Never",
        "resources": {"requests": {"memory": str(room - 2**30)}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "runAsUser": 65535,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    rival = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "rival", "namespace": tenant.namespace},
        "spec": {"priorityClassName": "assay-test-high", "containers": [container]},
    }
    tenant.kubernetes.apply(high)
    try:
        tenant.kubernetes.apply(rival)
        fails_as(tenant, "Infrastructure", "PreemptionByScheduler")
    finally:
        tenant.kubernetes.kubectl(
            "delete", "pod", "rival", "-n", tenant.namespace, "--grace-period=0", "--force"
        )
        tenant.kubernetes.kubectl("delete", "priorityclass", "assay-test-high")


def test_node_that_no_longer_suits_the_pod(tenant: Tenant) -> None:
    """Row 10, OutOfcpu: the pod is put onto the node although it cannot hold it."""
    node = tenant.kubernetes.list("nodes", namespace=tenant.namespace)[0]["metadata"]["name"]
    patch = {"resources": {"requests": {"cpu": "900"}}, "nodeSelector": {"kubernetes.io/hostname": node}}
    tenant.apply(podPatch=patch)
    pod = until(lambda: _first_pod(tenant), what="the pod")["metadata"]["name"]
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": tenant.namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = f"/api/v1/namespaces/{tenant.namespace}/pods/{pod}/binding"
    tenant.kubernetes.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(binding))
    fails_as(tenant, "Infrastructure", "OutOfcpu")


@pytest.mark.built
def test_node_that_has_died(tenant: Tenant) -> None:
    """Row 11: nobody on the node ends the pod that is to go, and its agent is silent; the next attempt begins without it."""
    pod = running_at(tenant, 2, retry={"maxInfraRetries": 1, "backoffSeconds": 1})
    with control_plane.stopped("kubelet"):
        tenant.kill_agent(number=signal.SIGSTOP)
        tenant.kubernetes.kubectl(
            "delete", "pod", pod["metadata"]["name"], "-n", tenant.namespace, "--wait=false"
        )
        until(lambda: tenant.run()["status"]["attempt"] == 2, what="the next attempt", limit_s=60 + 30 + 60)
    done = tenant.phase("Succeeded", "Failed", after_attempt=2, limit_s=180)["status"]
    assert done["attempts"][0]["reason"] == "NodeUnreachable"
    assert done["phase"] == "Succeeded", done


def test_deadline_of_the_attempt(tenant: Tenant) -> None:
    """Row 5; the Job's own deadline is shortened, since the smallest one of a spec is longer than a test may be."""
    running_at(tenant, 2)
    tenant.kubernetes.patch(
        "job", "shop-a1", {"spec": {"activeDeadlineSeconds": 1}}, namespace=tenant.namespace
    )
    status = fails_as(tenant, "Limit", "DeadlineExceeded")
    assert status["failure"]["actor"] == "User"
    assert tenant.condition("Resumable")["status"] == "True"


def test_queue_that_takes_the_quota_back_is_no_failure(tenant: Tenant) -> None:
    """Row 3: as Kueue does it, by the Job's `suspend`."""
    tenant.apply(slow=True, maxSteps=10, queueName="team-queue")
    until(tenant.live_jobs, what="the Job")
    job = tenant.kubernetes.get("job", "shop-a1", namespace=tenant.namespace)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-queue"
    admitted(tenant, "shop-a1", yes=False)
    tenant.phase("Queued")
    assert tenant.condition("QuotaReserved")["status"] == "False"
    admitted(tenant, "shop-a1", yes=True)
    tenant.at_step(2)
    kept = tenant.queries()
    admitted(tenant, "shop-a1", yes=False)
    until(lambda: _exists(tenant, "shop-a2"), what="the next attempt's Job", limit_s=30)
    assert tenant.kubernetes.get("job", "shop-a2", namespace=tenant.namespace)["spec"]["suspend"] is True
    admitted(tenant, "shop-a2", yes=True)
    done = tenant.phase("Succeeded", "Failed", after_attempt=2, limit_s=180)["status"]
    assert done["phase"] == "Succeeded", done
    assert done.get("autoRetries", 0) == 0
    assert tenant.warehouse_saw_once(kept)


def test_git_that_takes_each_control_field_back(tenant: Tenant) -> None:
    """As a revert of the commit that set them, applied."""
    as_it_was: dict[str, Any] = {"slow": True, "maxSteps": 10}
    tenant.apply(**as_it_was)
    tenant.at_step(1)
    tenant.apply(**as_it_was, suspend=True, retry={"maxInfraRetries": 2}, resumeNonce=3)
    tenant.phase("Suspended")
    tenant.apply(**as_it_was)
    done = tenant.phase("Succeeded", limit_s=180)["status"]
    assert [one["trigger"] for one in done["attempts"]] == ["first", "continue"]


def test_git_that_takes_a_cancel_back_is_refused_with_its_reason(tenant: Tenant) -> None:
    tenant.apply(slow=True, maxSteps=40)
    tenant.at_step(1)
    tenant.apply(slow=True, maxSteps=40, cancel=True)
    tenant.phase("Cancelled")
    with pytest.raises(KubectlError, match="cancel cannot be taken back"):
        tenant.apply(slow=True, maxSteps=40)


def admitted(tenant: Tenant, job: str, *, yes: bool) -> None:
    tenant.kubernetes.patch("job", job, {"spec": {"suspend": not yes}}, namespace=tenant.namespace)


def _exists(tenant: Tenant, job: str) -> bool:
    return tenant.kubernetes.find("job", job, namespace=tenant.namespace) is not None


def _first_pod(tenant: Tenant) -> dict[str, Any] | None:
    found = tenant.kubernetes.list("pods", namespace=tenant.namespace, labels="assay.dev/run=shop")
    return found[0] if found else None


def _bytes(text: str) -> int:
    return int(text.removesuffix("Ki")) * 1024 if text.endswith("Ki") else int(text)
