"""One look at one run: observe, decide, apply, and one status write. Called by the workers for every key of the queue."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from assay_core import clock, log
from assay_core.errors import AssayError, ConfigError
from assay_operator import metrics
from assay_operator.apply import Applied, Applier
from assay_operator.cache import Cache, RunKey
from assay_operator.cluster import Cluster, Conflict, Gone
from assay_operator.conditions import iso
from assay_operator.decide import Decision, Hold, Observed, Release, Settled, decide, pending
from assay_operator.kept import Body
from assay_operator.notices import event_of, notices
from assay_operator.observe import Observer
from assay_operator.resource import Object
from assay_operator.seen import job_seen
from assay_operator.status import status_of

PENDING_AGAIN_S = 10.0
"""Seconds until an attempt that has not begun is looked at again: what holds it up shows by time alone."""
RUNNING_AGAIN_S = 60.0
_logger = log.logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """The three parts, and where the status is written."""

    cache: Cache
    cluster: Cluster
    observer: Observer
    applier: Applier

    def reconcile(self, key: RunKey) -> float | None:
        """Do the one next thing for a run. Returns the seconds until it wants to be looked at again; None for not by itself."""
        body = self.cache.run(key)
        if body is None:
            return None
        try:
            run = Object.read(body)
        except ConfigError as error:
            _logger.error("a run cannot be read", run="/".join(key), error=str(error))
            return None
        started = time.perf_counter()
        with log.bound(namespace=run.namespace, run=run.name):
            seen = self.observer.observe(run)
            decision = decide(seen)
            applied = self.applier.apply(run, seen.run, decision)
            if not isinstance(decision, Hold | Settled):
                _logger.info("decided", decision=str(decision))
            if applied.launched is not None:
                # The status of the new attempt at once, instead of at the next look.
                document, going = applied.launched
                seen = replace(seen, run=document, finding=going, queued=going.phase == "Queued", pod=None)
            self._write_status(body, run, seen, decision, applied)
        metrics.RECONCILE_SECONDS.observe(time.perf_counter() - started)
        return 0.0 if applied.again else _again_s(seen, decision)

    def _write_status(
        self, body: Body, run: Object, seen: Observed, decision: Decision, applied: Applied
    ) -> None:
        if isinstance(decision, Release) and len(run.finalizers) <= 1:
            return  # it is gone with its last finalizer
        status: dict[str, Any] = {**status_of(run, seen, decision), **applied.status}
        if status == body.get("status"):
            return
        current = self.cache.run(run.key)  # a finalizer may have been written meanwhile
        if current is None:
            return
        try:
            self.cache.saw_run(self.cluster.write_status(current, status))
            self._tell(run, status)
            self._measure(run, seen, status)
        except (Conflict, Gone):
            _logger.debug("status not written: a newer version is on its way")

    def _measure(self, run: Object, seen: Observed, status: dict[str, Any]) -> None:
        jobs = [job_seen(body, owner_uid=run.uid) for body in self.cache.jobs(run.uid)]
        ends = [end.since for job in jobs if (end := job.complete or job.failed) and end.since]
        metrics.told(run.namespace, run.status, status, job_over=max(ends, default=None), now=seen.now)

    def _tell(self, run: Object, status: dict[str, Any]) -> None:
        """Events are for people: one that cannot be written is not worth another try."""
        try:
            for notice in notices(run, status):
                event = event_of(run, int(status.get("attempt") or 0), notice, at=str(iso(clock.now())))
                self.cluster.create_event(run.namespace, event)
        except AssayError as error:
            _logger.warning("event not written", error=str(error))


def _again_s(seen: Observed, decision: Decision) -> float | None:
    match decision:
        case Settled(again_s=again_s):
            return again_s
        case Hold(again_s=again_s) if again_s is not None:
            return again_s
        case Hold(reason="AttemptRunning"):
            return PENDING_AGAIN_S if pending(seen.finding) else RUNNING_AGAIN_S
        case _:
            return PENDING_AGAIN_S
