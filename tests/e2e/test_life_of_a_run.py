"""What a user does with a run, from `kubectl apply` to its result, on a real cluster with the real image."""

from __future__ import annotations

import time

import pytest

from assay_core.store.client import Store
from assay_operator.resource import run_id_of
from tests.e2e.kubernetes import until
from tests.e2e.tenant import Tenant


@pytest.mark.smoke
def test_applied_run_succeeds_and_leaves_a_discovery(tenant: Tenant) -> None:
    tenant.apply()
    done = tenant.phase("Succeeded")
    tenant.kubernetes.kubectl(
        "wait", "--for=condition=Ready", "discoveryrun/shop", "-n", tenant.namespace, "--timeout=30s"
    )
    status = done["status"]
    store = tenant.beside.store
    result = store.discoveries.get(status["discoveryId"])
    assert result is not None
    assert result.insights
    assert result.run_id == run_id_of(done["metadata"]["uid"]) == status["runId"]
    assert status["progress"]["insights"] == len(result.insights)
    assert status["observedGeneration"] == done["metadata"]["generation"]
    assert status["attempts"][0]["result"] == "completed"
    assert [name for name in tenant.beside.collections.names() if status["runId"] in name] == []


@pytest.mark.built
@pytest.mark.smoke
def test_agent_killed_is_resumed_by_a_raised_nonce_and_repeats_no_query(tenant: Tenant) -> None:
    tenant.apply(slow=True, maxSteps=20)
    tenant.at_step(7)
    tenant.kill_agent()
    failed = tenant.phase("Failed")["status"]
    assert failed["failure"]["resumable"] is True
    assert tenant.condition("Resumable")["status"] == "True"
    kept = tenant.queries()
    assert kept
    tenant.patch({"resumeNonce": 1})
    done = tenant.phase("Succeeded", "Failed", after_attempt=2)["status"]
    assert done["phase"] == "Succeeded", done
    assert done["attempt"] == 2
    assert done["observedResumeNonce"] == 1
    # Each statement has reached the warehouse once, those of the first attempt not again.
    assert tenant.steps_of(attempt=2)[: len(kept)] == kept
    assert tenant.warehouse_saw_once(kept)


def test_lower_nonce_is_ignored(tenant: Tenant) -> None:
    tenant.apply(resumeNonce=5)
    done = tenant.phase("Succeeded")
    assert done["status"]["attempt"] == 1
    tenant.patch({"resumeNonce": 2})
    time.sleep(3)
    assert tenant.run()["status"]["attempt"] == 1


@pytest.mark.smoke
def test_resume_without_a_checkpoint_is_refused_with_its_reason(tenant: Tenant) -> None:
    tenant.apply(project=tenant.project(database="no_such_database"))
    tenant.phase("Failed")
    tenant.patch({"resumeNonce": 1})
    until(lambda: tenant.run()["status"].get("observedResumeNonce") == 1, what="an answer to the resume")
    resumable = tenant.condition("Resumable")
    assert (resumable["status"], resumable["reason"]) == ("False", "NoCheckpoint")
    assert tenant.run()["status"]["attempt"] == 1


@pytest.mark.smoke
def test_cancelled_run_leaves_nothing_and_cannot_be_resumed(tenant: Tenant) -> None:
    tenant.apply(slow=True, maxSteps=60)
    run_id = tenant.at_step(3)
    tenant.patch({"cancel": True})
    tenant.phase("Cancelled")
    until(lambda: tenant.condition("Purged").get("status") == "True", what="the purge")
    store = tenant.beside.store
    assert not store.checkpoints.any_of(run_id)
    assert [name for name in tenant.beside.collections.names() if run_id in name] == []
    until(lambda: not tenant.live_jobs(), what="the end of the Job")
    tenant.patch({"resumeNonce": 1})
    time.sleep(3)
    assert tenant.run()["status"]["phase"] == "Cancelled"
    assert store.discoveries.of_run(run_id) == []


def test_suspended_run_keeps_its_place_and_goes_on(tenant: Tenant) -> None:
    tenant.apply(slow=True, maxSteps=20)
    tenant.at_step(4)
    tenant.patch({"suspend": True})
    suspended = tenant.phase("Suspended")
    assert tenant.condition("Suspended")["status"] == "True"
    assert suspended["status"].get("failure") is None
    until(lambda: not tenant.live_jobs(), what="the end of the Job")
    kept = tenant.queries()
    tenant.patch({"suspend": False})
    done = tenant.phase("Succeeded")["status"]
    assert done["attempt"] == 2
    assert [one["trigger"] for one in done["attempts"]] == ["first", "continue"]
    assert tenant.warehouse_saw_once(kept)


