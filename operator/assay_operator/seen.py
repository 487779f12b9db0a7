"""What the cluster shows of one attempt: its Job, its pod and the events about them, read from plain bodies. Pure.

`observe` builds these from the API's answers and from what the watch kept; `outcome` judges them. A body is taken as it comes:
a field that is missing or of another kind reads as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assay_operator.resource import QUEUE_LABEL, RUN_UID_LABEL

AGENT_CONTAINER = "agent"


Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSeen:
    """One container. `waiting` and `reason` are the kubelet's words; `exit_code` is None until it has ended."""

    name: str
    running: bool = False
    waiting: str | None = None
    waiting_message: str = ""
    exit_code: int | None = None
    reason: str | None = None
    message: str = ""
    finished_at: datetime | None = None
    last_reason: str | None = None
    memory_limited: bool = False

    @property
    def out_of_memory(self) -> bool:
        """Now or in an earlier life of the same container."""
        return "OOMKilled" in (self.reason, self.last_reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition that is True or False since a moment, with the reason and the text beside it."""

    type: str
    true: bool
    reason: str = ""
    message: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    """The attempt's pod. `gone` says that the API no longer has it and this is the last that was seen of it."""

    name: str
    uid: str
    node: str | None = None
    phase: str = "Pending"
    reason: str | None = None
    message: str = ""
    started_at: datetime | None = None
    delete_at: datetime | None = None
    grace_s: float = 0.0
    agent: ContainerSeen | None = None
    init: tuple[ContainerSeen, ...] = ()
    conditions: tuple[Condition, ...] = ()
    gone: bool = False

    @property
    def over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    def condition(self, kind: str) -> Condition | None:
        return next((found for found in self.conditions if found.type == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """The attempt's Job. `ours` says that its owner is the run that is judged."""

    name: str
    uid: str
    ours: bool = True
    created_at: datetime | None = None
    started_at: datetime | None = None
    deleting: bool = False
    suspended: bool = False
    queued: bool = False
    conditions: tuple[Condition, ...] = ()

    def _true(self, kind: str) -> Condition | None:
        return next((found for found in self.conditions if found.type == kind and found.true), None)

    @property
    def complete(self) -> Condition | None:
        return self._true("Complete")

    @property
    def failed(self) -> Condition | None:
        return self._true("Failed")

    @property
    def over(self) -> bool:
        return self.complete is not None or self.failed is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSeen:
    """An event about the Job or the pod, latest last."""

    reason: str
    message: str = ""
    at: datetime | None = None


def job_seen(body: Body, *, owner_uid: str) -> JobSeen:
    """The Job of a body; it is ours when its controlling owner, or where that was stripped its label, is the run."""
    metadata, spec, status = _map(body, "metadata"), _map(body, "spec"), _map(body, "status")
    owners = [_map(owner) for owner in _list(metadata, "ownerReferences")]
    labels = _map(metadata, "labels")
    return JobSeen(
        name=_text(metadata, "name"),
        uid=_text(metadata, "uid"),
        ours=(
            any(owner.get("uid") == owner_uid for owner in owners)
            if owners
            else labels.get(RUN_UID_LABEL) == owner_uid
        ),
        created_at=_time(metadata, "creationTimestamp"),
        started_at=_time(status, "startTime"),
        deleting="deletionTimestamp" in metadata,
        suspended=bool(spec.get("suspend")),
        queued=bool(labels.get(QUEUE_LABEL)),
        conditions=_conditions(status),
    )


def pod_seen(body: Body, *, gone: bool = False) -> PodSeen:
    metadata, spec, status = _map(body, "metadata"), _map(body, "spec"), _map(body, "status")
    limits = {
        _text(_map(container), "name"): "memory" in _map(_map(_map(container), "resources"), "limits")
        for container in _list(spec, "containers")
    }
    main = [_container(_map(seen), limits) for seen in _list(status, "containerStatuses")]
    return PodSeen(
        name=_text(metadata, "name"),
        uid=_text(metadata, "uid"),
        node=_text(spec, "nodeName") or None,
        phase=_text(status, "phase") or "Pending",
        reason=_text(status, "reason") or None,
        message=_text(status, "message"),
        started_at=_time(status, "startTime"),
        delete_at=_time(metadata, "deletionTimestamp"),
        grace_s=float(metadata.get("deletionGracePeriodSeconds") or 0),
        agent=next((seen for seen in main if seen.name == AGENT_CONTAINER), None),
        init=tuple(_container(_map(seen), limits) for seen in _list(status, "initContainerStatuses")),
        conditions=_conditions(status),
        gone=gone,
    )


def events_seen(bodies: Iterable[Body]) -> tuple[EventSeen, ...]:
    found = [
        EventSeen(
            reason=_text(body, "reason"),
            message=_text(body, "message") or _text(body, "note"),
            at=_time(body, "lastTimestamp")
            or _time(body, "eventTime")
            or _time(_map(body, "metadata"), "creationTimestamp"),
        )
        for body in bodies
    ]
    return tuple(sorted(found, key=lambda event: event.at.timestamp() if event.at else 0.0))


def _container(status: Body, limits: Mapping[str, bool]) -> ContainerSeen:
    state, last = _map(status, "state"), _map(status, "lastState")
    waiting, ended = _map(state, "waiting"), _map(state, "terminated")
    name = _text(status, "name")
    code = ended.get("exitCode")
    return ContainerSeen(
        name=name,
        running=bool(_map(state, "running")),
        waiting=_text(waiting, "reason") or None,
        waiting_message=_text(waiting, "message"),
        exit_code=code if isinstance(code, int) else None,
        reason=_text(ended, "reason") or None,
        message=_text(ended, "message"),
        finished_at=_time(ended, "finishedAt"),
        last_reason=_text(_map(last, "terminated"), "reason") or None,
        memory_limited=limits.get(name, False),
    )


def _conditions(status: Body) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=_text(found, "type"),
            true=found.get("status") == "True",
            reason=_text(found, "reason"),
            since=_time(found, "lastTransitionTime"),
            message=_text(found, "message"),
        )
        for found in map(_map, _list(status, "conditions"))
        if found.get("status") in ("True", "False")
    )


def _map(body: Any, key: str | None = None) -> Mapping[str, Any]:
    found = body if key is None else body.get(key)
    return found if isinstance(found, Mapping) else {}


def _list(body: Body, key: str) -> Sequence[Any]:
    found = body.get(key)
    return found if isinstance(found, list | tuple) else ()


def _text(body: Body, key: str) -> str:
    found = body.get(key)
    return found if isinstance(found, str) else ""


def _time(body: Body, key: str) -> datetime | None:
    try:
        return datetime.fromisoformat(_text(body, key))
    except ValueError:
        return None
