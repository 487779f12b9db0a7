"""The status of a run, computed whole from what was observed and what is done next. Pure.

The phase is one word for display, computed here and nowhere else; what a program reads is in `conditions`. The same observation
gives the same status, so that nothing is written when nothing has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay_core.model.run import DiscoveryRun, RunStatus
from assay_operator.conditions import Told, conditions_of, iso
from assay_operator.decide import Decision, Hold, Launch, Observed, Purge, Refuse, Stop
from assay_operator.findings import Failure, Finding, Going, Over, Stalled
from assay_operator.resource import ATTEMPTS_KEPT, Object, Phase

_MESSAGE_CHARS = 1_024
_HELD: Mapping[str, str] = {
    "ProjectNotFound": "there is no such project for this namespace; apply it, the run begins by itself",
    "ProjectForeign": "the project belongs to another namespace; use one of this namespace, or an inline project",
    "ProjectInvalid": "the inline project cannot be used; create another DiscoveryRun with a valid one",
    "ProjectBusy": "another run of the project goes first",
    "StoreUnavailable": "MongoDB does not answer; the run goes on when it does",
    "Suspended": "suspended; set spec.suspend to false to go on",
    "Ending": "the attempt is coming to its end",
    "Backoff": "the next attempt begins by itself in a while",
    "AttemptRunning": "",
}


def status_of(run: Object, seen: Observed, decision: Decision) -> dict[str, Any]:
    """The whole next status of `run`; equal to the present one when nothing has changed."""
    before = run.status
    phase = phase_of(run, seen, decision)
    reason, message = _why(seen, decision, phase)
    status: dict[str, Any] = {
        **{name: before[name] for name in _CARRIED if name in before},
        "observedGeneration": run.generation,
        "phase": phase.value,
        "reason": reason,
        "message": message[:_MESSAGE_CHARS],
        "runId": run.run_id,
        "queuedTime": run.created,
        **_answered(run, decision),
        **(_of_document(seen.run, seen.finding, before) if seen.run else {}),
        **_pod(run, seen),
    }
    failure = _failure(seen)
    if failure is not None:
        status["failure"] = _failure_body(failure, seen)
    told = Told(phase=phase, reason=reason, message=message, failure=failure)
    status["conditions"] = conditions_of(run, seen, decision, told)
    return status


_CARRIED = ("observedResumeNonce", "lastHandledResumeRequest", "job", "purge")
"""What is known from the status alone, and written by `apply` as it happens."""


def phase_of(run: Object, seen: Observed, decision: Decision) -> Phase:
    """One word for a person. Nothing triggers on it."""
    document = seen.run
    if document is None:
        if run.asks_cancel:
            return Phase.CANCELLED
        return Phase.SUSPENDED if run.spec.suspend else Phase.PENDING
    match document.status:
        case RunStatus.COMPLETED:
            return Phase.SUCCEEDED
        case RunStatus.CANCELLED:
            busy = isinstance(decision, Stop | Purge)
            return Phase.CANCELLING if busy else Phase.CANCELLED
        case RunStatus.FAILED:
            return _phase_of_failed(run, seen, decision)
        case _:
            return _phase_of_active(run, seen)


def _phase_of_failed(run: Object, seen: Observed, decision: Decision) -> Phase:
    if isinstance(decision, Launch) or (
        isinstance(decision, Hold) and decision.reason in ("Backoff", "ProjectBusy")
    ):
        return Phase.RETRYING
    suspended = isinstance(seen.finding, Over) and seen.finding.result == "Suspended"
    if suspended and not run.asks_cancel:
        return Phase.SUSPENDED
    if not isinstance(seen.finding, Over):
        return Phase.SUSPENDING if run.spec.suspend else Phase.RUNNING
    return Phase.FAILED


def _phase_of_active(run: Object, seen: Observed) -> Phase:
    if run.asks_cancel:
        return Phase.CANCELLING
    if run.spec.suspend:
        return Phase.SUSPENDING
    if isinstance(seen.finding, Going):
        return Phase(seen.finding.phase)
    if isinstance(seen.finding, Over):
        return Phase.RUNNING
    return Phase.STARTING


def _why(seen: Observed, decision: Decision, phase: Phase) -> tuple[str, str]:
    """Reason and message of the whole run."""
    if isinstance(decision, Refuse):
        return decision.refused.reason.value, decision.refused.text
    failure = _failure(seen)
    if isinstance(seen.finding, Stalled) and failure is not None:
        return failure.reason, failure.message
    if phase is Phase.FAILED and failure is not None:
        return failure.reason, failure.message
    if isinstance(decision, Hold) and decision.reason in _HELD and decision.reason != "AttemptRunning":
        text = f"{_HELD[decision.reason]} ({decision.detail})" if decision.detail else _HELD[decision.reason]
        return decision.reason, text
    if isinstance(seen.finding, Going) and seen.finding.unschedulable:
        return "Unschedulable", seen.finding.unschedulable
    return phase.value, seen.run.phase_detail if seen.run and phase is Phase.RUNNING else ""


def _failure(seen: Observed) -> Failure | None:
    if seen.run is not None and seen.run.status in (RunStatus.COMPLETED, RunStatus.CANCELLED):
        return None
    if isinstance(seen.finding, Over | Stalled):
        return seen.finding.failure
    return None


def _failure_body(failure: Failure, seen: Observed) -> dict[str, Any]:
    body = {
        "class": failure.class_.value,
        "reason": failure.reason,
        "message": failure.message,
        "exitCode": failure.exit_code,
        "container": failure.container,
        "actor": failure.actor,
        "resumable": failure.resumable and seen.refused is None,
    }
    return {name: value for name, value in body.items() if value is not None}


def _answered(run: Object, decision: Decision) -> dict[str, Any]:
    """A resume is answered by the attempt it begins, or by a no; a lower nonce is answered by silence.

    What the object was created with is no request: a re-created one begins anew, and is not resumed for it.
    """
    new = "observedResumeNonce" not in run.status
    resumed = isinstance(decision, Launch) and decision.trigger == "resume"
    if not (new or resumed or isinstance(decision, Refuse)):
        return {}
    token = run.resume_token
    return {
        "observedResumeNonce": max(run.spec.resume_nonce, int(run.status.get("observedResumeNonce") or 0)),
        **({"lastHandledResumeRequest": token} if token is not None else {}),
    }


def _of_document(
    document: DiscoveryRun, finding: Finding | None, before: Mapping[str, Any]
) -> dict[str, Any]:
    """Progress and usage, mirrored from the run document; the step last seen, where the end has set it back."""
    over = document.status is RunStatus.COMPLETED
    step = int((before.get("progress") or {}).get("step") or 0) if over else document.last_checkpoint_step
    begun = [event for event in document.lifecycle if event.status is RunStatus.RUNNING]
    present = [event.at for event in begun if event.attempt == document.attempt]
    mirrored: dict[str, Any] = {
        "attempt": document.attempt,
        "autoRetries": auto_retries(document),
        "startTime": iso(begun[0].at) if begun else None,
        "attemptStartTime": iso(present[-1]) if present else None,
        "completionTime": iso(document.completed_at) if document.status.is_terminal else None,
        "activeSeconds": document.active_ms // 1_000,
        "discoveryId": document.discovery_id,
        "progress": {
            "phase": str(document.phase),
            "percent": document.progress,
            "step": step,
            **({"maxSteps": document.max_steps} if document.max_steps else {}),
            "queries": document.total_queries,
            "insights": document.insights_found,
        },
        "usage": {
            "inputTokens": sum(part.input_tokens or 0 for part in document.usage),
            "outputTokens": sum(part.output_tokens or 0 for part in document.usage),
            "costUSD": sum(part.cost_usd or 0.0 for part in document.usage),
            "rows": document.rows_read,
        },
        "attempts": _attempts(document, finding, before),
    }
    return {name: value for name, value in mirrored.items() if value is not None}


def _pod(run: Object, seen: Observed) -> dict[str, Any]:
    """The pod of the present attempt, remembered when it is gone."""
    pod = seen.pod
    if pod is not None:
        return {"pod": {"name": pod.name, "uid": pod.uid, **({"node": pod.node} if pod.node else {})}}
    same = seen.run is None or run.status.get("attempt") == seen.run.attempt
    return {"pod": run.status["pod"]} if same and "pod" in run.status else {}


def auto_retries(document: DiscoveryRun) -> int:
    """Attempts begun by the operator by itself since a person last asked for one."""
    count = 0
    for event in document.lifecycle:
        if event.status is not RunStatus.PENDING:
            continue
        count = 0 if event.reason == "resume" else count + (event.reason in ("retry", "supersede"))
    return count


def _attempts(
    document: DiscoveryRun, finding: Finding | None, before: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The last attempts, from the run's own lifecycle; why each ended, by the verdict on it where there was one."""
    found: dict[int, dict[str, Any]] = {}
    verdicts = {one["attempt"]: one["reason"] for one in before.get("attempts") or () if "reason" in one}
    if isinstance(finding, Over) and finding.result != "Succeeded":
        verdicts[document.attempt] = finding.failure.reason if finding.failure else finding.result
    for event in document.lifecycle:
        one = found.setdefault(event.attempt, {"attempt": event.attempt})
        match event.status:
            case RunStatus.PENDING:
                one["trigger"] = event.reason or "first"
            case RunStatus.RUNNING:
                one["startTime"] = iso(event.at)
            case _:
                reason = verdicts.get(event.attempt, event.reason)[:128]
                one |= {"endTime": iso(event.at), "result": event.status.value, "reason": reason}
    return [found[number] for number in sorted(found)[-ATTEMPTS_KEPT:]]
