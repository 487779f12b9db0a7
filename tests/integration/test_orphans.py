"""The orphan sweep on real stores: what goes, what stays, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from qdrant_client import QdrantClient, models

from assay_core.errors import ConfigError, TransientError
from assay_core.model.run import DiscoveryRun, RunOrigin, RunStatus
from assay_core.store.client import Store
from assay_core.store.fence import Fence, FencedRun
from assay_core.vectors import names
from assay_core.vectors.collections import Collections
from assay_operator.orphans import OrphanSweep, Swept
from tests.builders import a_checkpoint, a_run
from tests.qdrant_server import serve


@pytest.fixture
def qdrant(tmp_path: Path) -> Iterator[str]:
    with serve(tmp_path / "qdrant") as url:
        yield url


def sweep(store: Store, qdrant: str | None, *, namespace: str | None = None) -> OrphanSweep:
    collections = Collections(qdrant) if qdrant else None
    return OrphanSweep(store=store, collections=collections, cluster_id="here", namespace=namespace)


def a_stored_run(
    store: Store, status: str, *, cluster: str = "here", namespace: str = "team", steps: tuple[int, ...] = ()
) -> DiscoveryRun:
    """A run as the operator makes it, with checkpoints of these steps."""
    origin = RunOrigin(
        cluster=cluster, namespace=namespace, name="r", uid=f"uid-{status}-{cluster}-{namespace}"
    )
    run = a_run(origin=origin)
    store.runs.create(run)
    store.runs.claim(run.id, 1, "pod")
    fenced = FencedRun(store, Fence(run.id, 1, "pod"), retry_s=5)
    for step in steps:
        store.checkpoints.write_step(fenced, a_checkpoint(run.id, step))
    if status == "failed":
        store.runs.fail_unowned(run.id, attempt=1, owner="pod", reason="gone")
    elif status == "cancelled":
        store.runs.request_cancel(run.id)
    return run


def a_collection(qdrant: str, run_id: str) -> str:
    with_vectors = QdrantClient(url=qdrant, check_compatibility=False)
    name = names.run(run_id)
    with_vectors.create_collection(
        name, vectors_config=models.VectorParams(size=4, distance=models.Distance.COSINE)
    )
    with_vectors.close()
    return name


def test_collections_go_with_runs_that_will_not_go_on_and_stay_with_those_that_may(
    store: Store, qdrant: str
) -> None:
    kept = [
        a_collection(qdrant, a_stored_run(store, "running").id),
        a_collection(qdrant, a_stored_run(store, "failed", steps=(1, 2)).id),
        a_collection(qdrant, a_stored_run(store, "cancelled", cluster="elsewhere").id),
        a_collection(qdrant, "nobody-knows-it"),
    ]
    a_collection(qdrant, a_stored_run(store, "cancelled").id)
    a_collection(qdrant, a_stored_run(store, "failed", steps=(2, 3)).id)  # rows, and none to begin from
    swept = sweep(store, qdrant).once({"uid-running-here-team"})
    assert swept == Swept(collections=2, unexplained=1)
    assert Collections(qdrant).names() == sorted(kept)


def test_rows_that_a_dying_agent_wrote_after_the_cancel_go(store: Store) -> None:
    run = a_stored_run(store, "cancelled", steps=(1, 2, 3))
    other = a_stored_run(store, "cancelled", cluster="elsewhere", steps=(1,))
    assert sweep(store, None).once(set()) == Swept(rows=3)
    assert not store.checkpoints.any_of(run.id)
    assert store.checkpoints.any_of(other.id)


def test_active_run_whose_object_is_gone_is_cancelled_in_ones_own_namespace_only(store: Store) -> None:
    mine, living = a_stored_run(store, "running"), a_stored_run(store, "pending")
    others = [
        a_stored_run(store, "running", namespace="other"),
        a_stored_run(store, "running", cluster="elsewhere"),
    ]
    swept = sweep(store, None, namespace="team").once({"uid-pending-here-team"})
    assert swept == Swept(cancelled=1)
    statuses = {run.id: _status(store, run.id) for run in (mine, living, *others)}
    assert statuses.pop(mine.id) is RunStatus.CANCELLED
    assert set(statuses.values()) == {RunStatus.RUNNING}


def _status(store: Store, run_id: str) -> RunStatus:
    found = store.runs.get(run_id)
    assert found is not None
    return found.status


def test_collection_that_is_not_there_is_dropped_without_complaint(qdrant: str) -> None:
    collections = Collections(qdrant)
    name = a_collection(qdrant, "r")
    assert collections.exists(name)
    collections.drop(name)
    collections.drop(name)
    assert not collections.exists(name)


def test_qdrant_that_is_away_and_a_key_it_does_not_take_are_told_apart(tmp_path: Path) -> None:
    with serve(tmp_path / "locked", key="right") as url:
        with pytest.raises(ConfigError, match="QDRANT_API_KEY"):
            Collections(url, api_key="wrong").names()
        assert Collections(url, api_key="right").names() == []
    with pytest.raises(TransientError, match="Qdrant is not reachable"):
        Collections(url).names()
