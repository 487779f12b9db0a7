"""What the operator says of itself to Prometheus. Labels name namespaces and classes, never a run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

RUNS = Gauge("assay_runs", "Runs by phase.", ["namespace", "phase"])
RECONCILE_SECONDS = Histogram(
    "assay_reconcile_seconds",
    "Seconds of one reconcile.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30),
)
RECONCILE_ERRORS = Counter(
    "assay_reconcile_errors_total", "Reconciles that failed and are tried again.", ["kind"]
)
QUEUE_DEPTH = Gauge("assay_queue_depth", "Keys that wait for a worker.")
QUEUE_OLDEST_SECONDS = Gauge("assay_queue_oldest_seconds", "Seconds the first waiting key has waited.")
WATCH_AGE_SECONDS = Gauge(
    "assay_watch_last_event_age_seconds", "Seconds since the watch last said something.", ["resource"]
)
API_REQUESTS = Counter("assay_api_requests_total", "Requests to the Kubernetes API.", ["verb", "code"])
OUTCOMES = Counter(
    "assay_run_outcomes_total", "Attempts that ended, by class and reason.", ["namespace", "class_", "reason"]
)
ATTEMPTS = Counter("assay_attempts_total", "Attempts begun, by what began them.", ["namespace", "trigger"])
_LATENCY_S = (0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300)
JOB_CREATED_SECONDS = Histogram(
    "assay_create_to_job_seconds", "From a run's creation to its first Job.", buckets=_LATENCY_S
)
JOB_TOLD_SECONDS = Histogram(
    "assay_job_end_to_status_seconds", "From a Job's end to the status that tells it.", buckets=_LATENCY_S
)
ORPHANS_REMOVED = Counter("assay_orphans_removed_total", "What the orphan sweep removed.", ["kind"])
ORPHAN_COLLECTIONS = Gauge(
    "assay_orphan_collections", "Run collections that no run document explains; never dropped."
)


def told(
    namespace: str,
    before: Mapping[str, Any],
    status: Mapping[str, Any],
    *,
    job_over: datetime | None,
    now: datetime,
) -> None:
    """Count what a new status tells that the one before did not: attempts that began, and such that ended.

    `job_over` is when the Job of the present attempt ended, where it did.
    """
    known = {one["attempt"]: one for one in before.get("attempts") or ()}
    for one in status.get("attempts") or ():
        old = known.get(one["attempt"], {})
        if not old:
            ATTEMPTS.labels(namespace=namespace, trigger=one.get("trigger", "first")).inc()
        if "endTime" in one and "endTime" not in old:
            failure = status.get("failure") or {}
            OUTCOMES.labels(
                namespace=namespace,
                class_=failure.get("class") or one.get("result", ""),
                reason=failure.get("reason") or one.get("result", ""),
            ).inc()
            if job_over is not None:
                JOB_TOLD_SECONDS.observe(max(0.0, (now - job_over).total_seconds()))