def test_run_that_is_suspended_from_the_start_waits_for_its_word(tenant: Tenant) -> None:
    tenant.apply(suspend=True)
    tenant.phase("Suspended")
    assert tenant.kubernetes.list("jobs", namespace=tenant.namespace) == []
    tenant.patch({"suspend": False})
    tenant.phase("Succeeded")


@pytest.mark.smoke
def test_deleted_run_is_purged_and_gone(tenant: Tenant) -> None:
    tenant.apply(slow=True, maxSteps=60)
    run_id = tenant.at_step(3)
    tenant.kubernetes.delete("discoveryrun", "shop", namespace=tenant.namespace)
    until(
        lambda: tenant.kubernetes.find("discoveryrun", "shop", namespace=tenant.namespace) is None,
        what="the end of the run",
    )
    assert not tenant.beside.store.checkpoints.any_of(run_id)
    assert [name for name in tenant.beside.collections.names() if run_id in name] == []
    document = tenant.beside.store.runs.get(run_id)
    assert document is not None
    assert document.status == "cancelled"


def test_deletion_waits_for_mongodb_and_skip_purge_frees_it(tenant: Tenant) -> None:
    tenant.apply()
    tenant.phase("Succeeded")
    tenant.beside.mongo.cut()
    try:
        tenant.kubernetes.delete("discoveryrun", "shop", namespace=tenant.namespace)
        until(
            lambda: tenant.run()["status"].get("reason") == "StoreUnavailable", what="the reason of the wait"
        )
        assert tenant.condition("Purged")["status"] == "False"
        tenant.kubernetes.kubectl(
            "annotate", "discoveryrun", "shop", "-n", tenant.namespace, "assay.dev/skip-purge=true"
        )
        until(
            lambda: tenant.kubernetes.find("discoveryrun", "shop", namespace=tenant.namespace) is None,
            what="the end of the run",
        )
    finally:
        tenant.beside.mongo.mend()


def test_second_run_of_a_project_waits_for_the_first(tenant: Tenant) -> None:
    project = tenant.project(id="shared", slow=True)
    tenant.apply("one", project=project, maxSteps=8)
    tenant.at_step(1, name="one")
    tenant.apply("two", project=project)
    until(lambda: (tenant.run("two").get("status") or {}).get("reason") == "ProjectBusy", what="its turn")
    assert tenant.run("two")["status"]["phase"] == "Pending"
    tenant.phase("Succeeded", name="one")
    tenant.phase("Succeeded", name="two")


def test_project_that_is_missing_is_said_and_the_run_begins_once_it_is_there(tenant: Tenant) -> None:
    name = f"{tenant.namespace}-shop"
    tenant.kubernetes.apply(
        {
            "apiVersion": "assay.dev/v1alpha1",
            "kind": "DiscoveryRun",
            "metadata": {"name": "shop", "namespace": tenant.namespace},
            "spec": {"projectRef": {"name": name}, "maxSteps": 4},
        }
    )
    until(lambda: (tenant.run().get("status") or {}).get("reason") == "ProjectNotFound", what="the reason")
    assert tenant.condition("Stalled")["status"] == "True"
    tenant.store_project(tenant.beside.store, name, namespace="elsewhere")
    until(lambda: tenant.run()["status"]["reason"] == "ProjectForeign", what="the reason", limit_s=40)
    tenant.store_project(tenant.beside.store, name, namespace=tenant.namespace)
    tenant.phase("Succeeded")


def test_operator_that_was_away_learns_what_happened_meanwhile(tenant: Tenant) -> None:
    tenant.apply(slow=True, maxSteps=10)
    tenant.at_step(1)
    tenant.operator.stop()
    try:
        run_id = run_id_of(tenant.run()["metadata"]["uid"])
        until(lambda: _ended(tenant.beside.store, run_id), what="the end of the agent")
        until(lambda: not tenant.live_jobs(), what="the end of the Job")
    finally:
        tenant.operator.start()
    tenant.phase("Succeeded")
    assert len(tenant.kubernetes.list("jobs", namespace=tenant.namespace)) == 1


def _ended(store: Store, run_id: str) -> bool:
    run = store.runs.get(run_id)
    return run is not None and run.status.is_terminal
