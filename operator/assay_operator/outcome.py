"""What an attempt has come to: the failure table of `docs/operator.md`, row by row, first match wins. Pure.

`judge` is called on every reconcile of a run whose attempt is not settled. It answers `Over` (the attempt has ended and why),
`Stalled` (it does not get on, and who must act) or `Going`. What a stalled attempt waits for heals by itself once mended;
only at its pending deadline is it ended, with the class it was stalled by.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from assay_core.model.run import RunOutcome, RunStatus
from assay_operator.endings import POD_ENDS, deadline, job_gone
from assay_operator.findings import (
    Evidence,
    Failure,
    FailureClass,
    Finding,
    Going,
    Over,
    Stalled,
    failed,
    fault,
)
from assay_operator.holdups import HOLD_UPS


def judge(seen: Evidence) -> Finding:
    """The first row that matches; `Going` when none does."""
    for row in _ROWS:
        found = row(seen)
        if found is not None:
            return _out_of_patience(seen, found)
    return _out_of_patience(seen, _going(seen))


def _recorded(seen: Evidence) -> Finding | None:
    """Row 0: the run document or a result record of this attempt; whatever Job and pod say. An interruption is neither."""
    if seen.run.status is RunStatus.COMPLETED:
        return Over(row=0, result="Succeeded")
    if seen.run.status is RunStatus.CANCELLED:
        return Over(row=0, result="Cancelled")
    record = next((found for found in seen.records if found.class_ != "Interrupted"), None)
    if record is not None and record.class_ == "Completed":
        return Going(
            phase="Running"
        )  # it is written after the run document, which was read a moment too early
    if record is not None:
        return _of_record(record)
    error = seen.run.error or ""
    if seen.run.status is RunStatus.FAILED and not error.startswith("Interrupted") and not seen.records:
        return _of_error(error)
    return None


def _asked(seen: Evidence) -> Finding | None:
    """Row 1: we asked it to stop, so that is why it did."""
    if seen.stopping is None or not seen.ended:
        return None
    if seen.stopping == "cancel":
        return Over(row=1, result="Cancelled")
    return Over(row=1, result="Suspended")


def _of_record(record: RunOutcome) -> Over:
    """A result record, the agent's or the operator's own verdict, as a finding."""
    match record.class_:
        case "OwnershipLost":
            return Over(row=0, result="Superseded")
        case "Suspended" | "Evicted":
            return Over(row=0, result=record.class_)
        case _:
            return Over(
                row=0,
                result="Failed",
                failure=Failure(
                    class_=FailureClass(record.class_),
                    reason=record.reason,
                    message=record.message,
                    exit_code=record.exit_code,
                ),
            )


def _of_error(error: str) -> Over:
    """A failed run without a record: its error is `Reason: message`, or a sentence."""
    reason, colon, message = error.partition(": ")
    if not (colon and reason.isalnum()):
        reason, message = "Failed", error
    return failed(0, FailureClass.UNKNOWN, reason, message)


def _name_conflict(seen: Evidence) -> Finding | None:
    if seen.job is None or seen.job.ours or seen.job.deleting:
        return None
    text = f"a Job named {seen.job.name} exists and belongs to something else; delete it or rename the run"
    return failed(2, FailureClass.CONFIG, "NameConflict", text)


def _queue(seen: Evidence) -> Finding | None:
    """Row 3: a queue controller holds or took back the Job."""
    if seen.job is None or not (seen.job.suspended and seen.job.queued) or seen.job.over:
        return None
    if not seen.claimed:
        return Going(phase="Queued")
    if seen.pod is not None and not (seen.pod.over or seen.pod.gone):
        return None
    text = "the queue took back the quota of this attempt; the next one waits in the queue"
    return Over(row=3, result="Evicted", failure=fault(FailureClass.INFRASTRUCTURE, "Evicted", text))


def _going(seen: Evidence) -> Going:
    if seen.job is not None and seen.job.suspended:
        return Going(phase="Queued")
    if seen.claimed or (seen.agent is not None and seen.agent.running):
        return Going(phase="Running")
    placed = seen.pod.condition("PodScheduled") if seen.pod else None
    held = placed is not None and not placed.true
    return Going(phase="Starting", unschedulable=placed.message if placed and held else None)


def _out_of_patience(seen: Evidence, found: Finding) -> Finding:
    """At the pending deadline a stalled or waiting attempt ends with what held it up."""
    if isinstance(found, Over) or seen.pending_since is None or seen.had_started or seen.stopping:
        return found
    timed_out = seen.job is not None and seen.job.failed is not None
    if not timed_out and seen.now < seen.pending_since + timedelta(seconds=seen.pending_deadline_s):
        return found
    if isinstance(found, Stalled):
        return Over(row=found.row, result="Failed", failure=found.failure)
    if found.phase == "Queued":
        failure = fault(FailureClass.CAPACITY, "QuotaNotReserved", "the queue did not admit the attempt")
        return Over(row=3, result="Failed", failure=failure)
    text = (
        found.unschedulable or "no node took the pod, or its image did not come, within the pending deadline"
    )
    reason = "Unschedulable" if found.unschedulable else "PendingDeadlineExceeded"
    return failed(24, FailureClass.CAPACITY, reason, text)


_ROWS: tuple[Callable[[Evidence], Finding | None], ...] = (
    _recorded,
    _asked,
    _name_conflict,
    _queue,
    job_gone,
    deadline,
    *POD_ENDS,
    *HOLD_UPS,
)
