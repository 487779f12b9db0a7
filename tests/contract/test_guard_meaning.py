"""What the guard lets run means what the model wrote: both forms give the same rows on the real engine."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
import sqlglot

from assay_agent.sql.guard import check
from tests.bigquery_server import bigquery_server
from tests.integration.postgres import postgres_server
from tests.unit.sql_corpus.queries import tables
from tests.unit.sql_corpus.queries.all import TABLES, queries
from tests.unit.sql_corpus.queries.flights import FLIGHTS

Ask = Callable[[str], list[Any]]


ACCEPTED = 230
"""Queries of the corpus that BigQuery's emulator runs at least; the others it does not know."""


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[str, Ask]]:
    dialect: str = request.param
    if dialect == "duckdb":
        with duckdb.connect() as connection:
            for statement in TABLES[dialect]:
                connection.execute(statement)
            yield dialect, lambda sql: connection.execute(sql).fetchall()
    elif dialect == "sqlite":
        lite = sqlite3.connect(":memory:")
        for statement in TABLES[dialect]:
            lite.execute(statement)
        yield dialect, lambda sql: lite.execute(sql).fetchall()
        lite.close()
    else:
        server = postgres_server()
        with server.database() as name, server.connect(name) as session:
            for statement in TABLES[dialect]:
                session.execute(statement)
            yield dialect, lambda sql: session.execute(sql).fetchall()


def test_the_rendering_answers_as_the_original(engine: tuple[str, Ask]) -> None:
    dialect, ask = engine
    different = []
    for sql in queries(dialect):
        original, rendered = ask(sql), ask(check(sql, dialect=dialect).sql)
        if not _same(original, rendered):
            different.append((sql, original[:3], rendered[:3]))
    assert different == []


def test_the_rendering_answers_as_the_original_on_the_bigquery_emulator() -> None:
    different, answered = [], 0
    with bigquery_server() as server, server.dataset(*bigquery_tables(), name="shop") as dataset:
        for sql in queries("bigquery"):
            original = server.ask(sql, dataset)
            rendered = server.ask(check(sql, dialect="bigquery").sql, dataset)
            answered += original is not None
            if original != rendered and "RAND()" not in sql:
                different.append((sql, original, rendered))
    assert different == []
    assert answered >= ACCEPTED


def bigquery_tables() -> list[str]:
    """The tables of the corpus; those of the shop as DuckDB's statements read in BigQuery."""
    written = [
        sqlglot.transpile(sql, read="duckdb", write="bigquery")[0] for sql in tables.statements("duckdb")
    ]
    return [*FLIGHTS["bigquery"], *written]


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9) or (math.isnan(left) and math.isnan(right))
    return bool(left == right) and isinstance(left, int) == isinstance(right, int)
