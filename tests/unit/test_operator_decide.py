"""The reconcile decision: a table of what follows from what, and what must hold whatever was seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_core.errors import ResumeRefusal
from assay_core.model.run import DiscoveryRun, RunStatus
from assay_core.resume import Refused
from assay_operator.decide import (
    Asked,
    Decision,
    Expire,
    Finish,
    Hold,
    Launch,
    Observed,
    Purge,
    Refuse,
    Release,
    Settled,
    Stop,
    decide,
)
from assay_operator.findings import Failure, FailureClass, Finding, Going, Over, Stalled

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
NOTHING_SAVED = Refused(reason=ResumeRefusal.NO_CHECKPOINT, text="nothing was saved")


def a_run(status: str, attempt: int = 1, *, ended_s: float = 0) -> DiscoveryRun:
    return DiscoveryRun(
        id="r", project_id="p", attempt=attempt, status=RunStatus(status), started_at=NOW, updated_at=NOW,
        completed_at=NOW - timedelta(seconds=ended_s) if RunStatus(status).is_terminal else None,
    )  # fmt: skip


def over(result: str = "Failed", class_: str = "Agent", reason: str = "ExitCode3", row: int = 0) -> Over:
    failure = Failure(class_=FailureClass(class_), reason=reason) if result in ("Failed", "Evicted") else None
    return Over(row=row, result=result, failure=failure)  # type: ignore[arg-type]


def seen(**more: Any) -> Observed:
    asked = {name: more.pop(name) for name in tuple(more) if name in Asked.__slots__}
    status, attempt = more.pop("status", None), more.pop("attempt", 1)
    run = a_run(status, attempt, ended_s=more.pop("ended_s", 0)) if status else None
    return Observed(now=NOW, asked=Asked(**asked), run=run, **more)


RUNNING = Going(phase="Running")
LOST = over(class_="Infrastructure", reason="PreemptionByScheduler")
TABLE: list[tuple[str, Observed, Decision]] = [
    ("a new run", seen(), Launch(attempt=1, trigger="first")),
    ("suspended before it began", seen(suspend=True), Hold(reason="Suspended")),
    ("cancelled before it began", seen(cancel=True, suspend=True), Settled()),
    ("cancelled before it began, and asked to go on", seen(cancel=True, resume=True), Refuse(refused=Refused(reason=ResumeRefusal.CANCELLED, text="the run was cancelled, which is for good"))),
    ("no project", seen(project="ProjectNotFound"), Hold(reason="ProjectNotFound", again_s=15)),
    ("a project that works on another run", seen(busy="other"), Hold(reason="ProjectBusy", again_s=15, detail="other")),
    ("stored, and died before the Job", seen(status="pending"), Launch(attempt=1, trigger="intent")),
    ("resumed, and died before the next Job", seen(status="pending", attempt=2, finding=Going(phase="Starting"), job_there=True), Launch(attempt=2, trigger="intent")),
    ("continued beside a dead node, and died before the next Job", seen(status="pending", attempt=2, finding=Going(phase="Starting"), job_there=True, job_live=True), Launch(attempt=2, trigger="intent")),
    ("stored, Job there", seen(status="pending", job_created=True, job_there=True, job_live=True, finding=Going(phase="Starting")), Hold(reason="AttemptRunning")),
    ("the API would not have the Job", seen(status="pending", finding=Stalled(row=22, failure=Failure(class_=FailureClass.CAPACITY, reason="QuotaExceeded"))), Hold(reason="AttemptRunning")),
    ("running", seen(status="running", job_created=True, job_there=True, job_live=True, finding=RUNNING), Hold(reason="AttemptRunning")),
    ("cancel", seen(status="running", cancel=True, job_created=True, job_there=True, finding=RUNNING), Stop(why="cancel")),
    ("cancel wins over suspend and resume", seen(status="running", cancel=True, suspend=True, resume=True, finding=RUNNING), Stop(why="cancel")),
    ("suspend", seen(status="running", suspend=True, job_created=True, job_there=True, finding=RUNNING), Stop(why="suspend")),
    ("suspend, the Job is going", seen(status="running", suspend=True, job_created=True, finding=RUNNING), Hold(reason="Ending")),
    ("the attempt is over", seen(status="running", job_created=True, job_there=True, finding=over(row=17)), Finish(over=over(row=17))),
    ("the agent has said so, the Job lags", seen(status="failed", finding=Going(phase="Running")), Hold(reason="Ending")),
    ("an interrupted agent's end is ours to judge", seen(status="failed", finding=over(class_="Infrastructure", reason="PreemptionByScheduler", row=9)), Finish(over=over(class_="Infrastructure", reason="PreemptionByScheduler", row=9))),
    ("a verdict, and the Job still lives", seen(status="failed", finding=over(), job_there=True, job_live=True, ended_s=60), Stop(why="leftover")),
    ("a verdict, and the pod is just ending", seen(status="failed", finding=over(), job_there=True, job_live=True, ended_s=20), Hold(reason="Ending", again_s=40)),
    ("a verdict, and the node is dead", seen(status="failed", finding=over(class_="Infrastructure", reason="NodeUnreachable"), job_there=True, job_live=True, node_dead=True, retries=1, ended_s=31), Launch(attempt=2, trigger="retry", counted=True)),
    ("failed", seen(status="failed", finding=over()), Settled()),
    ("resume", seen(status="failed", finding=over(), resume=True), Launch(attempt=2, trigger="resume")),
    ("resume refused", seen(status="failed", finding=over(), resume=True, refused=NOTHING_SAVED), Refuse(refused=NOTHING_SAVED)),
    ("resume while the old Job lives", seen(status="failed", finding=over(), resume=True, job_live=True, job_there=True, ended_s=60), Stop(why="leftover")),
    ("suspended", seen(status="failed", finding=over("Suspended"), suspend=True), Hold(reason="Suspended")),
    ("continued", seen(status="failed", finding=over("Suspended"), refused=NOTHING_SAVED), Launch(attempt=2, trigger="continue")),
    ("taken back by the queue", seen(status="failed", finding=over("Evicted", "Infrastructure", "Evicted"), attempt=4), Launch(attempt=5, trigger="requeue")),
    ("held by another process", seen(status="failed", finding=over("Superseded")), Launch(attempt=2, trigger="supersede", counted=True)),
    ("held again and again", seen(status="failed", finding=over("Superseded"), auto_retries=3), Settled()),
    ("no retries unless asked for", seen(status="failed", finding=LOST, ended_s=9e9), Settled()),
    ("a retry, in a while", seen(status="failed", finding=LOST, retries=2, ended_s=10), Hold(reason="Backoff", again_s=20)),
    ("a retry", seen(status="failed", finding=LOST, retries=2, ended_s=30), Launch(attempt=2, trigger="retry", counted=True)),
    ("a second retry waits twice as long", seen(status="failed", finding=LOST, retries=2, auto_retries=1, ended_s=30), Hold(reason="Backoff", again_s=30)),
    ("retries used up", seen(status="failed", finding=LOST, retries=2, auto_retries=2, ended_s=9e9), Settled()),
    ("only infrastructure is retried", seen(status="failed", finding=over(), retries=9, ended_s=9e9), Settled()),
    ("a pod deleted by hand is retried once", seen(status="failed", finding=over(class_="Infrastructure", reason="PodDeletedExternally"), retries=5, auto_retries=1, ended_s=9e9), Settled()),
    ("cancelled, Job there", seen(status="cancelled", cancel=True, job_there=True, job_live=True, rows_left=True), Stop(why="leftover")),
    ("cancelled, rows there", seen(status="cancelled", cancel=True, rows_left=True), Purge()),
    ("cancelled", seen(status="cancelled", cancel=True), Settled()),
    ("completed", seen(status="completed"), Settled()),
    ("completed, and asked to go on", seen(status="completed", resume=True), Refuse(refused=Refused(reason=ResumeRefusal.NOT_FAILED, text="the run has succeeded; only a failed one is resumed"))),
    ("cancelled, and asked to go on", seen(status="cancelled", resume=True), Refuse(refused=Refused(reason=ResumeRefusal.CANCELLED, text="the run was cancelled, which is for good"))),
    ("taken back by the queue, its Job still suspended", seen(status="failed", finding=over("Evicted", "Infrastructure", "Evicted"), job_live=True), Stop(why="leftover")),
    ("completed, time to go", seen(status="completed", ttl_s=60, ended_s=60), Expire()),
    ("completed, not yet", seen(status="completed", ttl_s=60, ended_s=20), Settled(again_s=40)),
    ("MongoDB is away", seen(store_error="gone"), Hold(reason="StoreUnavailable", detail="gone")),
    ("deleted while it runs", seen(deleting=True, status="running", job_there=True, job_live=True, rows_left=True), Stop(why="delete")),
    ("deleted, Job there", seen(deleting=True, status="cancelled", job_there=True, rows_left=True), Stop(why="delete")),
    ("deleted, its node is dead", seen(deleting=True, status="cancelled", job_there=True, node_dead=True, rows_left=True), Purge()),
    ("deleted, rows there", seen(deleting=True, status="cancelled", rows_left=True), Purge()),
    ("deleted, rows to be kept", seen(deleting=True, status="failed", rows_left=True, retain=True), Release()),
    ("deleted, nothing left", seen(deleting=True, status="completed"), Release()),
    ("deleted before it began", seen(deleting=True), Release()),
    ("deleted, MongoDB is away", seen(deleting=True, store_error="gone"), Hold(reason="StoreUnavailable", detail="gone")),
    ("deleted, MongoDB is away, not to be waited for", seen(deleting=True, skip_purge=True, store_error="gone"), Release()),
    ("deleted, finalizer of somebody else", seen(deleting=True, finalized=False, rows_left=True), Settled()),
]  # fmt: skip


@pytest.mark.parametrize(("before", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_decision(before: Observed, expected: Decision) -> None:
    assert decide(before) == expected


findings: st.SearchStrategy[Finding | None] = st.none() | st.sampled_from(
    [
        RUNNING,
        Going(phase="Queued"),
        Stalled(row=19, failure=Failure(class_=FailureClass.CONFIG, reason="InvalidImageName")),
        *(
            over(result, class_, reason, row)
            for row in (0, 9)
            for result, class_, reason in (
                ("Failed", "Agent", "ExitCode3"),
                ("Failed", "Infrastructure", "PreemptionByScheduler"),
                ("Suspended", "Agent", ""),
                ("Evicted", "Infrastructure", "Evicted"),
                ("Superseded", "Agent", ""),
            )
        ),
    ]
)
flags = st.booleans()
observations = st.builds(
    Observed,
    now=st.just(NOW),
    asked=st.builds(
        Asked, cancel=flags, suspend=flags, resume=flags, deleting=flags, skip_purge=flags, retain=flags,
        retries=st.integers(0, 5), ttl_s=st.none() | st.floats(0, 1e6),
    ),
    run=st.none() | st.builds(
        a_run, st.sampled_from([status.value for status in RunStatus]), st.integers(1, 50), ended_s=st.floats(0, 1e6)
    ),
    finding=findings, job_created=flags, job_there=flags, job_live=flags, node_dead=flags, rows_left=flags, finalized=flags,
    project=st.none() | st.just("ProjectNotFound"), busy=st.none() | st.just("other"),
    refused=st.none() | st.just(NOTHING_SAVED), auto_retries=st.integers(0, 5), store_error=st.none() | st.just("gone"),
)  # fmt: skip


@given(observations)
def test_same_observation_gives_the_same_decision(before: Observed) -> None:
    assert decide(before) == decide(before)


@given(observations)
def test_no_attempt_begins_before_the_last_one_has_ended(before: Observed) -> None:
    decision = decide(before)
    if not isinstance(decision, Launch):
        return
    assert not before.asked.deleting
    assert not before.asked.cancel
    assert not before.asked.suspend
    assert before.store_error is None
    if before.run is None:
        assert (decision.attempt, decision.trigger) == (1, "first")
    elif decision.trigger == "intent":
        # The attempt is stored and has no Job yet: never a second Job for it.
        assert not before.job_created
        assert decision.attempt == before.run.attempt
    else:
        assert before.run.status is RunStatus.FAILED
        assert isinstance(before.finding, Over)
        assert before.finding.row == 0  # its verdict is stored
        assert before.node_dead or not before.job_live
        assert decision.attempt == before.run.attempt + 1


@given(observations)
def test_attempt_that_is_stored_gets_its_job(before: Observed) -> None:
    """Whatever is left of the attempts before it: an operator that died between the two loses no run."""
    stored = before.run is not None and not before.run.status.is_terminal and not before.job_created
    held = isinstance(before.finding, Over | Stalled) or before.store_error is not None
    asked = before.asked.deleting or before.asked.cancel or before.asked.suspend
    if stored and not held and not asked:
        assert isinstance(decide(before), Launch)


@given(observations)
def test_cancelled_run_never_goes_on_and_rows_go_only_after_the_job(before: Observed) -> None:
    decision = decide(before)
    if before.run is not None and before.run.status is RunStatus.CANCELLED:
        assert not isinstance(decision, Launch | Finish)
    if isinstance(decision, Purge):
        assert before.run is None or before.run.status.is_terminal
        assert before.node_dead or not (before.job_live and not before.asked.deleting)


@given(observations)
def test_nothing_is_let_go_while_something_is_left(before: Observed) -> None:
    decision = decide(before)
    if isinstance(decision, Release) and not before.asked.skip_purge:
        assert before.run is None or before.run.status.is_terminal
        assert before.node_dead or not before.job_there
        assert before.asked.retain or not before.rows_left
