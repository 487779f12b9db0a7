"""Shares of an outcome by group and repeated keys: the statistics are right, and only what stands out is told."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import duckdb
import pytest

from assay_agent.scout.keys import key_of, parts_of, told
from assay_agent.scout.questions.joins import join_questions
from assay_agent.scout.questions.quality import repeated_keys
from assay_agent.scout.questions.question import Question
from assay_agent.scout.questions.rates import rates
from assay_agent.scout.roles import Profile, Roles, roles_of
from assay_agent.scout.situation import Column, Table
from assay_agent.scout.sql_text import Sql
from assay_agent.scout.writer.analysis import analysis_reply
from assay_agent.sql.guard import check

ROWS = 2_400
TABLE = Table(
    "main.customers",
    ROWS,
    (
        Column("Customer ID", "INTEGER", "dimension"),
        Column("contract", "VARCHAR", "dimension"),
        Column("churn", "VARCHAR", "dimension"),
        Column("coin", "VARCHAR", "dimension"),
    ),
)


def records() -> Iterator[tuple[int, str, str, str]]:
    """Monthly contracts churn in 2 of 5 rows, yearly ones in 1 of 10; the coin goes with nothing; ten numbers stand twice."""
    for number in range(ROWS):
        contract = ("month", "year", "two [1]")[number % 3]
        churns = (number // 3) % 5 < 2 if contract == "month" else (number // 3) % 10 == 0
        coin = "heads" if (number * 7919) % 1009 % 2 else "tails"
        yield max(number - 10, 0) if number < 20 else number, contract, "Yes" if churns else "No", coin


def roles() -> Roles:
    distinct = {"Customer ID": len({row[0] for row in records()}), "contract": 3, "churn": 2, "coin": 2}
    profiles = {name: Profile(filled=ROWS, distinct=count) for name, count in distinct.items()}
    return roles_of(TABLE, profiles, ROWS)


def ask(questions: Sequence[Question], dialect: str) -> dict[str, list[dict[str, Any]]]:
    """Answers by key, from an engine of the dialect."""
    insert = "INSERT INTO customers VALUES (?, ?, ?, ?)"
    create = 'CREATE TABLE customers ("Customer ID" INTEGER, contract VARCHAR, churn VARCHAR, coin VARCHAR)'
    found: dict[str, list[dict[str, Any]]] = {}
    opened: Any = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    with closing(opened) as connection:
        connection.execute(create)
        connection.executemany(insert, list(records()))
        for question in questions:
            check(question.sql, dialect=dialect)
            cursor = connection.execute(question.sql)
            names = [column[0] for column in cursor.description]
            found[question.key] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return found


def insights(area: str, answers: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    digests = [
        {"step": number, "purpose": told("x", key), "rows": rows, "row_count": len(rows)}
        for number, (key, rows) in enumerate(answers.items(), start=1)
    ]
    reply = analysis_reply(f"Task: analysis\nArea: {area}\nAt most 12 insights\n{json.dumps(digests)}")
    return list(json.loads(reply)["insights"])


def cramers_v(grouping: int) -> float:
    """Chi-squared over the cells of the table of groups by outcome, written out."""
    rows = list(records())
    chi = 0.0
    for group in {row[grouping] for row in rows}:
        for outcome in ("Yes", "No"):
            in_group = sum(row[grouping] == group for row in rows)
            expected = in_group * sum(row[2] == outcome for row in rows) / ROWS
            observed = sum(row[grouping] == group and row[2] == outcome for row in rows)
            chi += (observed - expected) ** 2 / expected
    return float((chi / ROWS) ** 0.5)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_shares_and_effect_are_those_of_a_contingency_table(dialect: str) -> None:
    answers = ask(list(rates(TABLE, roles(), Sql(dialect))), dialect)
    assert {parts_of(key)[2:] for key in answers} == {("contract", "churn"), ("coin", "churn")}
    top, *_, last = answers[key_of("rate", "main.customers", "contract", "churn")]
    assert (top["contract"], top["outcome_value"], top["n_rows"], top["n_with"]) == ("month", "Yes", 800, 320)
    assert (top["share_with"], last["share_with"]) == (pytest.approx(0.4), pytest.approx(0.1))
    assert top["cramers_v"] == pytest.approx(cramers_v(1))
    [coin, *_] = answers[key_of("rate", "main.customers", "coin", "churn")]
    assert coin["cramers_v"] == pytest.approx(cramers_v(3))


def test_only_a_grouping_that_goes_with_the_outcome_is_told() -> None:
    answers = ask(list(rates(TABLE, roles(), Sql("duckdb"))), "duckdb")
    [found] = insights("relationships", answers)
    assert found["metrics"]["share_highest"] == pytest.approx(0.4)
    assert found["affected_count"] == 320
    assert "Cramér's V" in found["description"]
    assert {figure["column"] for figure in found["figures"]} >= {
        "share_with",
        "n_with",
        "n_rows",
        "cramers_v",
    }


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_key_that_repeats_is_counted_and_told(dialect: str) -> None:
    answers = ask(list(repeated_keys(TABLE, roles(), Sql(dialect))), dialect)
    [row] = answers[key_of("dupkey", "main.customers", "Customer ID")]
    numbers = [record[0] for record in records()]
    again = [number for number in set(numbers) if numbers.count(number) > 1]
    assert row["n_keys"] == len(set(numbers))
    assert row["n_keys_repeated"] == len(again)
    assert row["n_rows_repeated"] == sum(number in again for number in numbers)
    [found] = insights("data_quality", answers)
    assert found["affected_count"] == row["n_rows_repeated"]


def test_purposes_of_others_that_look_like_keys_are_passed_over() -> None:
    rows: dict[str, list[dict[str, Any]]] = {
        "group:x": [{"a": 1}],
        "rate:x": [{"a": 1}],
        "note:x": [{"a": 1}],
    }
    assert insights("relationships", rows) == []


@pytest.mark.parametrize(("high", "measured"), [(695, True), (2_400, False), (2_359, False), (9_000, True)])
def test_whole_numbers_called_a_time_are_averaged_unless_a_clock_could_show_them(
    high: int, measured: bool
) -> None:
    table = Table("main.t", 5_000, (Column("air_time", "INTEGER", "dimension"),))
    profile = Profile(filled=5_000, distinct=400, low=1, high=high)
    assert bool(roles_of(table, {"air_time": profile}, 5_000).measures) is measured


def test_key_named_after_a_table_points_at_no_other() -> None:
    items = Table("main.items", 9_000, (Column("order_id", "INTEGER", "dimension"),))
    orders = Table("main.orders", 3_000, (Column("id", "INTEGER", "primary_key"),))
    payments = Table("main.payments", 2_800, (Column("order_id", "INTEGER", "dimension"),))
    known = [
        (table, roles_of(table, {name: Profile(filled=table.rows, distinct=distinct)}, table.rows or 0))
        for table, name, distinct in (
            (items, "order_id", 2_990),
            (orders, "id", 3_000),
            (payments, "order_id", 2_800),
        )
    ]
    asked = [question.key for question in join_questions(items, known[0][1], known, Sql("duckdb"))]
    assert asked == ["orphan:main.items:order_id:main.orders"]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_weekdays_are_told_in_words(dialect: str) -> None:
    days: Any = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    with closing(days) as connection:
        connection.execute("CREATE TABLE t (day DATE)")
        connection.execute("INSERT INTO t VALUES ('2024-02-29'), ('2024-03-03')")
        expression = Sql(dialect).weekday(Column("day", "DATE", "time"))
        rows = connection.execute(f"SELECT {expression} FROM t ORDER BY day").fetchall()
    assert [row[0] for row in rows] == ["Thursday", "Sunday"]
