"""Every row of the failure table, from bodies as the API server gives them; and what must hold of any evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_core.model.run import DiscoveryRun, RunOutcome, RunStatus
from assay_operator.findings import Evidence, Finding, Going, Over, Retry, Stalled
from assay_operator.outcome import judge
from assay_operator.seen import events_seen, job_seen, pod_seen

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
OWNER = "uid-of-the-run"


def at(seconds_ago: float) -> str:
    return (NOW - timedelta(seconds=seconds_ago)).isoformat().replace("+00:00", "Z")


def a_run(status: str = "running", *, owner: str | None = "pod-1", error: str | None = None) -> DiscoveryRun:
    return DiscoveryRun(
        id="r", project_id="p", attempt=1, status=RunStatus(status), owner=owner, error=error, started_at=NOW, updated_at=NOW
    )  # fmt: skip


def a_record(class_: str, *, owner: str = "pod-1", code: int | None = 1, reason: str = "Why") -> RunOutcome:
    return RunOutcome.model_validate(
        {"run_id": "r", "attempt": 1, "owner": owner, "exit_code": code, "class": class_, "reason": reason}
    )


def a_job(
    *conditions: Mapping[str, str],
    owner: str = OWNER,
    suspend: bool = False,
    queue: str | None = None,
    started: bool = True,
    deleting: bool = False,
    age_s: float = 30,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": "flights-a1",
        "uid": "job-1",
        "creationTimestamp": at(age_s),
        "ownerReferences": [{"uid": owner}],
        "labels": {"kueue.x-k8s.io/queue-name": queue} if queue else {},
    }
    if deleting:
        metadata["deletionTimestamp"] = at(1)
    status: dict[str, Any] = {"conditions": list(conditions)}
    if started and not suspend:
        status["startTime"] = at(age_s)
    return {"metadata": metadata, "spec": {"suspend": suspend}, "status": status}


def true(kind: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": reason, "message": message}


FAILED = true("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
COMPLETE = true("Complete")


def a_pod(
    *,
    phase: str = "Running",
    agent: Mapping[str, Any] | None = None,
    init: Mapping[str, Any] | None = None,
    conditions: tuple[Mapping[str, str], ...] = (),
    reason: str | None = None,
    message: str = "",
    delete_at_s: float | None = None,
    grace_s: int = 30,
    age_s: float = 30,
    limits: bool = False,
    last: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "flights-a1-x", "uid": "pod-1"}
    if delete_at_s is not None:
        metadata |= {"deletionTimestamp": at(delete_at_s), "deletionGracePeriodSeconds": grace_s}
    resources = {"limits": {"memory": "1Gi"}} if limits else {}
    status: dict[str, Any] = {
        "phase": phase,
        "startTime": at(age_s),
        "conditions": list(conditions),
        "message": message,
    }
    if reason:
        status["reason"] = reason
    if agent is not None:
        status["containerStatuses"] = [
            {"name": "sidecar", "state": {"running": {}}},
            {"name": "agent", "state": agent, "lastState": last or {}},
        ]
    if init is not None:
        status["initContainerStatuses"] = [{"name": "pack", "state": init}]
    return {
        "metadata": metadata,
        "spec": {"nodeName": "node-1", "containers": [{"name": "agent", "resources": resources}]},
        "status": status,
    }


def ended(code: int, reason: str = "Error", message: str = "", ago_s: float = 5) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, "finishedAt": at(ago_s)}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def failed_pod(code: int, **more: Any) -> dict[str, Any]:
    reason, message = more.pop("agent_reason", "Error"), more.pop("agent_message", "")
    return a_pod(phase="Failed", agent=ended(code, reason, message), **more)


def evidence(
    *,
    run: DiscoveryRun | None = None,
    records: tuple[RunOutcome, ...] = (),
    job: Mapping[str, Any] | None = None,
    pod: Mapping[str, Any] | None = None,
    job_events: tuple[tuple[str, str], ...] = (),
    pod_events: tuple[tuple[str, str], ...] = (),
    **more: Any,
) -> Evidence:
    def events(found: tuple[tuple[str, str], ...]) -> Any:
        return events_seen({"reason": why, "message": text, "lastTimestamp": at(1)} for why, text in found)

    gone = bool(more.pop("gone", False))
    return Evidence(
        now=NOW,
        run=run or a_run(),
        records=records,
        job=None if job is None else job_seen(job, owner_uid=OWNER),
        pod=None if pod is None else pod_seen(pod, gone=gone),
        job_events=events(job_events),
        pod_events=events(pod_events),
        **more,
    )


PENDING = a_run("pending", owner=None)
TERMINATION = '{"run_id": "r", "reason": "MongodbUnavailable", "message": "MongoDB is not reachable"}'
DEADLINE = true("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")


def unschedulable() -> dict[str, str]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes: Insufficient cpu",
    }


TABLE: list[tuple[str, Evidence, str]] = [
    ("0 completed", evidence(run=a_run("completed"), job=a_job(FAILED), pod=failed_pod(137)), "0 Succeeded"),
    ("0 cancelled", evidence(run=a_run("cancelled"), job=a_job(COMPLETE)), "0 Cancelled"),
    ("0 record", evidence(records=(a_record("Limit", reason="DeadlineReached"),), job=a_job(FAILED)), "0 Failed Limit/DeadlineReached"),
    ("0 record of success before the document", evidence(records=(a_record("Completed"),), job=a_job()), "Running"),
    ("0 failed without record", evidence(run=a_run("failed", error="WarehouseUnavailable: gone"), job=a_job()), "0 Failed Unknown/WarehouseUnavailable"),
    ("0 our own verdict", evidence(run=a_run("failed", error="Interrupted: x"), records=(a_record("Interrupted"), a_record("Infrastructure", owner="operator", reason="PreemptionByScheduler"))), "0 Failed Infrastructure/PreemptionByScheduler"),
    ("0 suspended, stored", evidence(run=a_run("failed", error="Suspended: x"), records=(a_record("Suspended", owner="operator"),)), "0 Suspended"),
    ("1 suspend", evidence(run=a_run("failed", error="Interrupted: x"), records=(a_record("Interrupted"),), stopping="suspend", job=None, pod=failed_pod(143), gone=True), "1 Suspended"),
    ("1 suspend, whatever the code", evidence(stopping="suspend", job=a_job(COMPLETE), pod=a_pod(phase="Succeeded", agent=ended(0))), "1 Suspended"),
    ("1 not before its end", evidence(stopping="suspend", job=a_job(), pod=a_pod(agent={"running": {}})), "Running"),
    ("2 foreign Job", evidence(run=PENDING, job=a_job(owner="somebody")), "2 Failed Config/NameConflict"),
    ("2 foreign Job on its way out", evidence(run=PENDING, job=a_job(owner="somebody", deleting=True)), "Starting"),
    ("3 queued", evidence(run=PENDING, job=a_job(suspend=True, queue="team")), "Queued"),
    ("3 taken back", evidence(job=a_job(suspend=True, queue="team"), pod=failed_pod(143), gone=True), "3 Evicted Infrastructure/Evicted"),
    ("4 Job gone", evidence(job=None), "4 Failed Infrastructure/JobDeletedExternally"),
    ("4 not yet created", evidence(run=PENDING, job=None, job_created=False), "Starting"),
    ("5 deadline", evidence(job=a_job(DEADLINE), pod=failed_pod(143)), "5 Failed Limit/DeadlineExceeded"),
    ("5 deadline before the start", evidence(run=PENDING, job=a_job(DEADLINE), pending_since=NOW, pod=a_pod(phase="Failed", conditions=(unschedulable(),))), "24 Failed Capacity/Unschedulable"),
    ("6 out of memory", evidence(job=a_job(FAILED), pod=failed_pod(137, agent_reason="OOMKilled")), "6 Failed Resource/OOMKilled"),
    ("6 a grandchild, code 0", evidence(job=a_job(COMPLETE), pod=a_pod(phase="Succeeded", agent=ended(0, "OOMKilled"))), "6 Failed Resource/OOMKilled"),
    ("6 in an earlier life", evidence(job=a_job(FAILED), pod=a_pod(phase="Failed", agent=ended(1), last=ended(137, "OOMKilled"))), "6 Failed Resource/OOMKilled"),
    ("6 the init container", evidence(job=a_job(FAILED), pod=a_pod(phase="Failed", agent=waiting("PodInitializing"), init=ended(137, "OOMKilled"))), "6 Failed Resource/OOMKilled"),
    ("7 no record", evidence(job=a_job(COMPLETE), pod=a_pod(phase="Succeeded", agent=ended(0, "Completed"))), "7 Failed Agent/CompletedWithoutResult"),
    ("8 storage", evidence(job=a_job(FAILED), pod=failed_pod(137, reason="Evicted", message="Pod ephemeral local storage usage exceeds the total limit of containers 1Mi.")), "8 Failed Resource/EphemeralStorageExceeded"),
    ("9 preempted", evidence(job=a_job(FAILED), pod=failed_pod(143, conditions=(true("DisruptionTarget", "PreemptionByScheduler", "preempting"),))), "9 Failed Infrastructure/PreemptionByScheduler"),
    ("9 not before the end", evidence(job=a_job(), pod=a_pod(agent={"running": {}}, conditions=(true("DisruptionTarget", "EvictionByEvictionAPI"),))), "Running"),
    ("10 node pressure", evidence(job=a_job(FAILED), pod=failed_pod(137, reason="Evicted", message="The node was low on resource: memory.")), "10 Failed Infrastructure/Evicted"),
    ("10 OutOfcpu", evidence(run=PENDING, job=a_job(FAILED), pod=a_pod(phase="Failed", reason="OutOfcpu")), "10 Failed Infrastructure/OutOfcpu"),
    ("11 dead node", evidence(job=a_job(), pod=a_pod(agent={"running": {}}, delete_at_s=61)), "11 Failed Infrastructure/NodeUnreachable"),
    ("11 not yet", evidence(job=a_job(), pod=a_pod(agent={"running": {}}, delete_at_s=59)), "Running"),
    ("12 deleted", evidence(job=a_job(FAILED), pod=failed_pod(143, delete_at_s=-20), gone=True), "12 Failed Infrastructure/PodDeletedExternally"),
    ("12 stopped by its deletion, seen only at the kubelet's last word", evidence(job=a_job(FAILED), pod=failed_pod(143, delete_at_s=0, grace_s=0), gone=True), "12 Failed Infrastructure/PodDeletedExternally"),
    ("12 deleted after its end", evidence(job=a_job(FAILED), pod=failed_pod(12, delete_at_s=-28), gone=True), "13 Failed Limit/LimitReached"),
    ("13 configuration", evidence(run=PENDING, job=a_job(FAILED), pod=failed_pod(10, agent_message="DOMAIN is not known")), "13 Failed Config/ConfigInvalid"),
    ("13 dependency, by its last words", evidence(job=a_job(FAILED), pod=failed_pod(11, agent_message=TERMINATION)), "13 Failed Infrastructure/MongodbUnavailable"),
    ("13 lost", evidence(job=a_job(FAILED), pod=failed_pod(13)), "13 Superseded"),
    ("13 nothing to replay", evidence(job=a_job(FAILED), pod=failed_pod(14)), "13 Failed Config/NothingToReplay"),
    ("13 waits for the Job", evidence(job=a_job(), pod=failed_pod(12)), "Running"),
    ("14 probably memory", evidence(job=a_job(FAILED), pod=failed_pod(137, limits=True)), "14 Failed Resource/ProbablyOOMKilled"),
    ("15 init failed", evidence(run=PENDING, job=a_job(FAILED), pod=a_pod(phase="Failed", agent=waiting("PodInitializing"), init=ended(3))), "15 Failed Config/InitFailed"),
    ("16 no such command", evidence(run=PENDING, job=a_job(FAILED), pod=failed_pod(128, agent_reason="StartError")), "16 Failed Config/StartError"),
    ("17 other code", evidence(job=a_job(FAILED), pod=failed_pod(139)), "17 Failed Agent/ExitCode139"),
    ("17 killed without a limit", evidence(job=a_job(FAILED), pod=failed_pod(137)), "17 Failed Agent/ExitCode137"),
    ("18 no pod left", evidence(job=a_job(FAILED)), "18 Failed Unknown/PodEvidenceLost"),
    ("19 bad name", evidence(run=PENDING, job=a_job(), pod=a_pod(phase="Pending", agent=waiting("InvalidImageName"))), "19 Stalled Config/InvalidImageName"),
    ("20 pull", evidence(run=PENDING, job=a_job(), pod=a_pod(phase="Pending", agent=waiting("ImagePullBackOff"), age_s=301)), "20 Stalled Config/ImagePullFailed"),
    ("20 pull, not yet", evidence(run=PENDING, job=a_job(), pod=a_pod(phase="Pending", agent=waiting("ErrImagePull"), age_s=299)), "Starting"),
    ("21 key missing", evidence(run=PENDING, job=a_job(), pod=a_pod(phase="Pending", agent=waiting("CreateContainerConfigError", "couldn't find key"), age_s=61)), "21 Stalled Config/SecretOrConfigMissing"),
    ("21 volume missing", evidence(run=PENDING, job=a_job(), pod=a_pod(phase="Pending", agent=waiting("ContainerCreating"), age_s=61), pod_events=(("FailedMount", 'secret "x" not found'),)), "21 Stalled Config/SecretOrConfigMissing"),
    ("22 quota of pods", evidence(run=PENDING, job=a_job(), job_events=(("FailedCreate", 'pods "x" is forbidden: exceeded quota: q'),)), "22 Stalled Capacity/QuotaExceeded"),
    ("22 quota of Jobs", evidence(run=PENDING, job=None, job_created=False, refused="exceeded quota: q, requested: count/jobs.batch=1"), "22 Stalled Capacity/QuotaExceeded"),
    ("23 policy", evidence(run=PENDING, job=a_job(), job_events=(("FailedCreate", 'violates PodSecurity "restricted:latest"'),)), "23 Stalled Config/PodRejected"),
    ("24 unschedulable", evidence(run=PENDING, job=a_job(), pod=a_pod(phase="Pending", conditions=(unschedulable(),))), "Starting (0/1 nodes: Insufficient cpu)"),
    ("24 past its deadline", evidence(run=PENDING, job=a_job(), pod=a_pod(phase="Pending", conditions=(unschedulable(),)), pending_since=NOW - timedelta(hours=2)), "24 Failed Capacity/Unschedulable"),
    ("19 past its deadline", evidence(run=PENDING, job=a_job(), pod=a_pod(phase="Pending", agent=waiting("InvalidImageName")), pending_since=NOW - timedelta(hours=2)), "19 Failed Config/InvalidImageName"),
    ("3 past its deadline", evidence(run=PENDING, job=a_job(suspend=True, queue="team"), pending_since=NOW - timedelta(hours=2)), "3 Failed Capacity/QuotaNotReserved"),
    ("25 a sidecar keeps it", evidence(job=a_job(), pod=a_pod(agent=ended(12, ago_s=61))), "25 Failed Limit/LimitReached"),
    ("25 it ended well, and said nothing", evidence(job=a_job(), pod=a_pod(agent=ended(0, ago_s=61))), "25 Failed Agent/CompletedWithoutResult"),
    ("25 not yet", evidence(job=a_job(), pod=a_pod(agent=ended(12, ago_s=59))), "Running"),
    ("25 the Job controller sleeps", evidence(run=PENDING, job=a_job(started=False, age_s=61)), "25 Stalled Infrastructure/JobControllerLag"),
    ("going", evidence(job=a_job(), pod=a_pod(agent={"running": {}})), "Running"),
]  # fmt: skip


def said(found: Finding) -> str:
    match found:
        case Over():
            why = f" {found.failure.class_}/{found.failure.reason}" if found.failure else ""
            return f"{found.row} {found.result}{why}"
        case Stalled():
            return f"{found.row} Stalled {found.failure.class_}/{found.failure.reason}"
        case Going():
            return f"{found.phase} ({found.unschedulable})" if found.unschedulable else found.phase


@pytest.mark.parametrize(("seen", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_row_of_the_failure_table(seen: Evidence, expected: str) -> None:
    assert said(judge(seen)) == expected


def test_table_has_a_case_for_every_row() -> None:
    assert {int(name.split()[0]) for name, _, _ in TABLE if name[0].isdigit()} == set(range(26))


@pytest.mark.parametrize(
    ("reason", "class_", "retry", "actor"),
    [
        ("PreemptionByScheduler", "Infrastructure", Retry.ALLOWED, "None"),
        ("PodDeletedExternally", "Infrastructure", Retry.ONCE, "None"),
        ("JobDeletedExternally", "Infrastructure", Retry.NEVER, "Platform"),
        ("OOMKilled", "Resource", Retry.NEVER, "User"),
        ("QuotaExceeded", "Capacity", Retry.NEVER, "Platform"),
        ("PodEvidenceLost", "Unknown", Retry.NEVER, "None"),
    ],
)
def test_who_acts_and_what_is_retried_follow_from_class_and_reason(
    reason: str, class_: str, retry: Retry, actor: str
) -> None:
    found = judge(evidence(run=a_run("failed"), records=(a_record(class_, reason=reason),)))
    assert isinstance(found, Over)
    assert found.failure
    assert (found.failure.retry, found.failure.actor) == (retry, actor)


@given(st.data())
def test_any_mixture_of_what_was_seen_is_judged_and_judged_alike(data: st.DataObject) -> None:
    """Total and a function: parts of different rows put together give a finding, the same one each time."""
    cases = [row[1] for row in TABLE]

    def draw(name: str) -> Any:
        return getattr(data.draw(st.sampled_from(cases)), name)

    parts = ("run", "records", "stopping", "job_created", "job", "pod", "job_events", "pod_events", "refused")
    mixed = replace(cases[0], **{name: draw(name) for name in parts})
    found = judge(mixed)
    assert found == judge(mixed)
    if isinstance(found, Over) and found.result == "Succeeded":
        assert mixed.run.status is RunStatus.COMPLETED


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["metadata", "spec", "status", "conditions", "containerStatuses", "state", "terminated", "exitCode", "name", "type"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    ).filter(lambda body: isinstance(body, dict))
)  # fmt: skip
def test_any_body_is_read(body: Any) -> None:
    job_seen(body, owner_uid=OWNER)
    assert pod_seen(body).over in (True, False)
    events_seen([body])
