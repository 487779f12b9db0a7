"""Rows 19 to 25 of the table: what keeps an attempt from getting on, and who must act. Pure; `outcome` asks them in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from assay_operator.endings import POD_ENDS
from assay_operator.findings import Evidence, FailureClass, Over, Stalled, failed, stalled
from assay_operator.seen import ContainerSeen, EventSeen

PULL_PATIENCE = timedelta(minutes=5)
MOUNT_PATIENCE = timedelta(minutes=1)
JOB_CONTROLLER_LAG = timedelta(seconds=60)
"""After the agent's end, or the Job's creation, within which the Job controller should have noticed."""


def _bad_image(seen: Evidence) -> Stalled | None:
    waiting = _waiting(seen, {"InvalidImageName", "ErrImageNeverPull", "ImageInspectError"})
    if waiting is None:
        return None
    return stalled(19, FailureClass.CONFIG, waiting.waiting or "", waiting.waiting_message)


def _pull_failed(seen: Evidence) -> Stalled | None:
    waiting = _waiting(seen, {"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})
    if waiting is None or not _longer(seen, PULL_PATIENCE):
        return None
    return stalled(20, FailureClass.CONFIG, "ImagePullFailed", waiting.waiting_message)


def _secret_missing(seen: Evidence) -> Stalled | None:
    if not _longer(seen, MOUNT_PATIENCE) or seen.had_started:
        return None
    waiting = _waiting(seen, {"CreateContainerConfigError"})
    event = _latest(seen.pod_events, "FailedMount")
    if waiting is None and event is None:
        return None
    text = waiting.waiting_message if waiting else event.message if event else ""
    return stalled(21, FailureClass.CONFIG, "SecretOrConfigMissing", text)


def _quota(seen: Evidence) -> Stalled | None:
    event = _not_created(seen)
    text = seen.refused if seen.job is None else event.message if event else None
    if text is None or "exceeded quota" not in text:
        return None
    return stalled(22, FailureClass.CAPACITY, "QuotaExceeded", text)


def _pod_rejected(seen: Evidence) -> Stalled | None:
    event = _not_created(seen)
    text = seen.refused if seen.job is None else event.message if event else None
    if text is None:
        return None
    return stalled(23, FailureClass.CONFIG, "PodRejected", text)


def _job_controller(seen: Evidence) -> Over | Stalled | None:
    """Row 25: the agent's end, or the Job itself, that the Job controller does not notice."""
    job, agent = seen.job, seen.agent
    if job is None or job.over or job.deleting or not job.ours:
        return None
    if agent and agent.finished_at and seen.now > agent.finished_at + JOB_CONTROLLER_LAG:
        if agent.exit_code == 0:
            text = "the agent ended with 0 and left no result record"
            return failed(25, FailureClass.AGENT, "CompletedWithoutResult", text, container=agent)
        settled = replace(
            seen,
            job=None,
            job_created=False,
            pod=replace(seen.pod, phase="Failed") if seen.pod else None,
        )
        found = next((found for row in POD_ENDS if (found := row(settled))), None)
        return replace(found, row=25) if isinstance(found, Over) else None
    late = job.created_at is not None and seen.now > job.created_at + JOB_CONTROLLER_LAG
    if job.started_at is not None or job.suspended or not late:
        return None
    text = "the Job controller has not started the Job; is kube-controller-manager running?"
    return stalled(25, FailureClass.INFRASTRUCTURE, "JobControllerLag", text)


HOLD_UPS: tuple[Callable[[Evidence], Over | Stalled | None], ...] = (
    _bad_image,
    _pull_failed,
    _secret_missing,
    _quota,
    _pod_rejected,
    _job_controller,
)


def _waiting(seen: Evidence, reasons: set[str]) -> ContainerSeen | None:
    if seen.pod is None:
        return None
    containers = [*seen.pod.init, *([seen.pod.agent] if seen.pod.agent else [])]
    return next((found for found in containers if found.waiting in reasons), None)


def _longer(seen: Evidence, patience: timedelta) -> bool:
    return (
        seen.pod is not None and seen.pod.started_at is not None and seen.now > seen.pod.started_at + patience
    )


def _latest(events: Sequence[EventSeen], reason: str) -> EventSeen | None:
    return next((event for event in reversed(events) if event.reason == reason), None)


def _not_created(seen: Evidence) -> EventSeen | None:
    """The latest word of the Job controller that it could not make the pod, as long as there is none."""
    return None if seen.pod is not None else _latest(seen.job_events, "FailedCreate")
