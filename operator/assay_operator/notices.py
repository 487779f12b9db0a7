"""What is worth an event on the run: the difference between two statuses, in a dozen stable reasons. Pure.

The same difference makes the same name, so that an operator that starts again says nothing twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from uuid import NAMESPACE_URL, uuid5

from assay_operator.resource import API_VERSION, KIND, Object, Phase

REASONS: Mapping[str, str] = {
    "AttemptStarted": "an attempt has its Job",
    "Succeeded": "the discovery is saved",
    "Failed": "the attempt failed and nothing is tried by itself",
    "Retrying": "the attempt failed and the next one begins by itself",
    "Cancelled": "the run is cancelled and its working data is gone",
    "Suspended": "the run keeps its place and waits",
    "Stalled": "the attempt cannot begin until somebody acts",
    "Unstalled": "what held the attempt up is mended",
    "Waiting": "the run waits for its project or its turn",
    "ResumeRefused": "a resume was asked for and is not possible",
    "ResumeNonceIgnored": "spec.resumeNonce is lower than one that was answered",
    "PurgeFailed": "working data could not be removed yet",
}
"""Every reason an event of the operator can carry."""

_ENDS: Mapping[str, tuple[str, Literal["Normal", "Warning"]]] = {
    Phase.SUCCEEDED: ("Succeeded", "Normal"),
    Phase.FAILED: ("Failed", "Warning"),
    Phase.RETRYING: ("Retrying", "Warning"),
    Phase.CANCELLED: ("Cancelled", "Normal"),
    Phase.SUSPENDED: ("Suspended", "Normal"),
}
_WAITS = frozenset({"ProjectNotFound", "ProjectForeign", "ProjectInvalid", "ProjectBusy", "StoreUnavailable"})
_REFUSED = frozenset({"NoCheckpoint", "Expired", "NotFailed", "AnotherRunActive", "Cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One event before it has a name."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def notices(run: Object, status: Mapping[str, Any]) -> list[Notice]:
    """What `status` tells that the present one of `run` did not."""
    before = run.status
    phase, reason = status.get("phase"), str(status.get("reason") or "")
    message = str(status.get("message") or "")
    said: list[Notice] = []
    job = (status.get("job") or {}).get("name")
    if job and job != (before.get("job") or {}).get("name"):
        said.append(Notice(type="Normal", reason="AttemptStarted", message=f"Job {job}"))
    if phase in _ENDS and phase != before.get("phase"):
        name, kind = _ENDS[str(phase)]
        said.append(Notice(type=kind, reason=name, message=_sentence(reason, message, name)))
    was, stalled = _truth(before, "Stalled"), _truth(status, "Stalled")
    if phase != Phase.FAILED and before.get("phase") != Phase.FAILED and was != stalled:
        name = "Stalled" if stalled else "Unstalled"
        said.append(
            Notice(
                type="Warning" if stalled else "Normal", reason=name, message=_sentence(reason, message, name)
            )
        )
    if reason in _WAITS and reason != before.get("reason"):
        said.append(Notice(type="Warning", reason="Waiting", message=_sentence(reason, message, "Waiting")))
    if reason in _REFUSED and "observedResumeNonce" in before and _answered(status) != _answered(before):
        said.append(Notice(type="Warning", reason="ResumeRefused", message=_sentence(reason, message, "")))
    observed = int(before.get("observedResumeNonce") or 0)
    if run.spec.resume_nonce < observed and before.get("observedGeneration") != run.generation:
        text = f"spec.resumeNonce is {run.spec.resume_nonce}, and {observed} was answered already: nothing is resumed"
        said.append(Notice(type="Warning", reason="ResumeNonceIgnored", message=text))
    error = str((status.get("purge") or {}).get("error") or "")
    if error and error != (before.get("purge") or {}).get("error"):
        said.append(Notice(type="Warning", reason="PurgeFailed", message=error))
    return said


def event_of(run: Object, attempt: int, notice: Notice, *, at: str) -> dict[str, Any]:
    """The event's body; its name follows from the run, the attempt, the generation and what is said."""
    said = f"{run.uid}/{attempt}/{run.generation}/{notice.reason}/{notice.message}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{run.name}.{uuid5(NAMESPACE_URL, said).hex[:16]}", "namespace": run.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": run.name,
            "namespace": run.namespace,
            "uid": run.uid,
        },
        "type": notice.type,
        "reason": notice.reason,
        "message": notice.message[:1_000],
        "source": {"component": "assay-operator"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def _sentence(reason: str, message: str, name: str) -> str:
    parts = [part for part in (reason if reason != name else "", message) if part]
    return ": ".join(parts) or REASONS.get(name, name)


def _answered(status: Mapping[str, Any]) -> tuple[Any, Any]:
    return status.get("observedResumeNonce"), status.get("lastHandledResumeRequest")


def _truth(status: Mapping[str, Any], kind: str) -> bool:
    return any(
        one.get("type") == kind and one.get("status") == "True" for one in status.get("conditions") or ()
    )
