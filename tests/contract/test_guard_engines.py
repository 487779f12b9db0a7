"""The guard's lists held against the engines themselves: what they read, what they call volatile, what is their own."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import duckdb
import psycopg
import pytest

from assay_agent.sql.dialects import dialect_of, make_ref, quote_name, split_ref
from assay_agent.sql.guard import check
from assay_core.errors import QueryError
from tests.bigquery_server import bigquery_server
from tests.integration.postgres import postgres_server
from tests.unit.sql_corpus.queries.all import TABLES, queries

_HARMLESS_THOUGH_VOLATILE = {
    "array_sample",
    "array_shuffle",
    "clock_timestamp",
    "gen_random_uuid",
    "random",
    "random_normal",
    "timeofday",
    "uuid",
    "uuidv4",
    "uuidv7",
}
"""Chance and the time of day: they change nothing and tell nothing."""


def _named(sql: str, dialect: str) -> set[str]:
    return {split_ref(ref)[1].lower() for ref in check(sql, dialect=dialect).tables}


def test_sqlite_reads_the_tables_that_the_guard_names_and_no_others() -> None:
    read: set[str] = set()

    def note(action: int, first: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and first:
            read.add(first.lower())
        return sqlite3.SQLITE_OK

    connection = sqlite3.connect(":memory:", cached_statements=0)  # a cached one is not asked about again
    for statement in TABLES["sqlite"]:
        connection.execute(statement)
    known = {row[0].lower() for row in connection.execute("SELECT name FROM sqlite_master")}
    connection.set_authorizer(note)
    different = []
    for sql in queries("sqlite"):
        read.clear()
        connection.execute(check(sql, dialect="sqlite").sql).fetchall()
        # Asked only about columns it needs, it may pass over a table of a join, but never name one more.
        if not read & known <= _named(sql, "sqlite") <= known:
            different.append((sql, sorted(read)))
    connection.close()
    assert different == []


def test_duckdb_reads_the_tables_that_the_guard_names_and_no_others() -> None:
    different = []
    with duckdb.connect() as connection:
        for sql in queries("duckdb"):
            rendered = check(sql, dialect="duckdb").sql
            row = connection.execute("SELECT json_serialize_sql($1)", [rendered]).fetchone()
            tree = json.loads(row[0]) if row else {}
            if tree.get("error"):  # the engine serializes SELECT alone, neither VALUES nor PIVOT
                continue
            tables, ctes = _relations(tree)
            if not _named(sql, "duckdb") <= tables <= _named(sql, "duckdb") | ctes:
                different.append((sql, sorted(tables)))
    assert different == []


def _relations(tree: Any) -> tuple[set[str], set[str]]:
    """Names of tables and of common table expressions in DuckDB's own reading of a statement."""
    tables: set[str] = set()
    ctes: set[str] = set()
    open_parts = [tree]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, list):
            open_parts += part
        elif isinstance(part, dict):
            if part.get("type") == "BASE_TABLE":
                tables.add(part["table_name"].lower())
            if isinstance(part.get("cte_map"), dict):
                ctes |= {entry["key"].lower() for entry in part["cte_map"].get("map", [])}
            open_parts += part.values()
    return tables, ctes


def test_postgres_reads_the_tables_that_the_guard_names_and_no_others() -> None:
    server = postgres_server()
    different = []
    with server.database() as name, server.connect(name) as session:
        for statement in TABLES["postgres"]:
            session.execute(statement)
        for number, sql in enumerate(queries("postgres")):
            guarded = check(sql, dialect="postgres")
            columns = len(session.execute(guarded.sql).description or ())
            listed = ", ".join(f"c{place}" for place in range(columns))
            try:
                session.execute(f"CREATE VIEW v{number} ({listed}) AS {guarded.sql}")
            except (
                psycopg.errors.InvalidTableDefinition
            ):  # a column without a type of its own, as ROW(1, 'a')
                continue
            rows = session.execute(
                "SELECT DISTINCT d.refobjid::regclass::text FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid "
                "WHERE r.ev_class = %s::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class",
                (f"v{number}",),
            ).fetchall()
            seen = {split_ref(row[0])[1].lower() for row in rows}
            # `count(*)` of a table depends on none of its columns, and some versions note nothing then.
            if not seen <= _named(sql, "postgres"):
                different.append((sql, sorted(seen)))
    assert different == []


