"""What a person asks of a run: cancel it, or continue it. Used by the command line and by the operator.

Cancelling marks first, so that the fence refuses the agent, and removes the working data after. Resuming is one atomic step on
the attempt that was read; what is checked before it is checked again after it where somebody may have come between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay_core.errors import ConfigError, ResumeRefusal, ResumeRefused
from assay_core.model.run import DiscoveryRun, RunStatus
from assay_core.resume import refusal, replayable
from assay_core.store.client import Store
from assay_core.vectors import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """`before` is the state in which the run was found, `rows` how many checkpoint rows went."""

    before: RunStatus
    rows: int


def cancel_run(
    store: Store, run_id: str, *, drop_vectors: Callable[[str], None], reason: str = "cancelled by request"
) -> Cancelled:
    """Cancel a pending or running run for good: mark it, then remove its checkpoints and its vector collection.

    Asked again of a cancelled run, it removes what a dying agent or a broken-off cancel has left. A run that has ended
    otherwise is a `ConfigError`; a vector store that is gone raises after everything else is done.
    """
    run = _found(store, run_id)
    if run.status in (RunStatus.COMPLETED, RunStatus.FAILED):
        raise ConfigError(_not_active(run))
    if run.status is not RunStatus.CANCELLED and not store.runs.request_cancel(run.id, reason=reason):
        latest = _found(store, run_id)
        if latest.status is not RunStatus.CANCELLED:
            raise ConfigError(_not_active(latest))
    rows = store.checkpoints.purge(run.id)
    drop_vectors(names.run(run.id))
    return Cancelled(before=run.status, rows=rows)


def resume_run(store: Store, run_id: str, *, reason: str = "resumed by request") -> DiscoveryRun:
    """Let a failed run be claimed again, as its next attempt; returns it as it is then. Raises `ResumeRefused`."""
    run = _found(store, run_id)
    marks = store.checkpoints.marks(run.id)
    summary = store.checkpoints.summary(run.id) is not None
    refused = refusal(run, marks, summary=summary, active=_others(store, run))
    if refused is not None:
        raise ResumeRefused(refused.text, reason=refused.reason)
    resumed = store.runs.resume(run.id, attempt=run.attempt, reason=reason)
    if resumed is None:
        raise ResumeRefused(
            f"run {run.id[:8]} was resumed or cancelled by someone else just now",
            reason=ResumeRefusal.LOST_RACE,
        )
    competing = _others(store, run)
    if competing:
        store.runs.stand_down(resumed, before=run)
        raise ResumeRefused(
            f"run {competing[0][:8]} of the same project was started just now; wait for it or cancel it",
            reason=ResumeRefusal.ANOTHER_RUN_ACTIVE,
        )
    store.checkpoints.refresh(run.id, up_to=len(replayable(marks)))
    return resumed


def _found(store: Store, run_id: str) -> DiscoveryRun:
    run = store.runs.get(run_id)
    if run is None:
        raise ConfigError(f"there is no run {run_id}")
    return run


def _others(store: Store, run: DiscoveryRun) -> list[str]:
    return [other.id for other in store.runs.active(project_id=run.project_id) if other.id != run.id]


def _not_active(run: DiscoveryRun) -> str:
    return f"run {run.id[:8]} is {run.status}; only a pending or running run can be cancelled"
