"""The frame around a phase: ownership, deadline, stored name, progress, log keys, timing. Used by the pipeline alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from assay_agent.context import RunContext
from assay_core import log
from assay_core.model.run import PhaseTiming, StoredPhase
from assay_core.store import faults

_logger = log.logger(__name__)

STORED = {
    "context": (StoredPhase.INIT, 5, "1", "Reading what is known about the project"),
    "schema": (StoredPhase.SCHEMA_DISCOVERY, 8, "2", "Reading the schema"),
    "explore": (StoredPhase.EXPLORATION, 10, "3", "Exploring"),
    "analyze": (StoredPhase.ANALYSIS, 65, "4", "Analysing"),
    "recommend": (StoredPhase.RECOMMENDATIONS, 85, "5", "Writing recommendations"),
    "save": (StoredPhase.SAVING, 95, "7", "Saving"),
    "remember": (StoredPhase.SAVING, 96, "6", "Updating the project's memory"),
    "index": (StoredPhase.EMBED_INDEX, 97, "9", "Indexing findings for search"),
}
"""Function name → stored phase, percent at its start, logged number, detail."""

_EXPLORE_FROM, _EXPLORE_TO = 10, 60


def exploring_percent(step: int, max_steps: int) -> int:
    """Progress within exploration: 10 rising to 60."""
    return _EXPLORE_FROM + int((_EXPLORE_TO - _EXPLORE_FROM) * min(step, max_steps) / max(max_steps, 1))


@contextmanager
def phase(ctx: RunContext, name: str, *, detail: str | None = None) -> Iterator[None]:
    """Enter a phase: nothing in it runs unless this attempt still owns the run and has time left."""
    stored, percent, number, text = STORED[name]
    faults.reach(f"before:phase:{name}")
    ctx.check()
    ctx.fenced.mark(set={"phase": stored, "progress": percent, "phase_detail": detail or text})
    ctx.progress.phase(name, percent=percent, detail=detail or text)
    started = time.monotonic()
    with log.bound(phase=name, phase_number=number):
        _logger.info("phase started")
        try:
            yield
        finally:
            duration_ms = int((time.monotonic() - started) * 1000)
            ctx.timings.append(PhaseTiming(phase=name, duration_ms=duration_ms))
            _logger.info("phase ended", duration_ms=duration_ms)
    faults.reach(f"after:phase:{name}")
