"""What can be found of an attempt, and the evidence it is found from. Pure values; `outcome` makes the first from the second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from assay_core.model.run import DiscoveryRun, RunOutcome
from assay_operator.seen import ContainerSeen, EventSeen, JobSeen, PodSeen

MESSAGE_CHARS = 1_024

Actor = Literal["User", "Platform", "None"]
Result = Literal["Succeeded", "Failed", "Cancelled", "Suspended", "Superseded", "Evicted"]


class FailureClass(StrEnum):
    AGENT = "Agent"
    CONFIG = "Config"
    INFRASTRUCTURE = "Infrastructure"
    LIMIT = "Limit"
    RESOURCE = "Resource"
    CAPACITY = "Capacity"
    UNKNOWN = "Unknown"


class Retry(StrEnum):
    """Whether the operator may start the next attempt by itself: never, once, or as often as the spec allows."""

    NEVER = "never"
    ONCE = "once"
    ALLOWED = "allowed"


_ACTORS: Mapping[FailureClass, Actor] = {
    FailureClass.INFRASTRUCTURE: "None",
    FailureClass.CAPACITY: "Platform",
    FailureClass.UNKNOWN: "None",
}
_PLATFORM_ACTS = frozenset({"JobDeletedExternally", "JobControllerLag"})
"""Infrastructure that does not come back by itself, and is not tried again by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an attempt failed, in the words of `status.failure`. Who must act and what is retried follow from class and reason."""

    class_: FailureClass
    reason: str
    message: str = ""
    exit_code: int | None = None
    container: str | None = None

    @property
    def actor(self) -> Actor:
        return "Platform" if self.reason in _PLATFORM_ACTS else _ACTORS.get(self.class_, "User")

    @property
    def retry(self) -> Retry:
        if self.class_ is not FailureClass.INFRASTRUCTURE or self.reason in _PLATFORM_ACTS:
            return Retry.NEVER
        return Retry.ONCE if self.reason == "PodDeletedExternally" else Retry.ALLOWED

    @property
    def resumable(self) -> bool:
        """If a replayable prefix exists."""
        return self.reason != "NothingToReplay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """The attempt has ended. `row` is the row of the table that said so."""

    row: int
    result: Result
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """The attempt does not get on; it goes on by itself once `actor` has mended it."""

    row: int
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """Nothing is wrong: queued, on the way to a node, or running. `unschedulable` is the scheduler's text."""

    phase: Literal["Queued", "Starting", "Running"]
    unschedulable: str | None = None


Finding = Over | Stalled | Going


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known of one attempt at one moment.

    `run` is the run document when it speaks of this attempt. `job_created` says that a Job of the attempt is known to have
    existed; `job` is None when the synced cache has none. `refused` is the API's answer when it would not create the Job.
    `pending_since` is when the attempt was launched.
    """

    now: datetime
    run: DiscoveryRun
    records: Sequence[RunOutcome] = ()
    stopping: Literal["cancel", "suspend"] | None = None
    job_created: bool = True
    job: JobSeen | None = None
    pod: PodSeen | None = None
    job_events: Sequence[EventSeen] = ()
    pod_events: Sequence[EventSeen] = ()
    refused: str | None = None
    pending_since: datetime | None = None
    pending_deadline_s: float = 3600

    @property
    def claimed(self) -> bool:
        return self.run.owner is not None

    @property
    def agent(self) -> ContainerSeen | None:
        return self.pod.agent if self.pod else None

    @property
    def had_started(self) -> bool:
        """The agent's own code has run in this attempt."""
        agent = self.agent
        return self.claimed or (agent is not None and (agent.running or agent.exit_code is not None))

    @property
    def ended(self) -> bool:
        """The pod has come to its end and the Job has taken note, or there is no Job to take note."""
        return (self.pod is None or self.pod.over or self.pod.gone) and (self.job is None or self.job.over)


def fault(
    class_: FailureClass, reason: str, message: str, *, container: ContainerSeen | None = None
) -> Failure:
    return Failure(
        class_=class_,
        reason=reason,
        message=message.strip()[:MESSAGE_CHARS],
        exit_code=container.exit_code if container else None,
        container=container.name if container else None,
    )


def failed(
    row: int, class_: FailureClass, reason: str, message: str, *, container: ContainerSeen | None = None
) -> Over:
    return Over(row=row, result="Failed", failure=fault(class_, reason, message, container=container))


def stalled(row: int, class_: FailureClass, reason: str, message: str) -> Stalled:
    return Stalled(row=row, failure=fault(class_, reason, message))
