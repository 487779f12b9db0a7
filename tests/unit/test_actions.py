"""What a model's reply is taken to mean, whatever it is wrapped in."""

from __future__ import annotations

import json

import pytest

from assay_agent.exploration.actions import Finish, Lookup, Query, Search, action_json, parse_action
from assay_agent.ports import Completion, FinishReason
from assay_core.errors import ModelOutputError, ModelRefusal

SELECT = '{"rationale": "why", "query_purpose": "what", "query": "SELECT 1"}'


def parsed(text: str, *, finish: FinishReason = "stop", reasoning: str = "") -> object:
    return parse_action(Completion(text=text, finish=finish, reasoning=reasoning))


def reason_of(text: str, *, finish: FinishReason = "stop") -> str:
    with pytest.raises(ModelOutputError) as caught:
        parsed(text, finish=finish)
    return caught.value.reason


@pytest.mark.parametrize(
    "text",
    [
        SELECT,
        f"```json\n{SELECT}\n```",
        f"```\n{SELECT}\n```",
        f"I will look at it. {SELECT} That should do.",
        f'<think>maybe {{x}} or {{"query": "SELECT 2"}}</think>{SELECT}',
        f"text primed by the template without an opening tag</think>{SELECT}",
        f"{SELECT}<think>and now I go on thinking without an end",
        f"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=f<|message|>{SELECT}<|call|>",
        f"<tool_call>{SELECT}</tool_call>",
        f'{{"plan": "look", "thinking": "x"}} {SELECT}',
        f"the set {{ of things }} and {SELECT}",
        "<think>" + SELECT + "</think>",
    ],
)
def test_action_is_found_in_any_wrapping(text: str) -> None:
    action = parsed(text)
    assert isinstance(action, Query)
    assert action.sql == "SELECT 1"


def test_action_outside_a_reasoning_block_wins_over_one_inside() -> None:
    action = parsed('<think>{"query": "SELECT 99"}</think>{"done": true, "summary": "all seen"}')
    assert action == Finish(summary="all seen")


def test_last_action_of_several_counts() -> None:
    action = parsed('{"query": "SELECT 1"}\n{"lookup_schema": ["main.a"]}')
    assert action == Lookup(refs=("main.a",))


def test_reasoning_field_serves_when_the_content_is_empty() -> None:
    assert isinstance(parsed("", reasoning=SELECT), Query)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (
            '{"name": "query_data", "input": {"query": "SELECT 1", "purpose": "p"}}',
            Query(sql="SELECT 1", purpose="p"),
        ),
        ('{"name": "query", "arguments": "{\\"sql\\": \\"SELECT 1\\"}"}', Query(sql="SELECT 1")),
        ('{"function": {"name": "lookup_schema", "parameters": {"tables": ["a.b"]}}}', Lookup(refs=("a.b",))),
        (
            '{"tool_calls": [{"function": {"name": "search_tables", "arguments": {"query": "money", "top_k": 5}}}]}',
            Search(text="money", top_k=5),
        ),
        ('{"name": "complete", "input": {"summary": "s"}}', Finish(summary="s")),
        (
            '{"action": "query_data", "query": "SELECT 1", "thinking": "t"}',
            Query(sql="SELECT 1", rationale="t"),
        ),
        ('{"action": "complete", "reason": "r"}', Finish(summary="r")),
        ('{"query": {"sql": "SELECT 1"}}', Query(sql="SELECT 1")),
        ('{"lookup_schema": "main.a"}', Lookup(refs=("main.a",))),
        ('{"lookup_schema": ["`main.a`", "\\"main.b\\"", " main.a "]}', Lookup(refs=("main.a", "main.b"))),
        ('{"search_tables": {"query": "x", "top_k": "3"}}', Search(text="x", top_k=3)),
        ('{"done": "true", "summary": "s", "query": "SELECT 1"}', Finish(summary="s")),
        ('{"done": false, "query": "SELECT 1"}', Query(sql="SELECT 1")),
        ('{"query": "SELECT\n  1"}', Query(sql="SELECT\n  1")),
    ],
)
def test_envelopes_legacy_keys_and_loose_types_are_read(text: str, action: object) -> None:
    assert parsed(text) == action


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("   \n", "empty"),
        ("I am done, the exploration is complete.", "prose"),
        ("SELECT count(*) FROM flights", "prose"),
        ('{"plan": "first this", "thinking": "hm"}', "no_action"),
        ('{"query": "SELECT 1"', "truncated_object"),
        ('{"rationale": "x", "draft": {"query": "SELECT 1"}', "truncated_object"),
        ('{"query": ""}', "empty_payload"),
        ('{"query": 5}', "empty_payload"),
        ('{"lookup_schema": []}', "empty_payload"),
        ('{"search_tables": ""}', "empty_payload"),
    ],
)
def test_reply_without_a_usable_action_says_why(text: str, reason: str) -> None:
    assert reason_of(text) == reason


def test_cut_reply_is_refused_even_when_it_is_valid_json() -> None:
    assert reason_of(SELECT, finish="length") == "truncated"


@pytest.mark.parametrize("finish", ["refusal", "unknown"])
def test_refusal_and_unknown_stop_reasons_are_terminal(finish: FinishReason) -> None:
    with pytest.raises(ModelRefusal):
        parsed(SELECT, finish=finish)


@pytest.mark.parametrize(
    "action",
    [
        Query(sql="SELECT 1", purpose="p", rationale="r", datasource_id="d"),
        Lookup(refs=("a.b", "c.d"), rationale="r"),
        Search(text="money", top_k=4, rationale="r"),
        Finish(summary="s", rationale="r"),
    ],
)
def test_canonical_turn_reads_back_as_the_same_action(action: Query | Lookup | Search | Finish) -> None:
    text = action_json(action)
    assert parsed(text) == action
    assert "null" not in text
    assert json.loads(text)
