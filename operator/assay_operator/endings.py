"""Rows 4 to 18 of the failure table: how an attempt came to its end. Pure; `outcome` asks them in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

from assay_operator.findings import Evidence, FailureClass, Over, failed
from assay_operator.seen import ContainerSeen

LOST_POD = timedelta(seconds=60)
"""Past its deletion time, after which a pod that has not ended is on a node that is gone."""
CONTRACT = {
    1: (FailureClass.AGENT, "AgentError"),
    10: (FailureClass.CONFIG, "ConfigInvalid"),
    11: (FailureClass.INFRASTRUCTURE, "DependencyUnavailable"),
    12: (FailureClass.LIMIT, "LimitReached"),
    14: (FailureClass.CONFIG, "NothingToReplay"),
    15: (FailureClass.AGENT, "AllAreasFailed"),
}
"""Exit codes that say why by themselves. 0, 13 and 143 do not stand here: success needs a record, a lost run is no failure,
and what SIGTERM was for, the other rows tell.
"""
OWNERSHIP_LOST = 13
STOPPED = 143
"""By SIGTERM, its state saved."""
DISRUPTIONS = frozenset(
    {
        "PreemptionByScheduler",
        "DeletionByTaintManager",
        "EvictionByEvictionAPI",
        "DeletionByPodGC",
        "TerminationByKubelet",
    }
)
NODE_REASONS = frozenset(
    {"Evicted", "NodeShutdown", "Terminated", "NodeAffinity", "UnexpectedAdmissionError", "NodeLost"}
)
_NOT_STARTED = frozenset({"ContainerCannotRun", "StartError", "RunContainerError"})
_NO_RECORD = "the agent ended with 0 and left no result record"


def job_gone(seen: Evidence) -> Over | None:
    if seen.job is not None or not seen.job_created or seen.stopping:
        return None
    text = "the Job was deleted by something other than the operator"
    return failed(4, FailureClass.INFRASTRUCTURE, "JobDeletedExternally", text)


def deadline(seen: Evidence) -> Over | None:
    end = seen.job.failed if seen.job else None
    if end is None or end.reason != "DeadlineExceeded" or not seen.had_started:
        return None
    text = "activeDeadlineSeconds of the attempt is over; raise it and resume"
    return failed(5, FailureClass.LIMIT, "DeadlineExceeded", text)


def _out_of_memory(seen: Evidence) -> Over | None:
    if seen.pod is None or not seen.ended:
        return None
    killed = next((one for one in (seen.pod.agent, *seen.pod.init) if one and one.out_of_memory), None)
    if killed is None:
        return None
    text = f"container {killed.name} ran out of memory; raise its limit in podPatch.resources and resume"
    return failed(6, FailureClass.RESOURCE, "OOMKilled", text, container=killed)


def _no_record(seen: Evidence) -> Over | None:
    """Complete, or ended with 0 while something else failed the Job: success needs the record."""
    ended_well = seen.job is not None and (
        seen.job.complete or (seen.job.failed and seen.agent and seen.agent.exit_code == 0)
    )
    if not ended_well:
        return None
    return failed(7, FailureClass.AGENT, "CompletedWithoutResult", _NO_RECORD, container=seen.agent)


def _storage(seen: Evidence) -> Over | None:
    pod = seen.pod
    if pod is None or not seen.ended or pod.reason != "Evicted" or pod.condition("DisruptionTarget"):
        return None
    if "exceeds the limit" not in pod.message and "exceeds the total limit" not in pod.message:
        return None
    return failed(8, FailureClass.RESOURCE, "EphemeralStorageExceeded", pod.message)


def _disrupted(seen: Evidence) -> Over | None:
    found = seen.pod.condition("DisruptionTarget") if seen.pod else None
    if found is None or not found.true or not seen.ended:
        return None
    reason = found.reason if found.reason in DISRUPTIONS else "Disrupted"
    return failed(9, FailureClass.INFRASTRUCTURE, reason, found.message)


def _node_refused(seen: Evidence) -> Over | None:
    pod = seen.pod
    if pod is None or pod.reason is None or not seen.ended:
        return None
    if pod.reason not in NODE_REASONS and not pod.reason.startswith("OutOf"):
        return None
    return failed(10, FailureClass.INFRASTRUCTURE, pod.reason, pod.message)


def _node_dead(seen: Evidence) -> Over | None:
    """The pod should be gone for a minute. The fence keeps whatever still runs there from writing."""
    pod = seen.pod
    if pod is None or pod.over or pod.gone or pod.delete_at is None or seen.now < pod.delete_at + LOST_POD:
        return None
    text = f"node {pod.node} does not answer; the pod should have ended at {pod.delete_at:%H:%M:%S} UTC"
    return failed(11, FailureClass.INFRASTRUCTURE, "NodeUnreachable", text)


def _pod_deleted(seen: Evidence) -> Over | None:
    pod = seen.pod
    if pod is None or not seen.ended or pod.delete_at is None or seen.stopping:
        return None
    ended_at = pod.agent.finished_at if pod.agent else None
    stopped = pod.agent is not None and pod.agent.exit_code == STOPPED
    if not stopped and ended_at is not None and pod.delete_at - timedelta(seconds=pod.grace_s) > ended_at:
        return None
    text = "the pod was deleted before its end by something other than the operator"
    return failed(12, FailureClass.INFRASTRUCTURE, "PodDeletedExternally", text)


def _contract_code(seen: Evidence) -> Over | None:
    agent = seen.agent
    if agent is None or not seen.ended or agent.exit_code is None:
        return None
    if agent.exit_code == OWNERSHIP_LOST:
        return Over(row=13, result="Superseded")
    if agent.exit_code not in CONTRACT:
        return None
    class_, reason = CONTRACT[agent.exit_code]
    said_reason, said = _last_words(agent)
    return failed(13, class_, said_reason or reason, said, container=agent)


def _last_words(agent: ContainerSeen) -> tuple[str, str]:
    """Reason and message of the termination message, which is the outcome as one line of JSON; or any text."""
    try:
        said = json.loads(agent.message)
        return str(said["reason"]), str(said["message"])
    except (ValueError, TypeError, KeyError):
        return "", agent.message


def _probably_memory(seen: Evidence) -> Over | None:
    pod, agent = seen.pod, seen.agent
    if pod is None or agent is None or not seen.ended or agent.exit_code != 137:
        return None
    if pod.delete_at is not None or not agent.memory_limited:
        return None
    text = "the agent was killed and has a memory limit; it probably ran out of memory"
    return failed(14, FailureClass.RESOURCE, "ProbablyOOMKilled", text, container=agent)


def _init_failed(seen: Evidence) -> Over | None:
    if seen.pod is None or not seen.ended:
        return None
    first = next((found for found in seen.pod.init if found.exit_code), None)
    if first is None:
        return None
    text = f"init container {first.name} ended with {first.exit_code}: {first.message}"
    return failed(15, FailureClass.CONFIG, "InitFailed", text, container=first)


def _not_startable(seen: Evidence) -> Over | None:
    agent = seen.agent
    if agent is None or agent.reason not in _NOT_STARTED or not seen.ended:
        return None
    return failed(16, FailureClass.CONFIG, agent.reason, agent.message, container=agent)


def _other_code(seen: Evidence) -> Over | None:
    agent = seen.agent
    if agent is None or not agent.exit_code or not seen.ended:
        return None
    return failed(17, FailureClass.AGENT, f"ExitCode{agent.exit_code}", agent.message, container=agent)


def _no_evidence(seen: Evidence) -> Over | None:
    end = seen.job.failed if seen.job else None
    if end is None or (seen.agent is not None and seen.agent.exit_code is not None):
        return None
    if end.reason == "DeadlineExceeded":  # before the agent had started: what held it up is the reason
        return None
    text = end.message or "the Job failed and no pod is left to tell why"
    return failed(18, FailureClass.UNKNOWN, "PodEvidenceLost", text)


POD_ENDS: tuple[Callable[[Evidence], Over | None], ...] = (
    _out_of_memory,
    _no_record,
    _storage,
    _disrupted,
    _node_refused,
    _node_dead,
    _pod_deleted,
    _contract_code,
    _probably_memory,
    _init_failed,
    _not_startable,
    _other_code,
    _no_evidence,
)
"""Rows 6 to 18: how a pod came to its end."""
