"""What the operator says of itself to Prometheus. Labels name namespaces and classes, never a run."""

from __future__ import annotations

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
ORPHANS_REMOVED = Counter("assay_orphans_removed_total", "What the orphan sweep removed.", ["kind"])
ORPHAN_COLLECTIONS = Gauge(
    "assay_orphan_collections", "Run collections that no run document explains; never dropped."
)
