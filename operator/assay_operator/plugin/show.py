"""Tables and progress of runs as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from assay_operator.resource import Phase

ENDED = (Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED)
_COLUMNS = ("NAME", "PHASE", "REASON", "ATTEMPT", "STEP", "QUERIES", "INSIGHTS", "AGE")
_BAR = 24
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def table(bodies: Sequence[Mapping[str, Any]], *, now: datetime, namespaces: bool) -> str:
    """One line a run, oldest first."""
    head = [*(["NAMESPACE"] if namespaces else []), *_COLUMNS]
    rows = [head]
    for body in sorted(bodies, key=lambda one: str(one["metadata"].get("creationTimestamp"))):
        metadata, status = body["metadata"], body.get("status") or {}
        progress = status.get("progress") or {}
        phase, reason = str(status.get("phase") or ""), str(status.get("reason") or "")
        rows.append(
            [
                *([str(metadata["namespace"])] if namespaces else []),
                str(metadata["name"]),
                phase or "-",
                reason if reason and reason != phase else "-",
                str(status.get("attempt") or "-"),
                _steps(progress),
                str(progress.get("queries", "-")),
                str(progress.get("insights", "-")),
                age(str(metadata.get("creationTimestamp") or ""), now),
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def progress(body: Mapping[str, Any]) -> str:
    """One line: bar, percent, phase of the work, steps, insights."""
    status = body.get("status") or {}
    done = status.get("progress") or {}
    phase = str(status.get("phase") or "not seen yet")
    if phase != Phase.RUNNING:
        reason = str(status.get("reason") or "")
        return phase + (f": {reason}" if reason and reason != phase else "")
    percent = max(0, min(100, int(done.get("percent") or 0)))
    filled = round(percent / 100 * _BAR)
    return (
        f"[{'#' * filled}{'.' * (_BAR - filled)}] {percent:3d}%  attempt {status.get('attempt', 1)}  "
        f"{done.get('phase', '')}  step {_steps(done)}  {done.get('queries', 0)} queries  {done.get('insights', 0)} insights"
    )


def age(created: str, now: datetime) -> str:
    """Like kubectl: the largest unit, and the next where it tells something."""
    try:
        seconds = int((now - datetime.fromisoformat(created.replace("Z", "+00:00"))).total_seconds())
    except ValueError:
        return "-"
    seconds = max(0, seconds)
    for size, unit in _UNITS:
        if seconds >= size * (2 if size > 1 else 1) or size == 1:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def exit_code(body: Mapping[str, Any]) -> int | None:
    """0 succeeded, 1 failed, 3 cancelled; None while it goes on."""
    phase = (body.get("status") or {}).get("phase")
    return {Phase.SUCCEEDED.value: 0, Phase.FAILED.value: 1, Phase.CANCELLED.value: 3}.get(str(phase))


def _steps(done: Mapping[str, Any]) -> str:
    if "step" not in done:
        return "-"
    return f"{done['step']}/{done['maxSteps']}" if done.get("maxSteps") else str(done["step"])
