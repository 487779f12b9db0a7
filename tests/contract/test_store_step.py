"""A step's mark and rows in one round trip: the same promises as mark and put apart."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from assay_core.errors import LossReason, OwnershipLost
from assay_core.store import names
from assay_core.store.client import Store
from assay_core.store.fence import FencedRun
from tests.builders import a_checkpoint, a_feed_row, a_fenced_run, a_successor
from tests.contract.test_store_fence import line
from tests.relay import Relay, over

__all__ = ["line"]


def a_mark(store: Store, run: FencedRun, step: int) -> bool:
    checkpoint = a_checkpoint(run.fence.run_id, step_number=step)
    return store.checkpoints.mark_step(
        run, checkpoint, a_feed_row(step), set={"progress": step}, inc={"total_queries": 1}
    )


@pytest.fixture(params=[True, False], ids=["one call", "several calls"])
def across(store: Store, request: Any) -> Store:
    store.writes_across_collections = request.param
    return store


def test_step_marks_the_run_and_writes_both_rows(across: Store) -> None:
    run = a_fenced_run(across)
    assert a_mark(across, run, 1)
    assert a_mark(across, run, 2)
    found = across.runs.get(run.fence.run_id)
    assert found
    assert (found.progress, found.total_queries, found.last_checkpoint_step) == (2, 2, 1)
    assert [row.step_number for row in across.checkpoints.steps(run.fence.run_id)] == [1, 2]
    assert [row.step_num for row in across.feed.rows(run.fence.run_id, attempt=1)] == [1, 2]


def test_superseded_attempt_learns_it_at_its_next_step_and_leaves_newer_rows_alone(across: Store) -> None:
    old = a_fenced_run(across)
    new = a_successor(across, old)
    a_mark(across, new, 1)
    with pytest.raises(OwnershipLost) as caught:
        a_mark(across, old, 1)
    assert caught.value.reason is LossReason.SUPERSEDED
    assert [(row.step_number, row.attempt) for row in across.checkpoints.steps(old.fence.run_id)] == [(1, 2)]
    found = across.runs.get(old.fence.run_id)
    assert found
    assert found.total_queries == 1


def test_at_most_one_stray_row_is_left_and_it_gives_way(across: Store) -> None:
    old = a_fenced_run(across)
    a_mark(across, old, 1)
    new = a_successor(across, old)
    with pytest.raises(OwnershipLost):
        a_mark(across, old, 2)
    stray = [row for row in across.checkpoints.steps(old.fence.run_id) if row.step_number > 1]
    assert len(stray) <= 1
    a_mark(across, new, 2)
    assert [(row.step_number, row.attempt) for row in across.checkpoints.steps(old.fence.run_id)] == [
        (1, 1),
        (2, 2),
    ]
    assert [row.step_num for row in across.feed.rows(old.fence.run_id, attempt=2)] == [2]


def test_cancelled_run_is_lost_as_cancelled(across: Store) -> None:
    run = a_fenced_run(across)
    across.runs.request_cancel(run.fence.run_id)
    with pytest.raises(OwnershipLost) as caught:
        a_mark(across, run, 1)
    assert caught.value.reason is LossReason.CANCELLED


def test_a_step_whose_answer_was_lost_counts_once_and_keeps_its_rows(store: Store, line: Relay) -> None:
    fence = a_fenced_run(store).fence
    with over(line, store) as far:
        run = FencedRun(far, fence, retry_s=30)
        run.is_mine()
        line.lose_answers.set()
        threading.Timer(1.0, line.mend).start()
        checkpoint = a_checkpoint(fence.run_id, step_number=1)
        assert far.checkpoints.mark_step(run, checkpoint, a_feed_row(), set={}, inc={"total_queries": 1})
    found = store.runs.get(fence.run_id)
    assert found
    assert found.total_queries == 1
    assert store.database[names.CHECKPOINTS].count_documents({}) == 1
