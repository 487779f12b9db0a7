"""The guard: every attack of the corpus is refused, every query of the other passes, and both say what they should."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from sqlglot.dialects.dialect import Dialect as Grammar

from assay_agent.sql.guard import check
from assay_agent.sql.nodes import REFUSED_FUNCTIONS
from assay_core.errors import QueryError
from tests.unit.sql_corpus.attacks.all import DIALECTS, EVERYWHERE, OWN, attacks
from tests.unit.sql_corpus.queries.all import queries


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_attack_is_refused_by_the_guard(dialect: str) -> None:
    passed = []
    for kind, sql in attacks(dialect):
        try:
            passed.append((kind, sql[:80], check(sql, dialect=dialect).sql[:80]))
        except QueryError as error:
            assert error.kind == "guard"
            assert str(error).startswith("Refused before execution: ")
            assert "<class" not in str(error)
    assert passed == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_corpora_are_large_and_hold_nothing_twice(dialect: str) -> None:
    hostile = [sql for _, sql in attacks(dialect)]
    honest = queries(dialect)
    assert len(hostile) == len(set(hostile)) >= 500
    assert len(honest) == len(set(honest)) >= 250
    assert not set(hostile) & set(honest)
    assert all(several for several in (*EVERYWHERE.values(), *OWN[dialect].values()))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_analytic_query_passes(dialect: str) -> None:
    refused = []
    for sql in queries(dialect):
        try:
            check(sql, dialect=dialect)
        except QueryError as error:
            refused.append((sql, str(error)))
    assert refused == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_guarded_is_guarded_to_the_same_text(dialect: str) -> None:
    for sql in queries(dialect):
        first = check(sql, dialect=dialect)
        assert check(first.sql, dialect=dialect).sql == first.sql


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT 1; SELECT 2", "one statement"),
        ("DELETE FROM t", "starting with SELECT or WITH"),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", "DELETE is not allowed"),
        ("SELECT * INTO x FROM t", "INTO is not allowed"),
        ("SELECT * FROM t FOR UPDATE", "FOR UPDATE"),
        ("SELECT pg_sleep(1)", "pg_sleep is not on the list"),
        ("SELECT * FROM pg_catalog.pg_class", "the schema of the data is given to you"),
        ("SELECT user", "quote it"),
        ("SELECT a FROM t WHERE b = $1", "write the value itself"),
        ("SELECT * FROM dblink('x', 'y') AS t(a int)", "query tables by name"),
        ("SELECT evil.abs(1)", "without anything before the name"),
        ("SELECT a FROM", "cannot be parsed as PostgreSQL"),
        ("SELECT '" + "x" * 100_000 + "'", "at most 100,000"),
    ],
)
def test_the_refusal_says_what_to_change(sql: str, words: str) -> None:
    with pytest.raises(QueryError, match=words) as refused:
        check(sql, dialect="postgres")
    assert refused.value.kind == "guard"


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT * FROM flights f JOIN main.airlines a USING (carrier)", ("flights", "main.airlines")),
        ("WITH x AS (SELECT * FROM flights) SELECT * FROM x", ("flights",)),
        ("WITH x AS (SELECT * FROM x) SELECT * FROM x", ("x",)),
        ("WITH RECURSIVE x AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM x) SELECT * FROM x", ()),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b, c", ("c",)),
        ("SELECT (WITH t AS (SELECT 1 AS n) SELECT n FROM t) FROM t", ("t",)),
        ('SELECT * FROM s.x WHERE EXISTS (SELECT 1 FROM "Order Lines")', ("Order Lines", "s.x")),
        ('SELECT * FROM "my.schema"."a ""b"""', ('"my.schema"."a ""b"""',)),
        ("SELECT * FROM t, unnest([1, 2]) u(v), range(3) r(i)", ("t",)),
        ("SELECT 1", ()),
    ],
)
def test_the_tables_of_a_statement_are_named_without_its_ctes(sql: str, tables: tuple[str, ...]) -> None:
    assert check(sql, dialect="duckdb").tables == tables


def test_comments_and_the_last_semicolon_are_gone_from_what_runs() -> None:
    guarded = check("/* a */ SELECT 1 -- b\n;\n;", dialect="duckdb")
    assert guarded.sql == "SELECT 1"


def test_a_quoted_table_with_a_file_like_name_can_be_queried_with_its_schema() -> None:
    assert check('SELECT * FROM main."sales.csv"', dialect="duckdb").tables == ('main."sales.csv"',)


