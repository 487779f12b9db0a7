"""Which rows a resumed run may stand on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay_agent.exploration.actions import Finish, Lookup, Query, Search
from assay_agent.exploration.replay import action_of
from assay_core.model.step import ExplorationCheckpoint, StepAction
from assay_core.resume import replayable

AT = datetime(2026, 1, 1, tzinfo=UTC)


def a_row(number: int, *, attempt: int = 1, **fields: Any) -> ExplorationCheckpoint:
    return ExplorationCheckpoint(
        **{
            "run_id": "r",
            "project_id": "p",
            "step_number": number,
            "attempt": attempt,
            "created_at": AT,
            "timestamp": AT,
            "action": StepAction.QUERY_DATA,
            "query": "SELECT 1",
            **fields,
        }
    )


def test_prefix_stops_at_a_gap() -> None:
    assert [row.step_number for row in replayable([a_row(1), a_row(2), a_row(4)])] == [1, 2]


def test_prefix_stops_where_the_attempt_falls() -> None:
    rows = [a_row(1, attempt=1), a_row(2, attempt=2), a_row(3, attempt=1)]
    assert [row.step_number for row in replayable(rows)] == [1, 2]


def test_a_row_of_unknown_kind_or_action_ends_the_prefix_or_has_no_action() -> None:
    assert replayable([a_row(2)]) == ()
    assert action_of(a_row(1, action=StepAction.LOOKUP_SCHEMA)) is None


def test_actions_are_rebuilt_from_rows() -> None:
    assert action_of(a_row(1, thinking="t", query_purpose="p")) == Query(
        sql="SELECT 1", purpose="p", rationale="t"
    )
    assert action_of(a_row(1, action=StepAction.LOOKUP_SCHEMA, lookup_schema=["a"])) == Lookup(refs=("a",))
    assert action_of(a_row(1, action=StepAction.SEARCH_TABLES, search_tables="x", search_top_k=3)) == Search(
        text="x", top_k=3
    )
    assert action_of(a_row(1, action=StepAction.COMPLETE_REJECTED, completion_msg="m")) == Finish(summary="m")


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 4)), max_size=14))
def test_prefix_has_no_gap_and_attempts_never_fall(pairs: list[tuple[int, int]]) -> None:
    rows = [a_row(number, attempt=attempt) for number, attempt in dict(pairs).items()]
    prefix = replayable(rows)
    assert [row.step_number for row in prefix] == list(range(1, len(prefix) + 1))
    attempts = [row.attempt for row in prefix]
    assert attempts == sorted(attempts)
