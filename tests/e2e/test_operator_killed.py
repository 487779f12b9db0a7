"""Whatever befalls the operator: no attempt has two Jobs, and no run is lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from assay_operator.cluster import Cluster
from assay_operator.job import JobSettings
from tests.e2e.conftest import AGENT_IMAGE, PULL, SECRET
from tests.e2e.kubernetes import until
from tests.e2e.mortal import MortalOperator
from tests.e2e.tenant import ENDED, Tenant

BURST = 8
KEY_NAME = "shop"


@contextmanager
def mortal(tenant: Tenant) -> Iterator[MortalOperator]:
    """It serves the tenant's namespace alone, in place of the operator that is installed."""
    cluster, _ = Cluster.of_user(kubeconfig=str(tenant.kubernetes.kubeconfig), context=None)
    cluster.namespace = tenant.namespace
    jobs = JobSettings(
        image=AGENT_IMAGE,
        image_pull_policy=PULL,
        environment_secrets=(SECRET,),
        max_duration_s=3600,
        retention_s=48 * 3600,
        requests={"cpu": "50m", "memory": "128Mi"},
    )
    tenant.operator.stop()
    try:
        yield MortalOperator(
            cluster=cluster, store=tenant.beside.store, collections=tenant.beside.collections, jobs=jobs
        )
    finally:
        tenant.operator.start()


def attempts_have_one_job_each(tenant: Tenant) -> bool:
    return len(set(tenant.attempts())) == len(tenant.attempts())


def is_in(tenant: Tenant, *phases: str) -> bool:
    found = tenant.kubernetes.find("discoveryrun", KEY_NAME, namespace=tenant.namespace)
    return found is not None and (found.get("status") or {}).get("phase") in phases


def test_operator_killed_around_every_write_of_a_run_that_succeeds_after_a_suspend(tenant: Tenant) -> None:
    key = (tenant.namespace, KEY_NAME)
    with mortal(tenant) as operator:
        tenant.apply(slow=True, maxSteps=8)
        operator.serve(key, until=lambda: is_in(tenant, "Running"))
        tenant.at_step(2)
        tenant.patch({"suspend": True})
        operator.serve(key, until=lambda: is_in(tenant, "Suspended") and not tenant.live_jobs())
        kept = tenant.queries()
        tenant.patch({"suspend": False})
        operator.serve(key, until=lambda: is_in(tenant, *ENDED))
        assert is_in(tenant, "Succeeded"), tenant.run()["status"]
        assert {"upsert", "create", "create_job", "set_finalizers", "request_suspend"} <= set(
            operator.deaths.made
        )
        assert tenant.warehouse_saw_once(kept)
        assert attempts_have_one_job_each(tenant)
        tenant.kubernetes.delete("discoveryrun", KEY_NAME, namespace=tenant.namespace)
        operator.serve(key, until=lambda: is_gone(tenant))
        assert operator.deaths.count > 20, operator.deaths


@pytest.mark.built
def test_operator_killed_around_every_write_of_a_run_that_fails_is_resumed_and_cancelled(
    tenant: Tenant,
) -> None:
    key = (tenant.namespace, KEY_NAME)
    with mortal(tenant) as operator:
        tenant.apply(slow=True, maxSteps=40)
        operator.serve(key, until=lambda: is_in(tenant, "Running"))
        run_id = tenant.at_step(2)
        tenant.kill_agent()
        operator.serve(key, until=lambda: is_in(tenant, "Failed"))
        tenant.patch({"resumeNonce": 1})
        operator.serve(key, until=lambda: is_in(tenant, "Running") and tenant.run()["status"]["attempt"] == 2)
        tenant.at_step(4)
        tenant.patch({"cancel": True})
        operator.serve(key, until=lambda: tenant.condition("Purged").get("status") == "True")
        until(lambda: not tenant.live_jobs(), what="the end of the Job")
        assert not tenant.beside.store.checkpoints.any_of(run_id)
        assert {"resume", "request_cancel", "delete_job"} <= set(operator.deaths.made)
        assert attempts_have_one_job_each(tenant)


def is_gone(tenant: Tenant) -> bool:
    return tenant.kubernetes.find("discoveryrun", KEY_NAME, namespace=tenant.namespace) is None


@pytest.mark.built
def test_operator_killed_again_and_again_during_a_burst_loses_no_run(tenant: Tenant) -> None:
    names = burst(tenant)
    for _ in range(4):
        time.sleep(4)
        tenant.operator.signal(signal.SIGKILL)
        # A new pod begins at once; the old one would wait longer after each death.
        tenant.operator.replace_pods()
    tenant.operator.ready()
    each_succeeds_with_one_job(tenant, names)


def test_two_operators_at_once_give_each_run_one_job(tenant: Tenant) -> None:
    tenant.operator.scale(2)
    try:
        until(lambda: tenant.operator.ready_replicas() == 2, what="two operators")
        each_succeeds_with_one_job(tenant, burst(tenant))
    finally:
        tenant.operator.scale(1)
        tenant.operator.ready()


def burst(tenant: Tenant) -> list[str]:
    names = [f"shop-{number}" for number in range(BURST)]
    tenant.kubernetes.apply(*(tenant.manifest(name, maxSteps=2) for name in names))
    return names


def each_succeeds_with_one_job(tenant: Tenant, names: list[str]) -> None:
    for name in names:
        done = tenant.phase("Succeeded", name=name, limit_s=240)["status"]
        assert done["attempt"] == 1, done
    jobs = [
        job["metadata"]["labels"]["assay.dev/run"]
        for job in tenant.kubernetes.list("jobs", namespace=tenant.namespace)
    ]
    assert sorted(jobs) == sorted(names)


@pytest.mark.built
@pytest.mark.parametrize("seconds", [15])
def test_operator_that_stood_still_goes_on(tenant: Tenant, seconds: float) -> None:
    tenant.operator.signal(signal.SIGSTOP)
    try:
        tenant.apply()
        time.sleep(seconds)
        assert not tenant.run().get("status", {}).get("phase")
    finally:
        tenant.operator.signal(signal.SIGCONT)
    tenant.phase("Succeeded")
