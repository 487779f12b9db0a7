"""Cancelling and resuming as requests: what is let through, what is refused and why, and what is left afterwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assay_core import clock
from assay_core.errors import ConfigError, OwnershipLost, ResumeRefusal, ResumeRefused
from assay_core.model.run import DiscoveryRun, RunStatus
from assay_core.store import names
from assay_core.store.client import Store
from assay_core.store.control import cancel_run, resume_run
from assay_core.store.fence import FencedRun
from tests.builders import a_checkpoint, a_feed_row, a_fenced_run, a_run, an_area


def a_failed_run(store: Store, *, steps: int = 2, **fields: Any) -> FencedRun:
    """A run whose first attempt saved some steps and an area, and failed."""
    fenced = a_fenced_run(store, run=a_run(**fields))
    for number in range(1, steps + 1):
        store.checkpoints.write_step(fenced, a_checkpoint(fenced.fence.run_id, number))
    store.checkpoints.write_area(fenced, an_area(fenced.fence.run_id))
    fenced.mark(raise_to={"last_checkpoint_step": steps})
    fenced.finish(status=RunStatus.FAILED, error="broken", discovery_id="d" * 24, active_ms=5)
    return fenced


def read(store: Store, run_id: str) -> DiscoveryRun:
    found = store.runs.get(run_id)
    assert found is not None
    return found


def refused(store: Store, run_id: str) -> ResumeRefused:
    with pytest.raises(ResumeRefused) as caught:
        resume_run(store, run_id)
    assert "\n" not in str(caught.value)
    return caught.value


# -------------------------------------------------------------------------------------------------------- cancel


def test_cancel_marks_first_then_removes_both_kinds_of_rows_and_the_vectors(store: Store) -> None:
    fenced = a_fenced_run(store)
    run_id = fenced.fence.run_id
    store.checkpoints.write_step(fenced, a_checkpoint(run_id, 1))
    store.checkpoints.write_area(fenced, an_area(run_id))
    dropped: list[tuple[str, RunStatus, int]] = []

    def drop(name: str) -> None:
        dropped.append((name, read(store, run_id).status, len(store.checkpoints.steps(run_id))))

    done = cancel_run(store, run_id, drop_vectors=drop)
    assert (done.before, done.rows) == (RunStatus.RUNNING, 2)
    assert dropped == [(f"assay_run_{run_id}", RunStatus.CANCELLED, 0)]
    with pytest.raises(OwnershipLost, match="cancelled"):
        fenced.mark()


def test_cancel_again_removes_what_a_dying_agent_left(store: Store) -> None:
    fenced = a_fenced_run(store)
    run_id = fenced.fence.run_id
    cancel_run(store, run_id, drop_vectors=lambda _: None)
    store.checkpoints.write_step(fenced, a_checkpoint(run_id, 1))
    done = cancel_run(store, run_id, drop_vectors=lambda _: None)
    assert (done.before, done.rows) == (RunStatus.CANCELLED, 1)
    assert store.checkpoints.steps(run_id) == []


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED])
def test_ended_run_is_not_cancelled_and_keeps_its_rows(store: Store, status: RunStatus) -> None:
    fenced = a_fenced_run(store)
    store.checkpoints.write_step(fenced, a_checkpoint(fenced.fence.run_id, 1))
    fenced.finish(status=status)
    with pytest.raises(ConfigError, match=f"is {status}; only a pending or running run"):
        cancel_run(store, fenced.fence.run_id, drop_vectors=lambda _: None)
    assert len(store.checkpoints.steps(fenced.fence.run_id)) == 1


def test_cancel_of_nothing_is_one_line(store: Store) -> None:
    with pytest.raises(ConfigError, match="no run nothing"):
        cancel_run(store, "nothing", drop_vectors=lambda _: None)


# -------------------------------------------------------------------------------------------------------- resume


def test_resume_starts_the_next_attempt_and_renews_the_retention_of_what_it_stands_on(store: Store) -> None:
    fenced = a_failed_run(store)
    run_id = fenced.fence.run_id
    old = clock.now() - timedelta(hours=47)
    for collection in (names.CHECKPOINTS, names.AREA_CHECKPOINTS):
        store.database[collection].update_many({"run_id": run_id}, {"$set": {"created_at": old}})
    resumed = resume_run(store, run_id, reason="asked")
    assert (resumed.status, resumed.attempt, resumed.last_checkpoint_step) == (RunStatus.PENDING, 2, 0)
    assert (resumed.error, resumed.completed_at, resumed.discovery_id, resumed.owner) == (None,) * 4
    assert resumed.active_ms == 5
    assert resumed.lifecycle[-1].reason == "asked"
    written = [row.created_at for row in store.checkpoints.steps(run_id)]
    written += [row.created_at for row in store.checkpoints.areas(run_id)]
    assert len(written) == 3
    assert all(datetime.now(UTC) - at < timedelta(minutes=1) for at in written)


@pytest.mark.parametrize(
    ("status", "reason"),
    [(RunStatus.COMPLETED, ResumeRefusal.NOT_FAILED), (RunStatus.CANCELLED, ResumeRefusal.CANCELLED)],
)
def test_only_a_failed_run_is_resumed_and_cancelled_is_said_apart(
    store: Store, status: RunStatus, reason: ResumeRefusal
) -> None:
    fenced = a_fenced_run(store)
    store.checkpoints.write_step(fenced, a_checkpoint(fenced.fence.run_id, 1))
    if status is RunStatus.CANCELLED:
        store.runs.request_cancel(fenced.fence.run_id)
    else:
        fenced.finish(status=status)
    assert refused(store, fenced.fence.run_id).reason is reason


def test_run_that_died_before_its_first_step_has_nothing_to_replay(store: Store) -> None:
    fenced = a_fenced_run(store)
    fenced.finish(status=RunStatus.FAILED, error="broken")
    error = refused(store, fenced.fence.run_id)
    assert error.reason is ResumeRefusal.NO_CHECKPOINT
    assert "start a new run" in str(error)


@pytest.mark.parametrize("left", ["nothing", "areas", "summary", "later steps"])
def test_run_whose_first_steps_are_gone_has_expired(store: Store, left: str) -> None:
    fenced = a_failed_run(store, steps=3)
    run_id = fenced.fence.run_id
    gone: dict[str, Any] = {"step_number": 1} if left == "later steps" else {}
    store.database[names.CHECKPOINTS].delete_many({"run_id": run_id, **gone})
    if left == "nothing":
        store.database[names.AREA_CHECKPOINTS].delete_many({"run_id": run_id})
    if left == "summary":
        store.checkpoints.write_summary(
            fenced, a_checkpoint(run_id, 0, kind="exploration_summary", total_steps=3)
        )
    error = refused(store, run_id)
    assert error.reason is ResumeRefusal.EXPIRED
    assert "DISCOVERY_CHECKPOINT_RETENTION" in str(error)


def test_another_active_run_of_the_project_refuses_and_is_named(store: Store) -> None:
    fenced = a_failed_run(store)
    other = a_run()
    store.runs.create(other)
    error = refused(store, fenced.fence.run_id)
    assert error.reason is ResumeRefusal.ANOTHER_RUN_ACTIVE
    assert other.id[:8] in str(error)
    elsewhere = a_failed_run(store, project_id="another")
    assert resume_run(store, elsewhere.fence.run_id).attempt == 2


def test_run_that_appears_after_the_flip_makes_the_resume_stand_down(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fenced = a_failed_run(store)
    run_id = fenced.fence.run_id
    before = read(store, run_id)
    flip = store.runs.resume

    def flip_and_start(*args: Any, **named: Any) -> Any:
        resumed = flip(*args, **named)
        store.runs.create(a_run())
        return resumed

    monkeypatch.setattr(store.runs, "resume", flip_and_start)
    assert refused(store, run_id).reason is ResumeRefusal.ANOTHER_RUN_ACTIVE
    after = read(store, run_id)
    assert (after.status, after.attempt) == (RunStatus.FAILED, 2)
    kept = ("error", "completed_at", "discovery_id", "last_checkpoint_step")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert "stood down" in after.lifecycle[-1].reason


def test_of_many_who_resume_at_once_one_gets_the_run(store: Store) -> None:
    fenced = a_failed_run(store)

    def ask(_: int) -> str:
        try:
            return str(resume_run(store, fenced.fence.run_id).attempt)
        except ResumeRefused as error:
            return error.reason

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    assert answers.count("2") == 1
    assert set(answers) - {"2"} <= {ResumeRefusal.LOST_RACE, ResumeRefusal.NOT_FAILED}
    assert read(store, fenced.fence.run_id).attempt == 2


# ----------------------------------------------------------------------------------- rows that were tampered with


@pytest.mark.parametrize(
    "damage",
    [
        {"kind": "a_kind_of_tomorrow"},
        {"action": "dance"},
        {"timestamp": "yesterday"},
        {"query_result": "none"},
        {"row_count": "many"},
    ],
)
def test_row_that_cannot_be_read_ends_the_prefix(store: Store, damage: dict[str, Any]) -> None:
    fenced = a_failed_run(store, steps=3)
    run_id = fenced.fence.run_id
    store.database[names.CHECKPOINTS].update_one({"run_id": run_id, "step_number": 2}, {"$set": damage})
    assert [row.step_number for row in store.checkpoints.steps(run_id)] == [1]


def test_damaged_area_is_analysed_again_and_the_others_are_kept(store: Store) -> None:
    fenced = a_failed_run(store)
    run_id = fenced.fence.run_id
    store.checkpoints.write_area(fenced, an_area(run_id, "gaps"))
    store.database[names.AREA_CHECKPOINTS].update_one(
        {"run_id": run_id, "area_id": "delays"}, {"$set": {"insights": "none"}}
    )
    assert [row.area_id for row in store.checkpoints.areas(run_id)] == ["gaps"]


def test_row_from_before_a_field_existed_is_read_with_its_default(store: Store) -> None:
    fenced = a_failed_run(store, steps=1)
    run_id = fenced.fence.run_id
    absent = {"attempt": "", "kind": "", "columns": "", "caveats": "", "fix_attempts": ""}
    store.database[names.CHECKPOINTS].update_one({"run_id": run_id}, {"$unset": absent})
    [row] = store.checkpoints.steps(run_id)
    assert (row.attempt, row.kind, row.caveats) == (1, "step", [])
    assert [mark.attempt for mark in store.checkpoints.marks(run_id)] == [1]


def test_feed_goes_on_in_order_when_the_clock_jumps_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fenced = a_fenced_run(store)
    store.feed.append(fenced, a_feed_row(1))
    last = store.feed.rows(fenced.fence.run_id, attempt=1)[-1].id
    monkeypatch.setattr("time.time", lambda: 1_000_000_000.0)
    store.feed.append(fenced, a_feed_row(2))
    store.feed.append_all(fenced, [a_feed_row(3), a_feed_row(4)])
    after = store.feed.rows(fenced.fence.run_id, attempt=1, since_id=last)
    assert [row.step_num for row in after] == [2, 3, 4]
