"""Before the operator is uninstalled: runs give up its finalizer, since nobody will be there to remove it.

First the operator is scaled to nothing, so that it does not put them back; deletions that it has begun get a while to finish.
Agents that run go on and save their result; a later installation finds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from assay_core import log
from assay_core.errors import AssayError
from assay_operator.cluster import Cluster, Conflict, Gone
from assay_operator.resource import FINALIZER

PATIENCE_S = 60.0
"""Seconds for deletions that have begun, and again for the operator's end."""
_PAUSE_S = 1.0
_TRIES = 5
_logger = log.logger(__name__)


def drain(cluster: Cluster, *, deployment: tuple[str, str] | None, patience_s: float = PATIENCE_S) -> int:
    """Returns how many runs were freed. `deployment` is the operator's namespace and name."""
    _until(lambda: not any(_held(body) and _going(body) for body in cluster.runs()), patience_s)
    if deployment is not None:
        cluster.scale_to_zero(*deployment)
        _until(lambda: cluster.replicas(*deployment) == 0, patience_s)
    freed = 0
    for _ in range(_TRIES):
        held = [body for body in cluster.runs() if _held(body)]
        for body in held:
            left = [name for name in body["metadata"]["finalizers"] if name != FINALIZER]
            try:
                cluster.set_finalizers(body, left)
                freed += 1
            except (Conflict, Gone):
                continue  # it has changed meanwhile: the next turn sees it
        if not held:
            _logger.info("drained", runs=freed)
            return freed
        time.sleep(_PAUSE_S)
    raise AssayError(f"runs kept their finalizer after {_TRIES} tries; is another operator running?")


def _held(body: dict[str, Any]) -> bool:
    return FINALIZER in (body["metadata"].get("finalizers") or ())


def _going(body: dict[str, Any]) -> bool:
    return body["metadata"].get("deletionTimestamp") is not None


def _until(done: Callable[[], bool], limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while not done() and time.monotonic() < end:
        time.sleep(_PAUSE_S)
