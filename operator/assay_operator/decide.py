"""What to do next about one run: the reconcile decision. Pure.

`observe` gathers what is known, `decide` chooses one action, `apply` carries it out and the run is looked at again. Nothing here
triggers on a status word: the same observation gives the same decision, and one that is already true in the cluster and the
store gives `Settled` or `Hold`. At most one Job per attempt, and no attempt before the last one has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from assay_core.errors import ResumeRefusal
from assay_core.model.run import DiscoveryRun, RunStatus
from assay_core.resume import Refused
from assay_operator.findings import Finding, Going, Over, Retry, Stalled
from assay_operator.seen import PodSeen

HoldReason = Literal[
    "Suspended",
    "ProjectNotFound",
    "ProjectForeign",
    "ProjectInvalid",
    "ProjectBusy",
    "StoreUnavailable",
    "AttemptRunning",
    "Ending",
    "Backoff",
]
Trigger = Literal["first", "resume", "retry", "continue", "requeue", "supersede", "intent"]
SUPERSEDED_AT_MOST = 3
"""Attempts in a row that may be started because another process held the one before."""
ENDING_S = 60.0
"""Seconds after an attempt was stored as failed within which its pod may end by itself, its log left to be read."""
PROJECT_AGAIN_S = 15.0
"""Seconds until a project that is missing or busy is looked at again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the object asks for: its spec, its annotations, and whether it is being deleted."""

    cancel: bool = False
    suspend: bool = False
    resume: bool = False
    """A resume that was not yet answered: a nonce above the observed one, or a new annotation."""
    deleting: bool = False
    skip_purge: bool = False
    retain: bool = False
    retries: int = 0
    backoff_s: float = 30.0
    max_backoff_s: float = 600.0
    ttl_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All that is known of a run at one moment.

    `run` is its document, None before the first attempt; `finding` is what its present attempt has come to. `job_live` says that
    a Job of ours, of any attempt, has not ended; `job_there` that one exists; `queued` that the present one went through a
    queue; `node_dead` that what is left of it cannot be ended. `pod` is that of the present attempt.
    `rows_left` says that checkpoints or a vector collection are there. `project` is what is wrong with the project, `busy` the run
    that goes before this one, `refused` why a resume would not be let through. `store_error` says that MongoDB gave no answer.
    """

    now: datetime
    asked: Asked
    run: DiscoveryRun | None = None
    finding: Finding | None = None
    job_created: bool = False
    job_there: bool = False
    job_live: bool = False
    queued: bool = False
    pod: PodSeen | None = None
    node_dead: bool = False
    rows_left: bool = False
    finalized: bool = True
    project: Literal["ProjectNotFound", "ProjectForeign", "ProjectInvalid"] | None = None
    project_detail: str = ""
    busy: str | None = None
    refused: Refused | None = None
    auto_retries: int = 0
    store_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Store the attempt (for `intent` it is stored already), then create its Job. `counted` uses up one automatic retry."""

    attempt: int
    trigger: Trigger
    counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Store why (a cancel is marked first), then delete the Job in the foreground."""

    why: Literal["cancel", "suspend", "delete", "leftover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Store the verdict on the present attempt."""

    over: Over


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """Remove checkpoints and the vector collection of a run that will not go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Take the finalizer off: nothing is left to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """Delete the object, whose time after its end is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Answer a resume with no."""

    refused: Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Nothing can be done now. `reason` is what it waits for; it is looked at again after `again_s`, and on any event."""

    reason: HoldReason
    again_s: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Nothing is left to do until somebody asks for something. `again_s` is when the object expires."""

    again_s: float | None = None


_SUCCEEDED = Refused(
    reason=ResumeRefusal.NOT_FAILED, text="the run has succeeded; only a failed one is resumed"
)
_CANCELLED = Refused(reason=ResumeRefusal.CANCELLED, text="the run was cancelled, which is for good")

Decision = Launch | Stop | Finish | Purge | Release | Expire | Refuse | Hold | Settled


def decide(seen: Observed) -> Decision:
    """The one next action."""
    if seen.asked.deleting:
        return _leave(seen)
    if seen.store_error is not None:
        return Hold(reason="StoreUnavailable", detail=seen.store_error)
    if seen.run is None:
        return _begin(seen)
    match seen.run.status:
        case RunStatus.CANCELLED:
            return _cancelled(seen)
        case RunStatus.COMPLETED:
            return Refuse(refused=_SUCCEEDED) if seen.asked.resume else _kept(seen, seen.run)
        case RunStatus.FAILED:
            return _failed(seen, seen.run)
        case _:
            return _active(seen, seen.run)


def _begin(seen: Observed) -> Decision:
    if seen.asked.cancel:
        return Refuse(refused=_CANCELLED) if seen.asked.resume else Settled()
    if seen.asked.suspend:
        return Hold(reason="Suspended")
    if seen.project is not None:
        return Hold(reason=seen.project, again_s=PROJECT_AGAIN_S, detail=seen.project_detail)
    if seen.busy is not None:
        return Hold(reason="ProjectBusy", again_s=PROJECT_AGAIN_S, detail=seen.busy)
    return Launch(attempt=1, trigger="first")


def _active(seen: Observed, run: DiscoveryRun) -> Decision:
    if seen.asked.cancel:
        return Stop(why="cancel")
    if isinstance(seen.finding, Over):
        return Finish(over=seen.finding)
    if seen.asked.suspend:
        if seen.job_there or not seen.job_created:
            return Stop(why="suspend")
        return Hold(reason="Ending")
    if not seen.job_created and not _refused_by_api(seen.finding):
        return Launch(attempt=run.attempt, trigger="intent")
    return Hold(reason="AttemptRunning")


def _refused_by_api(finding: Finding | None) -> bool:
    """The API server would not create the Job: it is tried again by the sweep, not at once."""
    return isinstance(finding, Stalled) and finding.row in (22, 23)


def _failed(seen: Observed, run: DiscoveryRun) -> Decision:
    found = seen.finding
    if not isinstance(found, Over):
        if seen.asked.suspend and seen.job_there:
            return Stop(why="suspend")
        return Hold(reason="Ending")
    if found.row != 0:
        return Finish(over=found)
    if seen.job_live and not seen.node_dead:
        if found.result == "Evicted":
            return Stop(why="leftover")  # the queue has suspended it: it would never end
        left_s = ENDING_S - (seen.now - (run.completed_at or run.updated_at)).total_seconds()
        return Hold(reason="Ending", again_s=left_s) if left_s > 0 else Stop(why="leftover")
    if seen.asked.cancel:
        return _kept(seen, run)
    return _next_attempt(seen, run, found)


def _next_attempt(seen: Observed, run: DiscoveryRun, found: Over) -> Decision:
    following = run.attempt + 1
    if seen.asked.suspend:
        return Hold(reason="Suspended")
    if seen.asked.resume:
        if seen.refused is not None:
            return Refuse(refused=seen.refused)
        return Launch(attempt=following, trigger="resume")
    if found.result in ("Suspended", "Evicted", "Superseded") and seen.busy is not None:
        return Hold(reason="ProjectBusy", again_s=PROJECT_AGAIN_S, detail=seen.busy)
    if found.result == "Suspended":
        return Launch(attempt=following, trigger="continue")
    if found.result == "Evicted":
        return Launch(attempt=following, trigger="requeue")
    if found.result == "Superseded" and seen.auto_retries < max(seen.asked.retries, SUPERSEDED_AT_MOST):
        return Launch(attempt=following, trigger="supersede", counted=True)
    if _may_retry(seen, found):
        due = (run.completed_at or run.updated_at) + timedelta(seconds=_backoff_s(seen))
        wait_s = (due - seen.now).total_seconds()
        if wait_s > 0:
            return Hold(reason="Backoff", again_s=wait_s)
        if seen.busy is not None:
            return Hold(reason="ProjectBusy", again_s=PROJECT_AGAIN_S, detail=seen.busy)
        return Launch(attempt=following, trigger="retry", counted=True)
    return _kept(seen, run)


def _may_retry(seen: Observed, found: Over) -> bool:
    if found.failure is None:
        return False
    allowed = {
        Retry.NEVER: 0,
        Retry.ONCE: min(1, seen.asked.retries),
        Retry.ALLOWED: seen.asked.retries,
    }[found.failure.retry]
    return seen.auto_retries < allowed


def _backoff_s(seen: Observed) -> float:
    return min(seen.asked.backoff_s * 2.0 ** min(seen.auto_retries, 32), seen.asked.max_backoff_s)


def _cancelled(seen: Observed) -> Decision:
    if seen.job_live and not seen.node_dead:
        return Stop(why="leftover")
    if seen.rows_left:
        return Purge()
    return Refuse(refused=_CANCELLED) if seen.asked.resume else _kept(seen, seen.run)


def _kept(seen: Observed, run: DiscoveryRun | None) -> Decision:
    """An ended run stays as it is, until its time after the end is over where it has one."""
    if seen.asked.ttl_s is None or run is None:
        return Settled()
    due = (run.completed_at or run.updated_at) + timedelta(seconds=seen.asked.ttl_s)
    left_s = (due - seen.now).total_seconds()
    return Expire() if left_s <= 0 else Settled(again_s=left_s)


def _leave(seen: Observed) -> Decision:
    """Out in the order: cancelled, Job gone, rows and collection, finalizer."""
    if not seen.finalized:
        return Settled()
    if seen.asked.skip_purge:
        return Release()
    if seen.store_error is not None:
        return Hold(reason="StoreUnavailable", detail=seen.store_error)
    if seen.run is not None and not seen.run.status.is_terminal:
        return Stop(why="delete")
    if seen.job_there and not seen.node_dead:
        return Stop(why="delete")
    if seen.rows_left and not seen.asked.retain:
        return Purge()
    return Release()


def pending(finding: Finding | None) -> bool:
    """The attempt has not begun its work."""
    return isinstance(finding, Stalled) or (isinstance(finding, Going) and finding.phase != "Running")
