"""The scout reads what stands in the messages, asks what makes sense of a column, and never asks twice."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from assay_agent.exploration.actions import Finish, Lookup, Query, parse_action
from assay_agent.exploration.conversation import FOLDED_HEADING
from assay_agent.exploration.messages import lookup_message, result_message
from assay_agent.policy import ExplorationPolicy
from assay_agent.ports import Completion, CompletionRequest, Message
from assay_agent.scout.model import Scout
from assay_agent.scout.questions.profiles import profile_questions, read_profiles
from assay_agent.scout.questions.question import minimum_rows
from assay_agent.scout.questions.table import table_questions
from assay_agent.scout.roles import Profile, roles_of
from assay_agent.scout.server import make_server
from assay_agent.scout.situation import read_situation, read_tables
from assay_agent.scout.sql_text import Sql
from assay_agent.scout.writer.analysis import entries
from assay_agent.sql.guard import check
from assay_core.model.table import ColumnSchema, TableSchema
from tests.builders import a_step

POLICY = ExplorationPolicy()
SYSTEM = Message(
    "system", "Tables:\nmain.sales | 5c | 12.0K rows | - | -> main.shops\nmain.shops | 2c | 30 rows | -"
)
OPENING = Message("user", "Task: exploration\n\nYou have 40 steps. Each reply\n\nSQL dialect: duckdb. One")
SALES = TableSchema(
    ref="main.sales",
    row_count=12_000,
    columns=[
        ColumnSchema(name="shop_id", type="INTEGER"),
        ColumnSchema(name="sold_on", type="DATE", category="time"),
        ColumnSchema(name="amount", type="DECIMAL(18,2)", category="metric"),
        ColumnSchema(name="kind of sale", type="VARCHAR"),
        ColumnSchema(name="tags", type="VARCHAR[]"),
    ],
    sample=[{"shop_id": 1, "amount": 3.5, "kind of sale": "x [NULL]"}],
)
SHOPS = TableSchema(
    ref="main.shops",
    row_count=30,
    columns=[
        ColumnSchema(name="shop_id", type="INTEGER", category="primary_key", nullable=False),
        ColumnSchema(name="city", type="VARCHAR"),
    ],
)


def asked(*turns: Message) -> Query | Lookup | Finish:
    reply = Scout().complete(
        CompletionRequest(layer="exploration", messages=(SYSTEM, OPENING, *turns), max_output_tokens=1000)
    )
    action = parse_action(reply)
    assert isinstance(action, Query | Lookup | Finish)
    return action


def turn(action: Query | Lookup | Finish, answer: str) -> tuple[Message, Message]:
    from assay_agent.exploration.actions import action_json

    return Message("assistant", action_json(action)), Message("user", answer)


def looked_up() -> str:
    return lookup_message([SALES, SHOPS], known=[], missing=[], dropped=[], calls_left=29, policy=POLICY)


def profile_row(rows: int, *columns: tuple[Any, ...]) -> dict[str, Any]:
    row: dict[str, Any] = {"n_rows": rows}
    for position, (filled, distinct, low, high) in enumerate(columns):
        row |= {
            f"c{position}_filled": filled,
            f"c{position}_distinct": distinct,
            f"c{position}_min": low,
            f"c{position}_max": high,
        }
    return row


def test_first_action_looks_the_tables_up_the_largest_first() -> None:
    assert asked() == Lookup(
        refs=("main.sales", "main.shops"), rationale="columns of the next tables, the largest first"
    )


def test_lookup_reply_is_read_back_with_odd_names_and_types() -> None:
    tables = read_tables(looked_up())
    assert [(table.ref, table.rows, len(table.columns)) for table in tables] == [
        ("main.sales", 12_000, 5),
        ("main.shops", 30, 2),
    ]
    assert [column.name for column in tables[0].columns] == [
        "shop_id",
        "sold_on",
        "amount",
        "kind of sale",
        "tags",
    ]
    assert tables[0].columns[3].samples == ("x [NULL]",)


def test_profiles_come_before_questions_and_no_statement_is_asked_twice() -> None:
    turns: list[Message] = list(turn(asked(), looked_up()))
    answers = {
        "profile:main.sales:0": profile_row(
            12_000,
            (12_000, 31, 1, 31),
            (12_000, 365, "2024-01-01", "2024-12-30"),
            (11_000, 900, 0.5, 99),
            (12_000, 4, None, None),
        ),
        "profile:main.shops:0": profile_row(30, (30, 30, 1, 30), (30, 12, None, None)),
    }
    seen: list[str] = []
    for number in range(2, 40):
        action = asked(*turns)
        if isinstance(action, Finish):
            break
        assert isinstance(action, Query)
        assert action.sql not in seen
        check(action.sql, dialect="duckdb")
        seen.append(action.sql)
        key = action.purpose.split("[")[-1].rstrip("]")
        rows = [answers[key]] if key in answers else [{"n": 1}]
        turns += turn(
            action,
            result_message(a_step(number, query_result=rows, row_count=len(rows), error=None), policy=POLICY),
        )
    keys = read_situation((SYSTEM, OPENING, *turns)).asked
    families = {key.split(":")[0] for key in keys}
    assert {"profile", "missing", "orphan", "trend", "season", "group", "conc", "outlier", "gap"} <= families
    assert any(key == "group:main.sales:kind of sale:amount" for key in keys)


def test_questions_in_folded_turns_are_not_asked_again() -> None:
    folded = f"{OPENING.content}\n\n{FOLDED_HEADING}\nstep 1 lookup_schema: main.sales, main.shops\nstep 2 query: Profile [profile:main.sales:0] → 1 rows"
    situation = read_situation((SYSTEM, Message("user", folded)))
    assert situation.asked == {"profile:main.sales:0"}
    assert situation.looked_up == ["main.sales", "main.shops"]
    assert situation.steps == 2


def test_columns_out_of_view_are_looked_up_again_when_needed() -> None:
    folded = f"{OPENING.content}\n\n{FOLDED_HEADING}\nstep 1 lookup_schema: main.sales, main.shops\nstep 2 query: x [missing:main.sales] → 1 rows"
    reply = Scout().complete(
        CompletionRequest(
            layer="exploration", messages=(SYSTEM, Message("user", folded)), max_output_tokens=100
        )
    )
    assert parse_action(reply) == Lookup(
        refs=("main.sales",), rationale="these columns are no longer in view"
    )


def test_nothing_is_averaged_that_has_no_mean() -> None:
    names = ["customer_id", "zip", "latitude", "dep_time", "wind_dir", "year", "price", "orders", "blob"]
    table = read_tables(
        lookup_message(
            [
                TableSchema(
                    ref="main.orders",
                    row_count=5_000,
                    columns=[
                        ColumnSchema(name=name, type="BLOB" if name == "blob" else "INTEGER")
                        for name in names
                    ],
                )
            ],
            known=[],
            missing=[],
            dropped=[],
            calls_left=1,
            policy=POLICY,
        )
    )[0]
    profiles = {name: Profile(filled=5_000, distinct=900) for name in names}
    assert roles_of(table, profiles, 5_000).measures == ("price",)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_every_question_passes_the_guard_of_its_dialect(dialect: str) -> None:
    table = read_tables(looked_up())[0]
    sql = Sql(dialect)
    profiles = {
        "shop_id": Profile(filled=12_000, distinct=31),
        "sold_on": Profile(filled=12_000, distinct=365, low="2024-01-01", high="2024-12-30"),
        "amount": Profile(filled=11_000, distinct=900, low=0.5, high=99),
        "kind of sale": Profile(filled=12_000, distinct=4),
    }
    questions = [
        *profile_questions(table, sql, turn=1),
        *table_questions(table, roles_of(table, profiles, 12_000), sql),
    ]
    assert len(questions) >= 8
    for question in questions:
        check(question.sql, dialect=dialect)


def test_profile_answers_are_read_and_the_latest_turn_counts() -> None:
    table = read_tables(looked_up())[1]
    results = {
        "profile:main.shops:0": [profile_row(30, (30, 30, 1, 30), (30, 12, None, None))],
        "profile:main.shops:0:2": [profile_row(31, (31, 31, 1, 31), (31, 12, None, None))],
    }
    read = read_profiles(table, results)
    assert read is not None
    assert read[0] == 31
    assert read[1]["city"].distinct == 12


def test_groups_must_be_larger_in_larger_tables() -> None:
    assert [minimum_rows(rows) for rows in (50, 300, 5_000, 50_000, 500_000)] == [3, 10, 30, 100, 1_000]


def test_digests_are_found_in_a_prompt_whatever_stands_around_them() -> None:
    prompt = 'Text [1] {"step": 9}\n[{"step": 1, "purpose": "x"},\n{"step": 2}]\nmore [{"a": 1}]'
    assert [entry["step"] for entry in entries(prompt)] == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "Task: analysis\nArea: trends",
        "Task: recommendations",
        "Task: sql_fix",
        "Task: exploration",
    ],
)
def test_scout_answers_anything(text: str) -> None:
    reply = Scout().complete(
        CompletionRequest(layer="x", messages=(Message("user", text),), max_output_tokens=10)
    )
    assert reply.text
    assert (reply.usage.input_tokens, reply.usage.cost_usd) == (0, 0.0)


@pytest.fixture
def address() -> Iterator[str]:
    server = make_server("127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join(timeout=5)


def post(address: str, body: bytes) -> tuple[int, str]:
    request = urllib.request.Request(
        f"{address}/v1/chat/completions", data=body, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_server_answers_like_a_model(address: str) -> None:
    messages = [
        {"role": "system", "content": SYSTEM.content},
        {"role": "user", "content": [{"type": "text", "text": OPENING.content}]},
    ]
    status, body = post(address, json.dumps({"model": "scout-1", "messages": messages}).encode())
    choice = json.loads(body)["choices"][0]
    assert (status, choice["finish_reason"]) == (200, "stop")
    assert isinstance(parse_action(Completion(text=choice["message"]["content"])), Lookup)
    status, body = post(
        address, json.dumps({"model": "scout-1", "messages": messages, "stream": True}).encode()
    )
    assert body.strip().endswith("data: [DONE]")
    with urllib.request.urlopen(f"{address}/v1/models", timeout=10) as response:
        assert json.load(response)["data"][0]["id"] == "scout-1"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"messages": []}', b'{"messages": [{"role": "robot", "content": "x"}]}']
)
def test_server_names_what_is_wrong_with_a_request(address: str, body: bytes) -> None:
    status, text = post(address, body)
    assert status == 400
    assert json.loads(text)["error"]["message"]
