"""The fence on a real server: who may write, what a lost run says, and what a dead server does to a mark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from assay_core import clock
from assay_core.errors import LossReason, OwnershipLost, TransientError
from assay_core.model.run import RunStatus
from assay_core.store import names
from assay_core.store.client import Store
from assay_core.store.fence import Fence, FencedRun
from assay_core.store.rows import Insert, Put
from tests.builders import a_checkpoint, a_feed_row, a_fenced_run, a_run, a_successor
from tests.relay import Relay, over, relay_to


def lost(reason: LossReason) -> Any:
    return pytest.raises(OwnershipLost, match=str(reason))


def row(store: Store, collection: str, identifier: str) -> dict[str, Any] | None:
    return store.database[collection].find_one({"_id": identifier})


# -------------------------------------------------------------------------------------------------------- mark


def test_mark_changes_counts_appends_and_raises_at_once(store: Store) -> None:
    run = a_fenced_run(store, run=a_run(last_checkpoint_step=4))
    before = store.runs.get(run.fence.run_id)
    run.mark(
        set={"phase": "exploration", "progress": 10},
        inc={"total_queries": 2},
        push={"phase_timings": {"phase": "init", "duration_ms": 5}},
        raise_to={"last_checkpoint_step": 3, "insights_found": 7},
    )
    after = store.runs.get(run.fence.run_id)
    assert before
    assert after
    assert (after.phase, after.progress, after.total_queries) == ("exploration", 10, 2)
    assert (after.last_checkpoint_step, after.insights_found) == (4, 7)
    assert [timing.phase for timing in after.phase_timings] == ["init"]
    assert after.updated_at > before.updated_at


def test_a_pushed_list_appends_each_of_its_items(store: Store) -> None:
    run = a_fenced_run(store)
    run.mark(push={"usage": [{"phase": "analysis", "model": "m"}, {"phase": "saving", "model": "m"}]})
    after = store.runs.get(run.fence.run_id)
    assert after
    assert [usage.phase for usage in after.usage] == ["analysis", "saving"]


def test_a_bare_mark_proves_ownership(store: Store) -> None:
    a_fenced_run(store).is_mine()


def test_a_cancelled_run_is_lost_as_cancelled(store: Store) -> None:
    run = a_fenced_run(store)
    assert store.runs.request_cancel(run.fence.run_id)
    with lost(LossReason.CANCELLED):
        run.mark(set={"progress": 50})


def test_cancelled_is_said_before_superseded(store: Store) -> None:
    old = a_fenced_run(store)
    a_successor(store, old)
    store.runs.request_cancel(old.fence.run_id)
    with lost(LossReason.CANCELLED):
        old.is_mine()


def test_a_superseded_attempt_cannot_mark(store: Store) -> None:
    old = a_fenced_run(store)
    new = a_successor(store, old)
    with lost(LossReason.SUPERSEDED):
        old.mark(set={"progress": 99})
    new.mark(set={"progress": 12})
    found = store.runs.get(old.fence.run_id)
    assert found
    assert found.progress == 12


def test_another_owner_of_the_same_attempt_cannot_mark(store: Store) -> None:
    run = a_fenced_run(store)
    other = FencedRun(store, Fence(run.fence.run_id, 1, "somebody else"))
    with lost(LossReason.SUPERSEDED):
        other.is_mine()


def test_a_run_that_is_gone_is_lost_as_missing(store: Store) -> None:
    with lost(LossReason.MISSING):
        FencedRun(store, Fence("no such run", 1, "owner")).is_mine()


def test_a_run_that_was_swept_is_lost(store: Store) -> None:
    run = a_fenced_run(store)
    store.runs.fail_unowned(run.fence.run_id, attempt=1, owner=run.fence.owner, reason="swept")
    with lost(LossReason.SUPERSEDED):
        run.is_mine()


def test_finish_ends_the_run_and_names_the_model(store: Store) -> None:
    run = a_fenced_run(store, run=a_run(last_checkpoint_step=9, active_ms=100))
    run.finish(
        status=RunStatus.COMPLETED,
        discovery_id="d1",
        active_ms=50,
        llm_provider="openai",
        llm_model="m",
        zero_checkpoint=True,
    )
    found = store.runs.get(run.fence.run_id)
    assert found
    assert (found.status, found.discovery_id, found.active_ms) == (RunStatus.COMPLETED, "d1", 150)
    assert (found.last_checkpoint_step, found.progress, found.phase) == (0, 100, "complete")
    assert found.completed_at
    assert (found.lifecycle[-1].llm_provider, found.lifecycle[-1].attempt) == ("openai", 1)
    with lost(LossReason.SUPERSEDED):
        run.is_mine()


def test_finish_as_failed_keeps_the_checkpoint_and_says_why(store: Store) -> None:
    run = a_fenced_run(store, run=a_run(last_checkpoint_step=9))
    run.finish(status=RunStatus.FAILED, error="the model was not reachable", active_ms=1)
    found = store.runs.get(run.fence.run_id)
    assert found
    assert (found.error, found.last_checkpoint_step) == ("the model was not reachable", 9)
    assert found.lifecycle[-1].reason == "the model was not reachable"


def test_parallel_marks_all_count(store: Store) -> None:
    run = a_fenced_run(store)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: run.mark(inc={"total_queries": 1}), range(40)))
    found = store.runs.get(run.fence.run_id)
    assert found
    assert found.total_queries == 40


# ---------------------------------------------------------------------------------------------- put and delete


def test_put_adds_then_replaces(store: Store) -> None:
    run = a_fenced_run(store)
    key = {"run_id": run.fence.run_id, "step_number": 1}
    run.put(names.CHECKPOINTS, key, {"query": "SELECT 1", "gone": True})
    run.put(names.CHECKPOINTS, key, {"query": "SELECT 2"})
    rows = list(store.database[names.CHECKPOINTS].find())
    assert [(r["query"], r["attempt"], "gone" in r) for r in rows] == [("SELECT 2", 1, False)]


@pytest.mark.parametrize("together", [True, False])
def test_superseded_attempt_cannot_overwrite_newer_row(store: Store, together: bool) -> None:
    old = a_fenced_run(store)
    new = a_successor(store, old)
    key = {"run_id": old.fence.run_id, "step_number": 1}
    new.put(names.CHECKPOINTS, key, {"query": "new"})
    with lost(LossReason.SUPERSEDED):
        if together:
            old.put_many(
                [Put(names.CHECKPOINTS, key, {"query": "old"}), Insert(names.RUN_STEPS, a_feed_row())]
            )
        else:
            old.put(names.CHECKPOINTS, key, {"query": "old"})
    assert [r["query"] for r in store.database[names.CHECKPOINTS].find()] == ["new"]


def test_newer_attempt_overwrites_older_row(store: Store) -> None:
    old = a_fenced_run(store)
    key = {"run_id": old.fence.run_id, "step_number": 1}
    old.put(names.CHECKPOINTS, key, {"query": "old"})
    a_successor(store, old).put(names.CHECKPOINTS, key, {"query": "new"})
    assert [(r["query"], r["attempt"]) for r in store.database[names.CHECKPOINTS].find()] == [("new", 2)]


def test_rows_cannot_claim_another_attempt_than_the_writer(store: Store) -> None:
    run = a_fenced_run(store)
    store.checkpoints.write_step(run, a_checkpoint(run.fence.run_id, attempt=77))
    assert [step.attempt for step in store.checkpoints.steps(run.fence.run_id)] == [1]


@pytest.mark.parametrize("across", [True, False])
def test_put_many_writes_every_row_in_one_or_many_calls(store: Store, across: bool) -> None:
    assert store.writes_across_collections
    store.writes_across_collections = across
    run = a_fenced_run(store)
    writes: list[Put | Insert] = [
        Put(names.CHECKPOINTS, {"run_id": run.fence.run_id, "step_number": n}, {"n": n}) for n in range(600)
    ]
    run.put_many([*writes, Insert(names.RUN_STEPS, a_feed_row())])
    assert store.database[names.CHECKPOINTS].count_documents({}) == 600
    assert len(store.feed.rows(run.fence.run_id, attempt=1)) == 1


def test_put_many_of_nothing_is_nothing(store: Store) -> None:
    a_fenced_run(store).put_many([])


def test_delete_leaves_rows_of_a_newer_attempt(store: Store) -> None:
    old = a_fenced_run(store)
    run_id = old.fence.run_id
    for step in (1, 2):
        store.checkpoints.write_step(old, a_checkpoint(run_id, step))
    new = a_successor(store, old)
    store.checkpoints.write_step(new, a_checkpoint(run_id, 2))
    assert old.delete(names.CHECKPOINTS) == 1
    assert [step.step_number for step in store.checkpoints.steps(run_id)] == [2]
    assert new.delete(names.CHECKPOINTS) == 1


def test_delete_never_touches_another_run(store: Store) -> None:
    one, other = a_fenced_run(store), a_fenced_run(store)
    store.checkpoints.write_step(other, a_checkpoint(other.fence.run_id))
    assert one.delete(names.CHECKPOINTS, {"run_id": other.fence.run_id}) == 0
    assert len(store.checkpoints.steps(other.fence.run_id)) == 1


def test_a_step_of_more_than_16_megabytes_is_stored_smaller(store: Store) -> None:
    run = a_fenced_run(store)
    rows = [{"cell": "x" * 2_000}] * 10_000
    store.checkpoints.write_step(run, a_checkpoint(run.fence.run_id, query_result=rows, row_count=10_000))
    (kept,) = store.checkpoints.steps(run.fence.run_id)
    assert (len(kept.query_result), kept.row_count) == (1_000, 10_000)
    assert [caveat.kind for caveat in kept.caveats] == ["truncated"]


def test_many_attempts_at_once_leave_the_newest_row(store: Store) -> None:
    run_id = "contested"
    fenced = [FencedRun(store, Fence(run_id, attempt, "o")) for attempt in range(1, 9)]

    def write(run: FencedRun) -> bool:
        try:
            for step in range(10):
                run.put(names.CHECKPOINTS, {"run_id": run_id, "step_number": step}, {"by": run.fence.attempt})
        except OwnershipLost:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        finished = list(pool.map(write, fenced))
    rows = list(store.database[names.CHECKPOINTS].find())
    assert finished[-1]
    assert [r["by"] for r in rows] == [8] * 10


# ---------------------------------------------------------------------------------------- when MongoDB is gone


@pytest.fixture
def line(mongo_uri: str) -> Iterator[Relay]:
    relay = relay_to(mongo_uri)
    yield relay
    relay.close()


def test_a_mark_waits_for_a_server_that_comes_back(store: Store, line: Relay) -> None:
    fence = a_fenced_run(store).fence
    with over(line, store) as far:
        run = FencedRun(far, fence, retry_s=30)
        run.is_mine()
        line.cut()
        threading.Timer(1.5, line.mend).start()
        run.mark(inc={"total_queries": 1})
    found = store.runs.get(fence.run_id)
    assert found
    assert found.total_queries == 1


def test_a_mark_gives_up_after_its_limit(store: Store, line: Relay) -> None:
    fence = a_fenced_run(store).fence
    with over(line, store) as far:
        run = FencedRun(far, fence, retry_s=0.5)
        run.is_mine()
        line.cut()
        with pytest.raises(TransientError) as caught:
            run.mark(inc={"total_queries": 1})
    assert caught.value.dependency == "mongodb"


def test_a_mark_whose_answer_was_lost_counts_once(store: Store, line: Relay) -> None:
    fence = a_fenced_run(store).fence
    uri = f"mongodb://127.0.0.1:{line.port}/?directConnection=true&heartbeatFrequencyMS=500"
    with Store.connect(uri, store.database.name, timeout_s=1) as far:
        run = FencedRun(far, fence, retry_s=30)
        run.is_mine()
        line.lose_answers.set()
        threading.Timer(1.0, line.mend).start()
        run.mark(inc={"total_queries": 1}, push={"lifecycle": {"status": "running", "at": clock.now()}})
    found = store.runs.get(fence.run_id)
    assert found
    assert line.answers_lost == 1
    assert found.total_queries == 1
    assert len(found.lifecycle) == 2


def test_a_terminal_mark_whose_answer_was_lost_is_not_taken_for_a_loss(store: Store, line: Relay) -> None:
    fence = a_fenced_run(store).fence
    with over(line, store) as far:
        run = FencedRun(far, fence, retry_s=30)
        run.is_mine()
        line.lose_answers.set()
        threading.Timer(1.0, line.mend).start()
        run.finish(status=RunStatus.FAILED, error="stopped", active_ms=10)
    found = store.runs.get(fence.run_id)
    assert found
    assert line.answers_lost == 1
    assert (found.status, found.active_ms) == (RunStatus.FAILED, 10)


def test_clocks_are_cut_to_what_the_store_keeps(store: Store) -> None:
    run = a_fenced_run(store)
    at = clock.now() + timedelta(milliseconds=1)
    run.mark(set={"last_resumed_at": at})
    found = store.runs.get(run.fence.run_id)
    assert found
    assert found.last_resumed_at == at
