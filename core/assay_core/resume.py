"""Whether a failed run can be continued, and on which of its checkpoint rows. Pure.

Read by the agent (which rows to replay), by `store.control` (whether to let a resume through) and by the operator (what to
sweep). The replayable prefix is rows 1..n without a gap in which attempts never fall: what follows a hole answers a step that no
longer exists, and an older attempt's row after a newer one belongs to another exploration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from assay_core.errors import ResumeRefusal
from assay_core.model.run import DiscoveryRun, RunStatus


class StepRow(Protocol):
    """What a checkpoint row must tell to be judged."""

    @property
    def step_number(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def kind(self) -> str: ...


Row = TypeVar("Row", bound=StepRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMark:
    """A checkpoint row without its contents."""

    step_number: int
    attempt: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why a resume is not let through: a reason to branch on, and a sentence to show."""

    reason: ResumeRefusal
    text: str


def replayable(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The longest prefix that a resumed run may stand on."""
    prefix: list[Row] = []
    for row in sorted(rows, key=lambda row: row.step_number):
        follows = row.step_number == len(prefix) + 1
        if row.kind != "step" or not follows or (prefix and row.attempt < prefix[-1].attempt):
            break
        prefix.append(row)
    return tuple(prefix)


def refusal(
    run: DiscoveryRun, rows: Sequence[StepRow], *, summary: bool, active: Sequence[str]
) -> Refused | None:
    """Why this run cannot be resumed now; None where it can.

    `summary` says that the exploration summary is there, `active` names other active runs of the project.
    """
    name = run.id[:8]
    if run.status is RunStatus.CANCELLED:
        return Refused(
            reason=ResumeRefusal.CANCELLED,
            text=f"run {name} was cancelled, which is final; start a new run",
        )
    if run.status is not RunStatus.FAILED:
        return Refused(
            reason=ResumeRefusal.NOT_FAILED,
            text=f"run {name} is {run.status}; only a failed run can be resumed",
        )
    if active:
        return Refused(
            reason=ResumeRefusal.ANOTHER_RUN_ACTIVE,
            text=f"run {active[0][:8]} of the same project is active; wait for it or cancel it",
        )
    if replayable(rows):
        return None
    if rows or summary or run.last_checkpoint_step:
        return Refused(
            reason=ResumeRefusal.EXPIRED,
            text=f"the first steps of run {name} have expired (DISCOVERY_CHECKPOINT_RETENTION); start a new run",
        )
    return Refused(
        reason=ResumeRefusal.NO_CHECKPOINT,
        text=f"run {name} ended before its first step was saved; start a new run",
    )
