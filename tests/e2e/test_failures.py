"""Rows of the failure table, done for real: what is seen in the run when its attempt cannot begin or ends badly."""

from __future__ import annotations

import time

import pytest

from tests.e2e.kubernetes import until
from tests.e2e.services import MODEL_KEY
from tests.e2e.tenant import Tenant
from tests.integration.postgres import PASSWORD


def stalled(tenant: Tenant, reason: str, *, limit_s: float = 60) -> None:
    """The run says so, and that somebody must act."""
    until(lambda: tenant.run().get("status", {}).get("reason") == reason, what=reason, limit_s=limit_s)
    assert tenant.condition("Stalled")["status"] == "True"
    assert tenant.condition("Ready")["status"] == "False"


def test_image_that_is_not_there_is_said_within_seconds(tenant: Tenant) -> None:
    tenant.apply(image="localhost/no-such-image:1")
    stalled(tenant, "ErrImageNeverPull", limit_s=30)
    assert tenant.run()["status"]["failure"]["actor"] == "User"


def test_secret_that_is_missing_is_said_and_the_run_begins_once_it_is_there(tenant: Tenant) -> None:
    tenant.apply(secretRefs=[{"name": "later", "env": True}])
    stalled(tenant, "SecretOrConfigMissing", limit_s=90)
    assert "later" in tenant.run()["status"]["message"]
    tenant.kubernetes.kubectl(
        "create", "secret", "generic", "later", "-n", tenant.namespace, "--from-literal=A=b"
    )
    tenant.phase("Succeeded")


def test_request_no_node_can_hold_is_told_in_the_scheduler_s_words(tenant: Tenant) -> None:
    tenant.apply(podPatch={"resources": {"requests": {"cpu": "900"}}})
    until(lambda: tenant.condition("Scheduled").get("status") == "False", what="the scheduler's word")
    assert "Insufficient cpu" in tenant.condition("Scheduled")["message"]
    assert tenant.run()["status"]["phase"] == "Starting"


def test_quota_is_said_and_the_run_begins_once_there_is_room(tenant: Tenant) -> None:
    tenant.kubernetes.kubectl("create", "quota", "none", "-n", tenant.namespace, "--hard=pods=0")
    tenant.apply()
    stalled(tenant, "QuotaExceeded", limit_s=90)
    assert tenant.run()["status"]["failure"]["actor"] == "Platform"
    tenant.kubernetes.kubectl("delete", "quota", "none", "-n", tenant.namespace)
    tenant.phase("Succeeded", limit_s=180)


def test_attempt_out_of_memory_is_a_matter_of_resources(tenant: Tenant) -> None:
    tenant.apply(podPatch={"resources": {"limits": {"memory": "48Mi"}}})
    status = tenant.phase("Failed")["status"]
    assert (status["failure"]["class"], status["failure"]["reason"]) == ("Resource", "OOMKilled")


def test_model_that_is_not_there_is_told_with_its_setting(tenant: Tenant) -> None:
    project = tenant.project()
    project["llm"] = {**project["llm"], "provider": "no-such-provider"}
    tenant.apply(project=project)
    status = tenant.phase("Failed")["status"]
    assert (status["failure"]["class"], status["failure"]["exitCode"]) == ("Config", 10)
    assert "no-such-provider" in status["message"]


def test_inline_project_with_a_misspelt_key_is_told_before_any_job(tenant: Tenant) -> None:
    tenant.apply(project={**tenant.project(), "datasorces": []})
    stalled(tenant, "ProjectInvalid")
    assert "datasorces" in tenant.run()["status"]["message"]
    assert tenant.kubernetes.list("jobs", namespace=tenant.namespace) == []


def test_job_name_that_a_stranger_has_taken_is_a_conflict(tenant: Tenant) -> None:
    stranger = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "shop-a1", "namespace": tenant.namespace},
        "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}}},
    }  # fmt: skip
    tenant.kubernetes.apply(stranger)
    tenant.apply()
    status = tenant.phase("Failed")["status"]
    assert status["reason"] == "NameConflict"
    assert tenant.kubernetes.get("job", "shop-a1", namespace=tenant.namespace)["spec"]["suspend"] is True


@pytest.mark.parametrize("kind", ["job", "pod"])
def test_what_somebody_deletes_by_hand_is_told_as_that(tenant: Tenant, kind: str) -> None:
    tenant.apply(slow=True, maxSteps=30)
    tenant.at_step(2)
    labels = "assay.dev/run=shop"
    [found] = tenant.kubernetes.list(kind + "s", namespace=tenant.namespace, labels=labels)
    tenant.kubernetes.delete(kind, found["metadata"]["name"], namespace=tenant.namespace)
    status = tenant.phase("Failed")["status"]
    assert status["failure"]["reason"] in (f"{kind.title()}DeletedExternally",), status["failure"]
    assert status["failure"]["class"] == "Infrastructure"
    assert tenant.condition("Resumable")["status"] == "True"


def test_retry_that_was_asked_for_follows_a_lost_pod_and_goes_on_where_it_was(tenant: Tenant) -> None:
    tenant.apply(slow=True, maxSteps=12, retry={"maxInfraRetries": 1, "backoffSeconds": 1})
    tenant.at_step(4)
    [pod] = tenant.kubernetes.list("pods", namespace=tenant.namespace)
    kept = tenant.queries()
    tenant.kubernetes.delete("pod", pod["metadata"]["name"], namespace=tenant.namespace)
    done = tenant.phase("Succeeded", "Failed", after_attempt=2, limit_s=180)["status"]
    assert done["phase"] == "Succeeded", done
    assert done["autoRetries"] == 1
    assert tenant.warehouse_saw_once(kept)


def test_no_secret_value_stands_anywhere_but_in_its_secret(tenant: Tenant) -> None:
    tenant.apply()
    tenant.phase("Succeeded")
    time.sleep(1)
    kinds = "discoveryruns,jobs,pods,events,configmaps"
    seen = tenant.kubernetes.kubectl("get", kinds, "-n", tenant.namespace, "-o", "yaml")
    for pod in tenant.kubernetes.list("pods", namespace=tenant.namespace):
        seen += tenant.kubernetes.kubectl("logs", pod["metadata"]["name"], "-n", tenant.namespace)
    seen += tenant.operator.logs()
    assert "assay-agent" in seen
    for value in (MODEL_KEY, PASSWORD, tenant.beside.mongo_uri):
        assert value not in seen


def test_agent_pod_has_no_token_of_the_api_and_runs_restricted(tenant: Tenant) -> None:
    tenant.apply()
    tenant.phase("Succeeded")
    [pod] = tenant.kubernetes.list("pods", namespace=tenant.namespace)
    mounts = [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]
    assert mounts == ["/tmp"]
    namespace = tenant.kubernetes.get("namespace", tenant.namespace, namespace=tenant.namespace)
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