def test_a_user_table_that_starts_like_a_system_one_can_be_queried_with_its_schema() -> None:
    assert check("SELECT * FROM public.pg_orders", dialect="postgres").tables == ("public.pg_orders",)


def test_a_small_length_cap_is_kept() -> None:
    with pytest.raises(QueryError, match="at most 10 are allowed"):
        check("SELECT 1234567", dialect="duckdb", max_chars=10)


def test_a_long_flat_condition_is_no_deep_nesting() -> None:
    many = " OR ".join(f"id = {number}" for number in range(2_000))
    assert check(f"SELECT count(*) FROM flights WHERE {many}", dialect="sqlite").tables == ("flights",)


@pytest.mark.parametrize("opening", ["(", "[", "abs(", "CASE WHEN ", "NOT (", "(SELECT "])
def test_hostile_nesting_is_refused_soon(opening: str) -> None:
    started = time.monotonic()
    for depth in (30, 100, 199, 5_000):
        with pytest.raises(QueryError):
            check("SELECT " + opening * depth, dialect="duckdb")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        *(
            ("array[", "]"),
            ("date(", ")"),
            ("decimal(", ")"),
            ("list[", "]"),
            ("struct(", ")"),
            ("(SELECT array[", "])"),
        ),
        *(
            ("[", "]"),
            ("abs(", ")"),
            ("(", ")"),
            ("{'a': ", "}"),
            ("CASE WHEN a THEN ", " END"),
            ("row(", ")"),
        ),
        *(
            ("cast(", " AS int)"),
            ("coalesce(a, ", ")"),
            ("list_transform(a, x -> ", ")"),
            ("- ", ""),
            ("NOT ", ""),
        ),
        *(("timestamp(date(", "))"), ("1 + array[(", ")]"), ("int[", "]")),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_nesting_takes_the_parser_long(dialect: str, opening: str, closing: str) -> None:
    started = time.monotonic()
    for depth in (4, 8, 9, 16, 40, 90, 199, 2_000):
        with suppress(QueryError):
            check("SELECT " + opening * depth + "1" + closing * depth + " FROM t", dialect=dialect)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "part", ["[1]", " + 1", " || 'a'", "::int", " IS NULL", ".b", "->'a'", " UNION SELECT 1"]
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_chain_takes_the_parser_long(dialect: str, part: str) -> None:
    started = time.monotonic()
    for length in (10, 60, 3_000):
        with suppress(QueryError):
            check("SELECT a" + part * length, dialect=dialect)
    assert time.monotonic() - started < 10


def test_the_deepest_nesting_an_analyst_writes_passes() -> None:
    sql = "SELECT * FROM " + "(SELECT * FROM " * 15 + "flights" + ") t" * 15
    assert check(sql, dialect="postgres").tables == ("flights",)


@pytest.mark.parametrize(
    ("written", "runs"),
    [
        ("SELECT 'it''s'", "SELECT 'it''s'"),
        (r"SELECT 'it\'s'", "SELECT 'it''s'"),
        (r"SELECT 'a\', pg_sleep(1) --'", "SELECT 'a'', pg_sleep(1) --'"),
        (r"SELECT 'ends in \\'", r"SELECT 'ends in \\'"),
        (r"""SELECT "it's", 'it\'s' FROM t""", """SELECT "it's", 'it''s' FROM t"""),
    ],
)
def test_redshift_texts_end_alike_whether_or_not_a_backslash_escapes(written: str, runs: str) -> None:
    assert check(written, dialect="redshift").sql == runs


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_word_that_is_a_function_without_brackets_is_refused_or_the_time(dialect: str) -> None:
    classes = {
        kind.__name__ for kind in Grammar.get_or_raise(dialect).parser_class.NO_PAREN_FUNCTIONS.values()
    }
    times = {
        "CurrentDate",
        "CurrentDatetime",
        "CurrentTime",
        "CurrentTimestamp",
        "Localtime",
        "Localtimestamp",
    }
    assert classes <= times | REFUSED_FUNCTIONS


def test_sqlite_reads_a_table_after_in_and_duckdb_a_list() -> None:
    assert check("SELECT a FROM t WHERE a IN tags", dialect="duckdb").tables == ("t",)
    with pytest.raises(QueryError, match="a bare name after IN is a table here"):
        check("SELECT a FROM t WHERE a IN u", dialect="sqlite")
