"""Whatever a model writes, the readers answer with a value or a typed error."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from assay_agent.exploration.actions import parse_action
from assay_agent.llm.replies import fraction, priority, read_items, step_numbers, whole
from assay_agent.ports import Completion
from assay_core.errors import ModelOutputError, ModelRefusal

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(
    [
        "query",
        "done",
        "lookup_schema",
        "search_tables",
        "action",
        "name",
        "input",
        "arguments",
        "function",
        "rationale",
        "x",
    ]
)
near_actions = st.dictionaries(keys, json_values, max_size=5).map(json.dumps)
fragments = st.sampled_from(
    ["<think>", "</think>", "```json", "```", "{", "}", '"', "\\", "<|channel|>", "<|message|>", "[", "]"]
)
texts = st.lists(st.text(max_size=30) | fragments | near_actions, max_size=8).map("".join)


@given(texts)
@settings(max_examples=400, deadline=None)
def test_any_text_is_an_action_or_a_typed_error(text: str) -> None:
    try:
        action = parse_action(Completion(text=text))
    except (ModelOutputError, ModelRefusal) as error:
        assert str(error)
    else:
        assert type(action).__name__ in ("Query", "Lookup", "Search", "Finish")


@given(texts)
@settings(max_examples=200, deadline=None)
def test_any_text_is_items_or_a_typed_error(text: str) -> None:
    try:
        items = read_items(Completion(text=text), key="insights")
    except ModelOutputError as error:
        assert str(error)
    else:
        assert all(isinstance(item, dict) for item in items.objects)


@given(json_values)
@settings(max_examples=300, deadline=None)
def test_coercions_are_total_and_stay_in_range(value: object) -> None:
    assert 0.0 <= fraction(value) <= 1.0
    assert 1 <= priority(value) <= 5
    assert -(2**53) <= whole(value) <= 2**53
    assert all(step > 0 for step in step_numbers(value))
