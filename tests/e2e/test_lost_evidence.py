"""Rows of the failure table where nobody says why: the record, the pod, the node or the controller is not there to tell."""

from __future__ import annotations

import time

import pytest
from qdrant_client import QdrantClient, models

from assay_core.model.run import RunStatus
from assay_core.store import names as collections_of_mongo
from assay_core.vectors import names
from assay_operator.resource import run_id_of
from tests.e2e import control_plane
from tests.e2e.kubernetes import until
from tests.e2e.tenant import Tenant
from tests.e2e.test_disruptions import fails_as, running_at, the_pod


def test_agent_that_ended_well_and_left_no_record(tenant: Tenant) -> None:
    """Row 7: its record and its last word are lost in the store before the operator has seen them."""
    running_at(tenant, 1, maxSteps=4)
    run_id = tenant.run_id()
    database = tenant.beside.store.database
    tenant.operator.stop()
    try:
        until(lambda: not tenant.live_jobs(), what="the end of the Job")
        database[collections_of_mongo.OUTCOMES].delete_many({"run_id": run_id})
        database[collections_of_mongo.RUNS].update_one(
            {"_id": run_id}, {"$set": {"status": RunStatus.RUNNING.value}, "$unset": {"completed_at": ""}}
        )
    finally:
        tenant.operator.start()
    fails_as(tenant, "Agent", "CompletedWithoutResult")


@pytest.mark.built
def test_killed_agent_with_a_memory_limit_was_most_likely_out_of_memory(tenant: Tenant) -> None:
    """Row 14."""
    running_at(tenant, 1)
    tenant.kill_agent()
    status = fails_as(tenant, "Resource", "ProbablyOOMKilled")
    assert status["failure"]["exitCode"] == 137


def test_pod_that_went_while_no_operator_looked(tenant: Tenant) -> None:
    """Row 18."""
    pod = running_at(tenant, 2)
    tenant.operator.stop()
    try:
        tenant.kubernetes.kubectl(
            "delete", "pod", pod["metadata"]["name"], "-n", tenant.namespace, "--grace-period=0", "--force"
        )
        until(lambda: not tenant.live_jobs(), what="the end of the Job")
    finally:
        tenant.operator.start()
    status = tenant.phase("Failed")["status"]
    # The agent is told to stop by whoever removes it, and may have had the time to say so.
    assert status["failure"]["reason"] in ("PodEvidenceLost", "PodDeletedExternally"), status["failure"]
    assert tenant.condition("Resumable")["status"] == "True"


def test_service_account_that_is_not_there(tenant: Tenant) -> None:
    """Row 23."""
    tenant.apply(serviceAccountName="nobody")
    until(
        lambda: (tenant.run().get("status") or {}).get("reason") == "PodRejected",
        what="the reason",
        limit_s=90,
    )
    assert "nobody" in tenant.run()["status"]["message"]
    assert tenant.condition("Stalled")["status"] == "True"
    tenant.kubernetes.kubectl("create", "serviceaccount", "nobody", "-n", tenant.namespace)
    tenant.phase("Succeeded", limit_s=180)


@pytest.mark.built
def test_job_controller_that_stands_still(tenant: Tenant) -> None:
    """Row 25."""
    with control_plane.stopped("kube-controller-manager"):
        tenant.apply()
        until(
            lambda: (tenant.run().get("status") or {}).get("reason") == "JobControllerLag",
            what="the reason",
            limit_s=120,
        )
        assert tenant.run()["status"]["failure"]["actor"] == "Platform"
    tenant.phase("Succeeded", limit_s=180)


@pytest.mark.built
def test_node_that_is_deleted(tenant: Tenant) -> None:
    """Row 9, DeletionByPodGC; the kubelet registers its node again only on a fresh start."""
    pod = running_at(tenant, 2, maxSteps=60)
    node = pod["spec"]["nodeName"]
    tenant.kubernetes.kubectl("delete", "node", node)
    try:
        until(
            lambda: (
                not tenant.kubernetes.list("pods", namespace=tenant.namespace)
                or the_pod(tenant)["status"]["phase"] == "Failed"
            ),
            what="the pod garbage collector",
            limit_s=180,
        )
    finally:
        control_plane.restart("kubelet")
        until(lambda: _is_ready(tenant, node), what="the node", limit_s=90)
        tenant.operator.ready()
    fails_as(tenant, "Infrastructure", "DeletionByPodGC")
    assert tenant.condition("Resumable")["status"] == "True"


def test_vectors_of_a_dead_run_go_and_those_of_a_resumable_one_stay(tenant: Tenant) -> None:
    """The orphan sweep, which an operator also makes as it starts."""
    tenant.apply("dead", slow=True, maxSteps=40)
    tenant.at_step(2, name="dead")
    tenant.patch({"cancel": True}, name="dead")
    until(lambda: tenant.condition("Purged", name="dead").get("status") == "True", what="the purge")
    tenant.apply("kept", slow=True, maxSteps=40)
    tenant.at_step(2, name="kept")
    [pod] = tenant.kubernetes.list("pods", namespace=tenant.namespace, labels="assay.dev/run=kept")
    tenant.kubernetes.delete("pod", pod["metadata"]["name"], namespace=tenant.namespace)
    tenant.phase("Failed", name="kept")
    client = QdrantClient(url=tenant.beside.qdrant, check_compatibility=False)
    try:
        of = {name: names.run(run_id_of(tenant.run(name)["metadata"]["uid"])) for name in ("dead", "kept")}
        for name in of.values():
            if name not in tenant.beside.collections.names():
                client.create_collection(
                    name, vectors_config=models.VectorParams(size=4, distance=models.Distance.COSINE)
                )
        tenant.operator.replace_pods()
        tenant.operator.ready()
        until(lambda: of["dead"] not in tenant.beside.collections.names(), what="the sweep")
        time.sleep(2)
        assert of["kept"] in tenant.beside.collections.names()
    finally:
        client.close()


def _is_ready(tenant: Tenant, node: str) -> bool:
    found = tenant.kubernetes.find("node", node, namespace=tenant.namespace)
    conditions = (found or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
