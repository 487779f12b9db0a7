"""The conditions of a run, which programs read: `kubectl wait`, kstatus, Argo CD. Pure.

They follow kstatus: `Ready` when there is nothing left to wait for, `Reconciling` while there is, `Stalled` when somebody must act.
A condition keeps its `lastTransitionTime` until its status changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from assay_operator.decide import Decision, Hold, Observed, Refuse
from assay_operator.findings import MESSAGE_CHARS, Failure, Going, Stalled
from assay_operator.resource import Object, Phase

_BLOCKED = frozenset({"ProjectNotFound", "ProjectForeign", "ProjectInvalid"})

Truth = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the status as a whole says: the phase, why, and the failure where there is one."""

    phase: Phase
    reason: str
    message: str
    failure: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Says:
    """One condition before its times."""

    type: str
    status: Truth
    reason: str
    message: str = ""


def conditions_of(run: Object, seen: Observed, decision: Decision, told: Told) -> list[dict[str, Any]]:
    """The whole list; one that does not apply is left out."""
    phase = told.phase
    ended_well = phase in (Phase.SUCCEEDED, Phase.CANCELLED)
    blocked = isinstance(decision, Hold) and decision.reason in _BLOCKED
    stalled = not ended_well and (phase is Phase.FAILED or isinstance(seen.finding, Stalled) or blocked)
    moving = not (ended_well or stalled or phase is Phase.SUSPENDED)
    why = {"reason": told.reason, "message": told.message}
    not_stalled = {"reason": "NotStalled", "message": ""}
    says = [
        _Says(type="Ready", status=_truth(ended_well), **why),
        _Says(type="Reconciling", status=_truth(moving), **why),
        _Says(type="Stalled", status=_truth(stalled), **(why if stalled else not_stalled)),
        _succeeded(phase, told.failure),
        _Says(
            type="Suspended",
            status=_truth(phase is Phase.SUSPENDED),
            reason="Asked" if run.spec.suspend else "NotAsked",
        ),
    ]
    if isinstance(seen.finding, Going | Stalled) and seen.run is not None:
        says += _placed(seen, seen.finding)
    if phase in (Phase.FAILED, Phase.SUSPENDED) and seen.run is not None:
        says.append(_resumable(seen, decision))
    if phase in (Phase.CANCELLING, Phase.CANCELLED) or run.deleting:
        says.append(_purged(run, seen, phase))
    return _timed(says, run.status.get("conditions") or [], run.generation, seen.now)


def _purged(run: Object, seen: Observed, phase: Phase) -> _Says:
    error = str((run.status.get("purge") or {}).get("error") or "")
    if phase is Phase.CANCELLED and not seen.rows_left:
        return _Says(type="Purged", status="True", reason="Removed")
    return _Says(type="Purged", status="False", reason="Failing" if error else "Removing", message=error)


def _succeeded(phase: Phase, failure: Failure | None) -> _Says:
    if phase is Phase.SUCCEEDED:
        return _Says(type="Succeeded", status="True", reason="Completed")
    if phase is Phase.FAILED:
        return _Says(
            type="Succeeded",
            status="False",
            reason=failure.class_.value if failure else "Failed",
            message=failure.message if failure else "",
        )
    if phase is Phase.CANCELLED:
        return _Says(type="Succeeded", status="False", reason="Cancelled")
    return _Says(type="Succeeded", status="Unknown", reason="InProgress")


def _placed(seen: Observed, finding: Going | Stalled) -> list[_Says]:
    going = finding if isinstance(finding, Going) else None
    running = going is not None and going.phase == "Running"
    says: list[_Says] = []
    if seen.queued:
        held = going is not None and going.phase == "Queued"
        says.append(
            _Says(type="QuotaReserved", status=_truth(not held), reason="Waiting" if held else "Admitted")
        )
    if going is not None and going.unschedulable:
        says.append(
            _Says(type="Scheduled", status="False", reason="Unschedulable", message=going.unschedulable)
        )
    else:
        says.append(
            _Says(
                type="Scheduled",
                status="True" if running else "Unknown",
                reason="Running" if running else "Waiting",
            )
        )
    return says


def _resumable(seen: Observed, decision: Decision) -> _Says:
    refused = decision.refused if isinstance(decision, Refuse) else seen.refused
    if refused is None:
        return _Says(type="Resumable", status="True", reason="CheckpointFound")
    return _Says(type="Resumable", status="False", reason=refused.reason.value, message=refused.text)


def _timed(
    says: Sequence[_Says], before: Sequence[Mapping[str, Any]], generation: int, now: datetime
) -> list[dict[str, Any]]:
    known = {str(one.get("type")): one for one in before}
    made: list[dict[str, Any]] = []
    for one in says:
        old = known.get(one.type)
        same = old is not None and old.get("status") == one.status
        made.append(
            {
                "type": one.type,
                "status": one.status,
                "reason": one.reason or one.type,
                "message": one.message[:MESSAGE_CHARS],
                "observedGeneration": generation,
                "lastTransitionTime": old["lastTransitionTime"] if same and old else iso(now),
            }
        )
    return made


def _truth(value: bool) -> Truth:
    return "True" if value else "False"


def iso(moment: datetime | None) -> str | None:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None
