"""What is left over from runs that will not go on: their vector collections, their checkpoints, and runs whose object is gone.

Called by the sweep every few minutes. It touches only what this cluster's own runs have made: MongoDB and Qdrant may be shared by
clusters, tenants and people. A collection that no run explains is counted and left alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from assay_core import log
from assay_core.model.run import DiscoveryRun, RunStatus
from assay_core.resume import replayable
from assay_core.store.client import Store
from assay_core.vectors import names
from assay_core.vectors.collections import Collections
from assay_operator import metrics

_logger = log.logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one sweep removed, and the run collections nobody explains."""

    collections: int = 0
    rows: int = 0
    cancelled: int = 0
    unexplained: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanSweep:
    """`cluster_id` and, where the operator sees one namespace only, `namespace` say whose runs are ours."""

    store: Store
    collections: Collections | None
    cluster_id: str
    namespace: str | None

    def once(self, living: Collection[str]) -> Swept:
        """One sweep; `living` are the uids of the objects that exist. Raises what the stores raise."""
        cancelled = self._without_object(living)
        dropped, unexplained = self._collections()
        rows = sum(
            self.store.checkpoints.purge(run.id)
            for run in self.store.runs.cancelled_by_origin(self.cluster_id)
            if self._ours(run) and self.store.checkpoints.any_of(run.id)
        )
        swept = Swept(collections=dropped, rows=rows, cancelled=cancelled, unexplained=unexplained)
        metrics.ORPHAN_COLLECTIONS.set(unexplained)
        for kind, count in (("collection", dropped), ("row", rows), ("run", cancelled)):
            metrics.ORPHANS_REMOVED.labels(kind=kind).inc(count)
        if dropped or rows or cancelled:
            _logger.info("orphans removed", collections=dropped, rows=rows, runs=cancelled)
        return swept

    def _without_object(self, living: Collection[str]) -> int:
        """Active runs whose object is gone: nobody can ask for their end any more."""
        count = 0
        for run in self.store.runs.active():
            if self._ours(run) and run.origin is not None and run.origin.uid not in living:
                count += self.store.runs.request_cancel(run.id, reason="its DiscoveryRun is gone")
        return count

    def _collections(self) -> tuple[int, int]:
        if self.collections is None:
            return 0, 0
        dropped = unexplained = 0
        for name in self.collections.names():
            run_id = names.run_of(name)
            if run_id is None:
                continue
            run = self.store.runs.get(run_id)
            if run is None:
                unexplained += 1
            elif self._ours(run) and not self._goes_on(run):
                self.collections.drop(name)
                dropped += 1
        return dropped, unexplained

    def _goes_on(self, run: DiscoveryRun) -> bool:
        """Active, or failed with a prefix that can be replayed; rows alone are not enough."""
        if not run.status.is_terminal:
            return True
        return run.status is RunStatus.FAILED and bool(replayable(self.store.checkpoints.marks(run.id)))

    def _ours(self, run: DiscoveryRun) -> bool:
        origin = run.origin
        return (
            origin is not None
            and origin.cluster == self.cluster_id
            and (self.namespace is None or origin.namespace == self.namespace)
        )
