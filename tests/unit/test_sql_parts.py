"""Small pure parts: limits pushed into a statement, names and references, cells cut to limits, kinds of columns."""

from __future__ import annotations

from typing import Any

import pytest

from assay_agent.adapters.cells import fetch, unique_names
from assay_agent.adapters.column_kinds import category_of, kind_of
from assay_agent.ports import QueryLimits
from assay_agent.sql.dialects import (
    dialect_names,
    dialect_of,
    make_ref,
    quote_name,
    quote_ref,
    sample_statement,
    split_ref,
)
from assay_agent.sql.limits import limited
from assay_core.errors import ConfigError


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", "SELECT 1\nLIMIT 5"),
        ("SELECT 1;", "SELECT 1\nLIMIT 5"),
        ("SELECT 1 -- limit 3", "SELECT 1\nLIMIT 5"),
        ("SELECT 'limit'", "SELECT 'limit'\nLIMIT 5"),
        ('SELECT "limit" FROM t', 'SELECT "limit" FROM t\nLIMIT 5'),
        ("SELECT * FROM (SELECT 1 LIMIT 9) t", "SELECT * FROM (SELECT 1 LIMIT 9) t\nLIMIT 5"),
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a\nLIMIT 5"),
        ("SELECT 1 UNION ALL SELECT 2", "SELECT 1 UNION ALL SELECT 2\nLIMIT 5"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "WITH a AS (SELECT 1) SELECT * FROM a\nLIMIT 5"),
        ("SELECT 1 LIMIT 3", "SELECT 1 LIMIT 3"),
        ("SELECT 1 LIMIT 300", "SELECT 1 LIMIT 5"),
        ("SELECT 1 LIMIT 300 OFFSET 7", "SELECT 1 LIMIT 5 OFFSET 7"),
        ("SELECT 1 LIMIT 2, 300", "SELECT 1 LIMIT 2, 300"),
        ("SELECT 1 LIMIT 10%", "SELECT 1 LIMIT 10%"),
        ("SELECT 1 LIMIT (SELECT 9)", "SELECT 1 LIMIT (SELECT 9)"),
        ("SELECT 1 LIMIT 30 + 1", "SELECT 1 LIMIT 30 + 1"),
        ("SELECT 1 OFFSET 3", "SELECT 1 OFFSET 3"),
        ("SELECT 1 FETCH FIRST 9 ROWS ONLY", "SELECT 1 FETCH FIRST 9 ROWS ONLY"),
        ("VALUES (1)", "VALUES (1)"),
        ("FROM t", "FROM t"),
        ("SELECT '", "SELECT '"),
        ("", ""),
    ],
)
def test_the_row_cap_is_pushed_down_only_where_it_is_safe(sql: str, expected: str) -> None:
    assert limited(sql, dialect="duckdb", rows=5) == expected


@pytest.mark.parametrize(
    ("schema", "table", "ref", "quoted"),
    [
        ("main", "flights", "main.flights", "main.flights"),
        (None, "flights", "flights", "flights"),
        ("main", "Order Lines", "main.Order Lines", 'main."Order Lines"'),
        ("main", "select", "main.select", 'main."select"'),
        ("main", "a.b", 'main."a.b"', 'main."a.b"'),
        ("my.schema", 'q"t', '"my.schema"."q""t"', '"my.schema"."q""t"'),
        ("public", "Größe", "public.Größe", 'public."Größe"'),
        ("public", "🛒", "public.🛒", 'public."🛒"'),
    ],
)
def test_a_table_name_goes_to_display_to_sql_and_back(
    schema: str | None, table: str, ref: str, quoted: str
) -> None:
    assert make_ref(schema, table) == ref
    assert split_ref(ref) == (schema, table)
    assert quote_ref(ref) == quoted
    assert split_ref(quoted) == (schema, table)


def test_a_catalogue_name_before_the_schema_is_dropped() -> None:
    assert split_ref("db.main.t") == ("main", "t")
    assert split_ref('"db"."main"."t"') == ("main", "t")


def test_names_are_quoted_only_when_they_must_be() -> None:
    assert quote_name("dep_delay") == "dep_delay"
    assert quote_name("Id") == '"Id"'
    assert quote_name("2nd") == '"2nd"'
    assert quote_name('a"b') == '"a""b"'
    assert sample_statement("main.Order Lines", 5) == 'SELECT * FROM main."Order Lines" LIMIT 5'


def test_bigquery_names_go_in_backticks_and_dots_within_them_split() -> None:
    assert quote_name("dep_delay", dialect="bigquery") == "dep_delay"
    assert quote_name("Größe", dialect="bigquery") == "`Größe`"
    assert quote_name("hash", dialect="bigquery") == "`hash`"
    assert quote_name("a`b", dialect="bigquery") == "`a\\`b`"
    assert (
        sample_statement("shop.Order Lines", 5, dialect="bigquery")
        == "SELECT * FROM shop.`Order Lines` LIMIT 5"
    )
    assert split_ref("shop.`Order Lines`") == ("shop", "Order Lines")
    assert split_ref("`my-project.shop.orders`") == ("shop", "orders")
    assert split_ref("`shop.orders`") == ("shop", "orders")


