"""Named transitions of a run: each happens once, only from where it may, and says so in the lifecycle."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from assay_core.errors import ConfigError, LossReason, OwnershipLost, TransientError
from assay_core.model.run import RunOutcome, RunStatus
from assay_core.store.client import Store
from assay_core.store.owner import local_owner, owner_is_gone
from tests.builders import NOON, a_fenced_run, a_run, a_successor


def test_a_run_is_read_as_it_was_created(store: Store) -> None:
    run = a_run(max_steps=40, areas=["delays"], effort="low")
    store.runs.create(run)
    assert store.runs.get(run.id) == run


def test_a_run_is_created_once(store: Store) -> None:
    run = a_run()
    store.runs.create(run)
    with pytest.raises(ConfigError, match=run.id):
        store.runs.create(run)


def test_an_unknown_run_is_none(store: Store) -> None:
    assert store.runs.get("nothing") is None


def test_claim_takes_a_pending_run_and_says_so(store: Store) -> None:
    run = a_run()
    store.runs.create(run)
    claimed = store.runs.claim(run.id, 1, "me")
    assert (claimed.status, claimed.owner) == (RunStatus.RUNNING, "me")
    assert [(event.status, event.reason) for event in claimed.lifecycle] == [(RunStatus.RUNNING, "started")]


def test_claiming_again_as_the_same_owner_changes_nothing(store: Store) -> None:
    run = a_fenced_run(store)
    again = store.runs.claim(run.fence.run_id, 1, run.fence.owner)
    assert len(again.lifecycle) == 1


@pytest.mark.parametrize(
    ("attempt", "cancel", "reason"),
    [(1, False, LossReason.SUPERSEDED), (2, False, LossReason.SUPERSEDED), (1, True, LossReason.CANCELLED)],
)
def test_claim_refused_says_why(store: Store, attempt: int, cancel: bool, reason: LossReason) -> None:
    run = a_fenced_run(store).fence
    if cancel:
        store.runs.request_cancel(run.run_id)
    with pytest.raises(OwnershipLost) as caught:
        store.runs.claim(run.run_id, attempt, "another")
    assert caught.value.reason is reason


def test_claim_of_a_run_that_is_not_there_is_missing(store: Store) -> None:
    with pytest.raises(OwnershipLost) as caught:
        store.runs.claim("nothing", 1, "me")
    assert caught.value.reason is LossReason.MISSING


def test_of_many_who_claim_one_wins(store: Store) -> None:
    run = a_run()
    store.runs.create(run)

    def claim(owner: str) -> bool:
        try:
            store.runs.claim(run.id, 1, owner)
        except OwnershipLost:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, [f"owner-{n}" for n in range(8)])) == 1


def test_resume_starts_the_next_attempt_without_traces(store: Store) -> None:
    old = a_fenced_run(store)
    old.mark(raise_to={"last_checkpoint_step": 5})
    old.finish(status=RunStatus.FAILED, error="broken", discovery_id="d")
    resumed = store.runs.resume(old.fence.run_id, attempt=1)
    assert resumed
    assert (resumed.status, resumed.attempt, resumed.last_checkpoint_step) == (RunStatus.PENDING, 2, 0)
    assert (resumed.error, resumed.completed_at, resumed.discovery_id, resumed.owner) == (None,) * 4
    assert resumed.last_resumed_at
    assert (resumed.lifecycle[-1].status, resumed.lifecycle[-1].attempt) == (RunStatus.PENDING, 2)


def test_only_one_of_two_resumes_gets_the_run(store: Store) -> None:
    old = a_fenced_run(store)
    old.finish(status=RunStatus.FAILED, error="broken")
    with ThreadPoolExecutor(2) as pool:
        got = list(pool.map(lambda _: store.runs.resume(old.fence.run_id, attempt=1), range(2)))
    assert [run is None for run in got].count(True) == 1


@pytest.mark.parametrize(
    "status", [RunStatus.COMPLETED, RunStatus.CANCELLED, RunStatus.PENDING, RunStatus.RUNNING]
)
def test_only_a_failed_run_is_resumed(store: Store, status: RunStatus) -> None:
    run = a_run(status=status)
    store.runs.create(run)
    assert store.runs.resume(run.id, attempt=1) is None


def test_fail_unowned_needs_the_attempt_and_the_owner_it_saw(store: Store) -> None:
    run = a_fenced_run(store).fence
    assert not store.runs.fail_unowned(run.run_id, attempt=1, owner="another", reason="gone")
    assert not store.runs.fail_unowned(run.run_id, attempt=2, owner=run.owner, reason="gone")
    assert store.runs.fail_unowned(run.run_id, attempt=1, owner=run.owner, reason="gone")
    found = store.runs.get(run.run_id)
    assert found
    assert (found.status, found.error) == (RunStatus.FAILED, "gone")
    assert not store.runs.fail_unowned(run.run_id, attempt=1, owner=run.owner, reason="gone")


def test_a_run_that_nobody_claimed_can_be_failed(store: Store) -> None:
    run = a_run()
    store.runs.create(run)
    assert store.runs.fail_unowned(run.id, attempt=1, owner=None, reason="never started")


def test_cancel_ends_an_active_run_and_leaves_an_ended_one(store: Store) -> None:
    run = a_run()
    store.runs.create(run)
    assert store.runs.request_cancel(run.id)
    assert not store.runs.request_cancel(run.id)
    assert not store.runs.request_cancel("nothing")
    found = store.runs.get(run.id)
    assert found
    assert (found.status, found.lifecycle[-1].status) == (RunStatus.CANCELLED, RunStatus.CANCELLED)


def test_the_lifecycle_tells_the_whole_story(store: Store) -> None:
    new = a_successor(store, a_fenced_run(store))
    new.finish(status=RunStatus.COMPLETED)
    found = store.runs.get(new.fence.run_id)
    assert found
    assert [(event.status.value, event.attempt) for event in found.lifecycle] == [
        ("running", 1), ("failed", 1), ("pending", 2), ("running", 2), ("completed", 2),
    ]  # fmt: skip


def test_find_takes_the_beginning_of_an_id(store: Store) -> None:
    for identifier in ("abc-1", "abc-2", "x.y", "xzy", "abc"):
        store.runs.create(a_run(id=identifier))
    assert store.runs.find("abc-2").id == "abc-2"
    assert store.runs.find("abc").id == "abc"
    assert store.runs.find("x.").id == "x.y"
    with pytest.raises(ConfigError, match="abc-1, abc-2"):
        store.runs.find("abc-")
    with pytest.raises(ConfigError, match="no run"):
        store.runs.find("q")
    with pytest.raises(ConfigError):
        store.runs.find("")


def test_recent_runs_come_latest_first(store: Store) -> None:
    for hour in range(4):
        store.runs.create(
            a_run(id=f"r{hour}", project_id=f"p{hour % 2}", started_at=NOON + timedelta(hours=hour))
        )
    assert [run.id for run in store.runs.recent(limit=3)] == ["r3", "r2", "r1"]
    assert [run.id for run in store.runs.recent(project_id="p0")] == ["r2", "r0"]


def test_active_runs_are_those_that_have_not_ended(store: Store) -> None:
    running, ended = a_fenced_run(store), a_fenced_run(store)
    ended.finish(status=RunStatus.COMPLETED)
    assert [run.id for run in store.runs.active()] == [running.fence.run_id]


def test_outcomes_are_kept_per_attempt_and_owner(store: Store) -> None:
    outcome = RunOutcome(
        run_id="r", attempt=1, owner="pod:1", exit_code=13, class_="OwnershipLost", reason="Superseded"
    )
    store.outcomes.put(outcome)
    store.outcomes.put(outcome.model_copy(update={"owner": "pod:2", "exit_code": 0}))
    store.outcomes.put(outcome)
    assert store.outcomes.get("r", 1, "pod:1") == outcome
    assert store.outcomes.get("r", 2, "pod:1") is None
    assert {found.owner for found in store.outcomes.of_run("r")} == {"pod:1", "pod:2"}


def test_this_process_is_an_owner_that_is_there() -> None:
    assert not owner_is_gone(local_owner())


def test_word_of_a_suspend_is_kept_for_its_attempt_and_taken_back_by_the_next(store: Store) -> None:
    run = a_run()
    store.runs.create(run)
    assert not store.runs.request_suspend(run.id, attempt=2)
    assert store.runs.request_suspend(run.id, attempt=1)
    found = store.runs.get(run.id)
    assert found is not None
    assert found.suspend_requested
    store.runs.fail_unowned(run.id, attempt=1, owner=None, reason="Suspended")
    assert not store.runs.request_suspend(run.id, attempt=1)
    resumed = store.runs.resume(run.id, attempt=1, reason="continue")
    assert resumed is not None
    assert not resumed.suspend_requested


def test_stamps_tell_in_one_query_which_runs_were_written_to(store: Store) -> None:
    first, second = a_run(), a_run()
    store.runs.create(first)
    store.runs.create(second)
    before = store.runs.stamps([first.id, second.id, "unknown"])
    assert set(before) == {first.id, second.id}
    store.runs.claim(first.id, 1, "owner")
    after = store.runs.stamps([first.id, second.id])
    assert after[first.id] != before[first.id]
    assert after[second.id] == before[second.id]


def test_store_that_is_opened_later_asks_nothing_until_it_is_used(store: Store, mongo_uri: str) -> None:
    away = Store.later("mongodb://127.0.0.1:9", "x", timeout_s=0.2)
    with pytest.raises(TransientError):
        away.runs.get("r")
    away.client.close()
    there = Store.later(mongo_uri, store.database.name)
    run = a_run()
    store.runs.create(run)
    assert there.runs.get(run.id) is not None
    there.client.close()
    with pytest.raises(ConfigError, match="MONGODB_URI"):
        Store.later("nonsense://x", "x")
