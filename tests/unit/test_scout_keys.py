"""A question's key survives odd names, folding and replay, so that no statement is put twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_agent.exploration.actions import Finish, Lookup, Query, action_json, parse_action
from assay_agent.exploration.conversation import FOLDED_HEADING, Conversation, Turn
from assay_agent.exploration.messages import brief, lookup_message, result_message
from assay_agent.policy import ExplorationPolicy
from assay_agent.ports import CompletionRequest, Message
from assay_agent.scout.keys import folded, key_of, keys_in, parts_of, told
from assay_agent.scout.model import Scout
from assay_agent.scout.situation import read_situation
from assay_core.model.table import ColumnSchema, TableSchema
from tests.builders import a_step

POLICY = ExplorationPolicy()
ODD = ("Price [USD]", "a:b", "100%", "two  blanks", "line\nbreak", '"quoted"', "ünï ☂", "[group:x]")


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=4))
def test_parts_come_back_whatever_they_hold(parts: list[str]) -> None:
    key = key_of("group", *parts)
    assert parts_of(key) == ("group", *parts)
    assert keys_in(f"A purpose [{key}]") == [key]


@given(st.text(max_size=200), st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=3))
def test_key_stands_in_the_folded_line_unless_it_is_longer_than_one(purpose: str, parts: list[str]) -> None:
    key = key_of("group", *parts)
    text = told(purpose, key)
    assert keys_in(text)[-1] == key
    if len(key) <= 90:
        assert keys_in(folded(text))[-1:] == [key]


def test_two_long_keys_fold_to_different_lines() -> None:
    columns = [f"{'a very long column name ' * 6}{number}" for number in range(2)]
    lines = {folded(told("Difference in things", key_of("group", "main.t", column))) for column in columns}
    assert len(lines) == 2


def explore(table: TableSchema, *, steps: int, budget_tokens: int, fail: str = "no such key") -> list[Query]:
    """The scout's queries on a table whose every column looks like a measure or a dimension."""
    conversation = Conversation(
        system=f"Tables:\n{table.ref} | {len(table.columns)}c | 5.0K rows | -",
        opening=f"Task: exploration\n\nYou have {steps} steps. \n\nSQL dialect: duckdb. One",
        budget_tokens=budget_tokens,
    )
    found: list[Query] = []
    for number in range(1, steps + 1):
        request = CompletionRequest(
            layer="exploration", messages=conversation.messages(), max_output_tokens=1
        )
        action = parse_action(Scout().complete(request))
        if isinstance(action, Finish):
            break
        if isinstance(action, Lookup):
            reply = lookup_message([table], known=[], missing=[], dropped=[], calls_left=9, policy=POLICY)
            line = f"step {number} lookup_schema: {', '.join(action.refs)}"
        else:
            assert isinstance(action, Query)
            found.append(action)
            failed = fail in action.purpose
            rows = [] if failed else [answer(table, action.purpose)]
            step = a_step(
                number,
                query_purpose=action.purpose,
                query_result=rows,
                row_count=len(rows),
                error="it failed" if failed else None,
            )
            reply, line = result_message(step, policy=POLICY), brief(step)
        conversation.append(
            Turn(step=number, assistant=action_json(action), user=reply, brief=line, tables=(table.ref,))
        )
    return found


def answer(table: TableSchema, purpose: str) -> dict[str, Any]:
    row: dict[str, Any] = {"n_rows": 5_000}
    if "Profile of" not in purpose:
        return row
    for position, column in enumerate(table.columns):
        row |= {
            f"c{position}_filled": 4_500,
            f"c{position}_distinct": 900 if column.type == "DOUBLE" else 7,
            f"c{position}_min": 0.5,
            f"c{position}_max": 2_999.5,
        }
    return row


def a_wide_table(*names: str) -> TableSchema:
    return TableSchema(
        ref="main.odd [1]",
        row_count=5_000,
        columns=[
            ColumnSchema(name=name, type="DOUBLE" if number % 2 else "VARCHAR")
            for number, name in enumerate(names)
        ],
    )


@pytest.mark.parametrize("names", [ODD, tuple(f"{name} {'long ' * 20}" for name in ODD)])
def test_no_statement_is_put_twice_in_view_or_folded(names: tuple[str, ...]) -> None:
    asked = explore(a_wide_table(*names), steps=60, budget_tokens=12_000)
    statements = [
        query.sql for query in asked if "Profile of" not in query.purpose and "profile" not in query.purpose
    ]
    assert len(statements) > 15
    assert len(set(statements)) == len(statements)


def test_profile_that_failed_is_not_asked_again() -> None:
    asked = explore(a_wide_table("a", "b"), steps=20, budget_tokens=12_000, fail="Profile of")
    assert len(asked) == 1


def test_table_in_a_cut_folded_lookup_line_is_known_by_its_questions() -> None:
    text = f"You have 9 steps\n\n{FOLDED_HEADING}\nstep 1 lookup_schema: main.a, mai… (truncated, 130 characters)\nstep 2 query: Profile [profile:main.b:0] → failed: x"
    situation = read_situation([Message("user", text)])
    assert "main.a" in situation.looked_up
    assert situation.failed == {"profile:main.b:0"}
    assert situation.steps == 2
