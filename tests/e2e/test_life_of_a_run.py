"""A run from `kubectl apply` to its result, on a real cluster with the real image."""

from __future__ import annotations

from assay_operator.resource import run_id_of
from tests.e2e.conftest import Tenant


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
