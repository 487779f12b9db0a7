"""Checkpoints, feed, discoveries and memory as a run writes and a later attempt or reader finds them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from assay_core.errors import ConfigError, OwnershipLost
from assay_core.model.project import ContextNote, HistoricalPattern
from assay_core.model.step import RecommendationStep
from assay_core.model.verdict import ValidationResult
from assay_core.store import names
from assay_core.store.client import Store
from assay_core.store.memory import Lesson
from tests.builders import (
    NOON,
    a_checkpoint,
    a_discovery,
    a_feed_row,
    a_fenced_run,
    a_standalone_insight,
    a_standalone_recommendation,
    a_step,
    a_successor,
    an_analysis,
    an_area,
)

# ------------------------------------------------------------------------------------------------- checkpoints


def test_steps_come_back_in_order_and_apart_from_the_summary(store: Store) -> None:
    run = a_fenced_run(store)
    run_id = run.fence.run_id
    written = [a_checkpoint(run_id, step, lookup_schema=["main.flights"]) for step in (3, 1, 10, 2)]
    for checkpoint in written:
        store.checkpoints.mark_step(run, checkpoint, a_feed_row(checkpoint.step_number), set={}, inc={})
    summary = a_checkpoint(run_id, 0, kind="exploration_summary", completed=True, total_steps=4)
    store.checkpoints.write_summary(run, summary)
    assert store.checkpoints.steps(run_id) == sorted(written, key=lambda step: step.step_number)
    assert store.checkpoints.summary(run_id) == summary
    assert len(store.feed.rows(run_id, attempt=1)) == 4


def test_a_step_is_not_a_summary(store: Store) -> None:
    run = a_fenced_run(store)
    with pytest.raises(ValueError, match="summary"):
        store.checkpoints.write_summary(run, a_checkpoint(run.fence.run_id, 1))


def test_an_area_comes_back_whole_and_is_replaced_not_doubled(store: Store) -> None:
    run = a_fenced_run(store)
    run_id = run.fence.run_id
    area = an_area(run_id, insights_validated=3)
    store.checkpoints.write_area(run, an_area(run_id))
    store.checkpoints.write_area(run, area)
    assert store.checkpoints.areas(run_id) == [area]


def test_checkpoints_of_both_kinds_go_together(store: Store) -> None:
    run = a_fenced_run(store)
    run_id = run.fence.run_id
    store.checkpoints.write_step(run, a_checkpoint(run_id))
    store.checkpoints.write_area(run, an_area(run_id))
    assert store.checkpoints.delete_all(run) == 2
    assert store.checkpoints.steps(run_id) == []
    assert store.checkpoints.areas(run_id) == []


# -------------------------------------------------------------------------------------------------------- feed


def test_the_feed_goes_on_after_the_row_last_seen(store: Store) -> None:
    run = a_fenced_run(store)
    run_id = run.fence.run_id
    for step in range(1, 6):
        store.feed.append(run, a_feed_row(step))
    first = store.feed.rows(run_id, attempt=1, limit=2)
    rest = store.feed.rows(run_id, attempt=1, since_id=first[-1].id)
    assert [row.step_num for row in first + rest] == [1, 2, 3, 4, 5]


def test_the_feed_serves_one_attempt(store: Store) -> None:
    old = a_fenced_run(store)
    new = a_successor(store, old)
    store.feed.append(new, a_feed_row(1, message="new"))
    store.feed.append(old, a_feed_row(2, message="late"))
    store.database[names.RUN_STEPS].insert_one(
        {
            "run_id": old.fence.run_id,
            "phase": "init",
            "timestamp": NOON,
            "type": "query",
            "message": "ancient",
        }
    )
    assert [row.message for row in store.feed.rows(old.fence.run_id, attempt=2)] == ["new"]
    assert [row.message for row in store.feed.rows(old.fence.run_id, attempt=1)] == ["late", "ancient"]


def test_a_cursor_that_is_none_is_refused(store: Store) -> None:
    with pytest.raises(ConfigError):
        store.feed.rows("r", attempt=1, since_id="yesterday")


# ------------------------------------------------------------------------------------------------- discoveries


def save(store: Store, run: Any, **fields: Any) -> str:
    result = a_discovery(run_id=run.fence.run_id, **fields)
    store.discoveries.save(
        run,
        result,
        exploration=[a_step(step) for step in range(1, 13)],
        analysis=[an_analysis("delays"), an_analysis("carriers")],
        validation=[ValidationResult(insight_id="i", status="confirmed")] * 2,
        recommendation=RecommendationStep(run_at=NOON, prompt="p"),
    )
    return result.id


def test_a_discovery_and_its_logs_come_back_in_order(store: Store) -> None:
    run = a_fenced_run(store)
    identifier = save(store, run)
    found = store.discoveries.get(identifier)
    logs = store.discoveries.logs(identifier)
    assert found
    assert found.insights[0].metrics == {"delay": 12.5}
    assert logs.exploration == [a_step(step) for step in range(1, 13)]
    assert [area.area_id for area in logs.analysis] == ["delays", "carriers"]
    assert len(logs.validation) == 2
    assert logs.recommendation == RecommendationStep(run_at=NOON, prompt="p")


def test_saving_again_changes_nothing(store: Store) -> None:
    run = a_fenced_run(store)
    identifier = store.discoveries.new_id()
    for _ in range(2):
        save(store, run, id=identifier)
    assert len(store.discoveries.of_run(run.fence.run_id)) == 1
    assert len(store.discoveries.logs(identifier).exploration) == 12


def test_ids_are_object_ids_where_the_model_says_so(store: Store) -> None:
    identifier = save(store, a_fenced_run(store))
    (row,) = store.database[names.DISCOVERIES].find()
    assert type(row["_id"]).__name__ == "ObjectId"
    (log,) = store.database[names.RECOMMENDATION_LOG].find()
    assert log["discovery_id"] == identifier


def test_the_raw_document_is_json_with_a_hex_id(store: Store) -> None:
    identifier = save(store, a_fenced_run(store))
    raw = store.discoveries.raw(identifier)
    assert raw
    assert json.loads(json.dumps(raw, allow_nan=False)) == raw
    assert (raw["id"], raw["discovery_date"], "_id" in raw) == (identifier, "2026-01-02T12:00:00.000Z", False)
    assert store.discoveries.raw("0" * 24) is None


def test_recent_discoveries_leave_out_those_of_a_run(store: Store) -> None:
    first, second = a_fenced_run(store), a_fenced_run(store)
    early = save(store, first)
    late = save(store, second, discovery_date=NOON + timedelta(hours=1))
    assert [found.id for found in store.discoveries.recent("project", 5)] == [late, early]
    own = second.fence.run_id
    assert [found.id for found in store.discoveries.recent("project", 5, excluding_run=own)] == [early]
    latest = store.discoveries.latest("project")
    assert latest
    assert latest.id == late
    assert store.discoveries.latest("nobody") is None


def test_retire_removes_the_earlier_result_of_the_same_run_only(store: Store) -> None:
    old = a_fenced_run(store)
    earlier = save(store, old)
    store.discoveries.save_standalone(old, [a_standalone_insight(earlier)], [])
    other = save(store, a_fenced_run(store))
    new = a_successor(store, old)
    later = save(store, new)
    store.discoveries.retire(new, earlier)
    store.discoveries.retire(new, other)
    assert [found.id for found in store.discoveries.of_run(old.fence.run_id)] == [later]
    assert store.discoveries.insights(earlier) == []
    assert store.discoveries.logs(earlier).exploration == []
    assert store.discoveries.get(other)


def test_a_superseded_attempt_cannot_retire_the_newer_result(store: Store) -> None:
    old = a_fenced_run(store)
    new = a_successor(store, old)
    later = save(store, new)
    store.discoveries.retire(old, later)
    assert store.discoveries.get(later)


def test_a_superseded_attempt_cannot_replace_a_result(store: Store) -> None:
    old = a_fenced_run(store)
    new = a_successor(store, old)
    identifier = save(store, new)
    with pytest.raises(OwnershipLost):
        save(store, old, id=identifier)


def test_standalone_rows_keep_their_ids_and_learn_of_duplicates(store: Store) -> None:
    run = a_fenced_run(store)
    insight, advice = a_standalone_insight("d"), a_standalone_recommendation("d")
    store.discoveries.save_standalone(run, [insight], [advice])
    store.discoveries.mark_duplicate(run, insight.id, duplicate_of="earlier", similarity_score=0.97)
    (found,) = store.discoveries.insights("d")
    assert found.id == insight.id
    assert (found.duplicate_of, found.similarity_score) == ("earlier", 0.97)
    assert store.discoveries.recommendations("d") == [advice]


# ------------------------------------------------------------------------------------------------------ memory


def a_lesson(**fields: Any) -> Lesson:
    pattern = HistoricalPattern(
        id="delays:late", area="delays", name="late", first_seen=NOON, last_seen=fields.get("at", NOON)
    )
    given: dict[str, Any] = {"at": NOON, "successful_queries": ["SELECT 1"], "patterns": [pattern]}
    return Lesson(**given | fields)


def test_a_project_nobody_ran_remembers_nothing(store: Store) -> None:
    assert store.memory.get("new").total_discoveries == 0


def test_two_runs_both_count_and_a_pattern_recurs(store: Store) -> None:
    for _ in range(2):
        store.memory.remember(a_fenced_run(store), "project", a_lesson())
    known = store.memory.get("project")
    assert known.total_discoveries == 2
    assert [(p.status, p.times_seen) for p in known.historical_patterns] == [("recurring", 2)]
    assert known.successful_queries == ["SELECT 1"]


def test_a_run_that_says_it_twice_counts_once(store: Store) -> None:
    old = a_fenced_run(store)
    store.memory.remember(old, "project", a_lesson())
    store.memory.remember(a_successor(store, old), "project", a_lesson())
    assert store.memory.get("project").total_discoveries == 1


def test_a_run_that_was_lost_teaches_nothing(store: Store) -> None:
    old = a_fenced_run(store)
    a_successor(store, old)
    with pytest.raises(OwnershipLost):
        store.memory.remember(old, "project", a_lesson(notes=[ContextNote(text="n", created_at=NOON)]))
    assert store.memory.get("project").notes == []