def test_every_dialect_has_hints_and_functions_and_an_unknown_one_says_which_are_known() -> None:
    for name in dialect_names():
        dialect = dialect_of(name)
        assert len(dialect.hints) >= 8
        assert len(dialect.functions) >= 80
        assert all(word == word.lower() for word in dialect.functions | dialect.table_functions)
    with pytest.raises(ConfigError, match="known: duckdb, sqlite, postgres"):
        dialect_of("oracle")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ("a", "b")),
        (["a", "a", "a"], ("a", "a_2", "a_3")),
        (["a", "a", "a_2"], ("a", "a_3", "a_2")),
        (["", None, "x"], ("column_1", "column_2", "x")),
        (["column_2", ""], ("column_2", "column_2_2")),
        ([], ()),
    ],
)
def test_column_names_become_unique(names: list[str | None], expected: tuple[str, ...]) -> None:
    assert unique_names(names) == expected


def _fetched(rows: list[tuple[Any, ...]], **limits: int) -> Any:
    given = {"rows": 100, "cell_chars": 10, "result_bytes": 10_000} | limits
    source = iter(rows)

    def fetch_many(size: int) -> list[tuple[Any, ...]]:
        return [row for _, row in zip(range(size), source, strict=False)]

    return fetch(fetch_many, QueryLimits(**given, timeout_s=1.0))


def test_cells_are_cut_to_the_limit_and_counted() -> None:
    kept = _fetched([("x" * 11, b"y" * 30, 1), ("x" * 10, b"z", None), ("ü" * 500, b"", 2)])
    assert kept.rows == [("x" * 9 + "…", b"y" * 10, 1), ("x" * 10, b"z", None), ("ü" * 9 + "…", b"", 2)]
    first, second = (caveat.text for caveat in kept.caveats(["a", "b", "c"]))
    assert first == "column a: 2 cell(s) cut at 10 characters, the longest had 500"
    assert second == "column b: 1 cell(s) cut at 10 characters, the longest had 30"


def test_nested_cells_are_kept_when_small_and_become_text_when_not() -> None:
    small, big = {"a": [1]}, [list(range(1_000))]
    kept = _fetched([(small,), (big,), (set(range(3)),), (memoryview(b"abc"),)], cell_chars=60)
    assert kept.rows[0] == (small,)
    assert isinstance(kept.rows[1][0], str)
    assert len(kept.rows[1][0]) == 60
    assert kept.rows[2:] == [({0, 1, 2},), (b"abc",)]


def test_rows_and_bytes_are_bounded() -> None:
    kept = _fetched([(n,) for n in range(200)])
    assert (len(kept.rows), kept.more_rows) == (100, True)
    heavy = _fetched([("x" * 10,)] * 90, result_bytes=95)
    assert (len(heavy.rows), heavy.more_rows, heavy.out_of_bytes) == (9, True, True)


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        *(
            (label, "INT64")
            for label in ("INTEGER", "bigint", "int4", "smallint", "HUGEINT", "UBIGINT", "serial")
        ),
        *(
            (label, "FLOAT64")
            for label in ("DOUBLE", "numeric(10,2)", "DECIMAL(38,9)", "real", "float8", "money")
        ),
        *(
            (label, "STRING")
            for label in ("VARCHAR", "text", "uuid", "inet", "ENUM('a', 'b')", "interval", "ANY", "")
        ),
        *(
            (label, "TIMESTAMP")
            for label in ("TIMESTAMP", "timestamp with time zone", "TIMESTAMP_NS", "datetime")
        ),
        *(
            (label, "RECORD")
            for label in ("INTEGER[]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "jsonb", "JSON")
        ),
        *((label, "BYTES") for label in ("BLOB", "bytea", "VARBINARY")),
        *((label, "BOOL") for label in ("BOOLEAN", "bool")),
        ("DATE", "DATE"),
        ("geometry(Point,4326)", "STRING"),
        ("time without time zone", "STRING"),
    ],
)
def test_a_type_label_has_a_kind(label: str, kind: str) -> None:
    assert kind_of(label) == kind


@pytest.mark.parametrize(
    ("name", "kind", "key", "category"),
    [
        ("whatever", "STRING", True, "primary_key"),
        ("made", "TIMESTAMP", False, "time"),
        ("created_at", "STRING", False, "time"),
        ("amount", "FLOAT64", False, "metric"),
        ("humid", "FLOAT64", False, "metric"),
        ("customer_id", "INT64", False, "dimension"),
        ("customerId", "INT64", False, "dimension"),
        ("ID", "INT64", False, "dimension"),
        ("year", "INT64", False, "dimension"),
        ("zip_code", "INT64", False, "dimension"),
        ("name", "STRING", False, "dimension"),
        ("active", "BOOL", False, "dimension"),
    ],
)
def test_a_column_has_a_category(name: str, kind: str, key: bool, category: str) -> None:
    assert category_of(name, kind=kind, primary_key=key) == category
