"""Lists of items in a reply, and fields of the wrong type."""

from __future__ import annotations

import pytest

from assay_agent.llm.replies import fraction, number, priority, read_items, step_numbers, texts, whole
from assay_agent.ports import Completion
from assay_core.errors import ModelOutputError, ModelRefusal


@pytest.mark.parametrize(
    "text",
    [
        '{"insights": [{"name": "a"}, {"name": "b"}]}',
        '```json\n{"insights": [{"name": "a"}, {"name": "b"}]}\n```',
        '[{"name": "a"}, {"name": "b"}]',
        '```json\n[{"name": "a"}, {"name": "b"}]\n```',
        '<think>hm {"insights": []}</think>Here: {"insights": [{"name": "a"}, {"name": "b"}]} done',
    ],
)
def test_items_are_read_from_any_wrapping(text: str) -> None:
    items = read_items(Completion(text=text), key="insights")
    assert [item["name"] for item in items.objects] == ["a", "b"]


def test_entries_that_are_no_objects_are_dropped_and_counted() -> None:
    items = read_items(Completion(text='{"insights": [{"name": "a"}, "b", 3]}'), key="insights")
    assert (len(items.objects), items.dropped) == (1, 2)


def test_an_empty_list_is_an_answer_and_prose_is_not() -> None:
    assert read_items(Completion(text='{"insights": []}'), key="insights").objects == ()
    with pytest.raises(ModelOutputError):
        read_items(Completion(text="There is nothing of note."), key="insights")


def test_a_cut_answer_is_refused_even_when_it_can_be_read() -> None:
    with pytest.raises(ModelOutputError):
        read_items(Completion(text='{"insights": [{"name": "a"}]}', finish="length"), key="insights")


def test_a_refusal_is_not_a_parse_error() -> None:
    with pytest.raises(ModelRefusal):
        read_items(Completion(text="", finish="refusal"), key="insights")


def test_numbers_are_read_from_texts() -> None:
    assert number("1,200") == 1200
    assert number("~3.5") == 3.5
    assert number("67%") == 0.67
    assert number("many") is None
    assert number(True) is None
    assert whole("8,298") == 8298
    assert whole(None) == 0


def test_fractions_accept_percentages_and_words() -> None:
    assert fraction(0.4) == 0.4
    assert fraction(85) == 0.85
    assert fraction("high") == 0.8
    assert fraction(-3) == 0.0


@pytest.mark.parametrize(
    ("value", "expected"), [("critical", 1), ("high", 2), ("P2", 2), (7, 5), ("4", 4), (None, 3), ("?", 3)]
)
def test_priority_accepts_words_and_numbers(value: object, expected: int) -> None:
    assert priority(value) == expected


def test_steps_and_lists_are_coerced() -> None:
    assert step_numbers([1, "2", "step 3", {"step": 4}, 1, -2]) == [1, 2, 3, 4]
    assert texts("1. first\n2) second\n- third") == ["first", "second", "third"]
    assert texts(["a", None, 3]) == ["a", "3"]
