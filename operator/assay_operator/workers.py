"""The threads of the operator: workers that take keys from the queue, and the sweep that puts them there by time.

Both outlive any single failure: what goes wrong with one run is logged, counted, and tried again.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import datetime

from assay_core import log
from assay_core.errors import AssayError, ConfigError
from assay_core.store.client import Store
from assay_operator import metrics
from assay_operator.cache import Cache, RunKey
from assay_operator.orphans import OrphanSweep
from assay_operator.reconcile import Reconciler
from assay_operator.resource import Phase, run_id_of
from assay_operator.workqueue import WorkQueue

_WAIT_S = 1.0
_AT_ONCE = 100
"""Run documents that one query of the sweep asks for; the embedded store's time for one grows with their square."""
_STILL = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED, Phase.SUSPENDED})
_logger = log.logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """`count` threads over one queue."""

    queue: WorkQueue[RunKey]
    reconciler: Reconciler
    count: int
    stopping: threading.Event

    def start(self) -> None:
        for number in range(self.count):
            threading.Thread(target=self._work, name=f"reconcile-{number}", daemon=True).start()

    def _work(self) -> None:
        while not self.stopping.is_set():
            key = self.queue.get(timeout_s=_WAIT_S)
            if key is not None:
                self._one(key)

    def _one(self, key: RunKey) -> None:
        try:
            again_s = self.reconciler.reconcile(key)
        except AssayError as error:
            metrics.RECONCILE_ERRORS.labels(kind=type(error).__name__).inc()
            _logger.warning("reconcile failed", run="/".join(key), error=str(error))
            self.queue.done(key, failed=True)
        except Exception:
            metrics.RECONCILE_ERRORS.labels(kind="Bug").inc()
            _logger.exception("reconcile failed", run="/".join(key))
            self.queue.done(key, failed=True)
        else:
            if again_s == 0:
                self.queue.add(key)
            self.queue.done(key, again_s=again_s or None)


@dataclass(slots=True, kw_only=True)
class Sweep:
    """Every `interval_s`: runs whose document has changed are looked at, with one query for all of them."""

    queue: WorkQueue[RunKey]
    cache: Cache
    store: Store
    interval_s: float
    stopping: threading.Event
    checkpoint_retention_s: float
    orphans: OrphanSweep
    orphan_interval_s: float
    _stamps: dict[str, datetime] = field(default_factory=dict)
    _indexed: bool = False
    _orphans_due: float = 0.0

    def start(self) -> None:
        threading.Thread(target=self._run, name="sweep", daemon=True).start()

    def _run(self) -> None:
        while not self.stopping.wait(self.interval_s):
            try:
                self.once()
            except ConfigError as error:
                _logger.error("sweep failed", error=str(error))
            except AssayError as error:
                _logger.warning("sweep failed", error=str(error))
            except Exception:
                _logger.exception("sweep failed")

    def once(self) -> None:
        """One turn."""
        self.cache.prune()
        metrics.QUEUE_DEPTH.set(self.queue.depth())
        metrics.QUEUE_OLDEST_SECONDS.set(self.queue.oldest_s())
        if not self._indexed:
            self.store.ensure_indexes(checkpoint_retention_s=self.checkpoint_retention_s, rebuild=True)
            self._indexed = True
        moving = self._moving()
        ids = list(moving)
        for start in range(0, len(ids), _AT_ONCE):
            found = self.store.runs.stamps(ids[start : start + _AT_ONCE])
            for run_id, stamp in found.items():
                if self._stamps.get(run_id) != stamp:
                    self._stamps[run_id] = stamp
                    self.queue.add(moving[run_id])
        if time.monotonic() >= self._orphans_due:
            self._orphans_due = time.monotonic() + self.orphan_interval_s
            self.orphans.once(self._living())
        self._stamps = {run_id: stamp for run_id, stamp in self._stamps.items() if run_id in moving}

    def _living(self) -> set[str]:
        return {uid for _, uid, _ in self.cache.states()}

    def _moving(self) -> dict[str, RunKey]:
        """Runs that have begun and not come to rest, by their id; and the phases, counted."""
        moving: dict[str, RunKey] = {}
        counts: dict[tuple[str, str], int] = {}
        for key, uid, said in self.cache.states():
            phase = said or Phase.PENDING.value
            counts[key[0], phase] = counts.get((key[0], phase), 0) + 1
            if phase not in _STILL:
                moving[run_id_of(uid)] = key
        metrics.RUNS.clear()
        for (namespace, phase), count in counts.items():
            metrics.RUNS.labels(namespace=namespace, phase=phase).set(count)
        return moving