def test_no_function_that_postgres_calls_volatile_is_allowed_but_the_harmless_ones() -> None:
    server = postgres_server()
    with server.connect() as session:
        rows = session.execute("SELECT DISTINCT proname FROM pg_proc WHERE provolatile = 'v'").fetchall()
    allowed = dialect_of("postgres").functions | dialect_of("postgres").table_functions
    assert {row[0] for row in rows} & allowed <= _HARMLESS_THOUGH_VOLATILE


def test_no_function_that_duckdb_calls_volatile_is_allowed_but_the_harmless_ones() -> None:
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() "
            "WHERE function_type = 'scalar' AND (stability = 'VOLATILE' OR has_side_effects)"
        ).fetchall()
    assert {row[0] for row in rows} & dialect_of("duckdb").functions <= _HARMLESS_THOUGH_VOLATILE


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_every_relation_of_the_engine_itself_is_refused(dialect: str) -> None:
    """By its schema, and by its bare name where that finds it."""
    if dialect == "duckdb":
        with duckdb.connect() as connection:
            found = connection.execute(
                "SELECT schema_name, view_name, false FROM duckdb_views() WHERE internal"
            ).fetchall()
    elif dialect == "sqlite":
        lite = sqlite3.connect(":memory:")
        lite.execute("CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT)")
        found = [(row[0], row[1], True) for row in lite.execute("PRAGMA table_list") if row[1] != "t"]
        lite.close()
    else:
        with postgres_server().connect() as session:
            found = session.execute(
                "SELECT n.nspname, c.relname, n.nspname = 'pg_catalog' FROM pg_class c JOIN pg_namespace n "
                "ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v') AND n.nspname ~ '^pg_|information_schema'"
            ).fetchall()
    assert len(found) >= 3
    passed = []
    for schema, name, bare in found:
        written = f"{quote_name(schema)}.{quote_name(name)}"
        for ref in (written, quote_name(name)) if bare else (written,):
            try:
                passed.append((make_ref(schema, name), check(f"SELECT * FROM {ref}", dialect=dialect).sql))
            except QueryError:
                continue
    # DuckDB's own schema is called main as the user's is: there a bare name decides.
    assert [name for name, _ in passed if dialect != "duckdb" or not name.startswith("main.")] == []
    assert all(
        name.split(".")[1] not in ("duckdb_tables", "sqlite_master", "pragma_database_list")
        for name, _ in passed
    )


def test_every_view_that_bigquery_keeps_of_itself_is_refused_however_it_is_written() -> None:
    passed, answered = [], 0
    with bigquery_server() as server, server.dataset("CREATE TABLE t (a INT64)") as dataset:
        for view in ("TABLES", "COLUMNS", "TABLE_OPTIONS", "PARTITIONS", "SCHEMATA", "VIEWS", "ROUTINES"):
            for ref in (
                f"`shop-1`.`{dataset}`.INFORMATION_SCHEMA.{view}",
                f"`shop-1.{dataset}.INFORMATION_SCHEMA.{view}`",
                f"`shop-1`.{dataset}.information_schema.{view.lower()}",
            ):
                answered += server.ask(f"SELECT COUNT(*) FROM {ref}") is not None
                try:
                    passed.append(check(f"SELECT COUNT(*) FROM {ref}", dialect="bigquery").sql)
                except QueryError:
                    continue
    assert passed == []
    assert answered >= 15
