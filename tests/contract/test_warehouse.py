"""The contract of a warehouse: the same expectations for all.

On real DuckDB, SQLite and PostgreSQL, on BigQuery's emulator, and for Redshift on PostgreSQL with its system views.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assay_agent.ports import Warehouse
from assay_agent.sql.dialects import make_ref, quote_name, quote_ref
from assay_agent.sql.guard import check
from assay_core.errors import AssayError, ConfigError, QueryError, TransientError
from assay_core.model.step import CaveatKind
from tests import bigquery_server
from tests.contract.warehouses import PROVIDERS, ROWS, Source, some_limits, source, strange_names

_SERIES = (
    "SELECT count(*) FROM generate_series(1, 9000000) a, generate_series(1, 9000000) b WHERE a % 7 = b % 11"
)
ENDLESS = {
    "duckdb": "SELECT count(*) FROM range(9000000) a, range(9000000) b WHERE a.range % 7 = b.range % 11",
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgres": _SERIES,
    "redshift": _SERIES,
    "bigquery": bigquery_server.ENDLESS,
}


@pytest.fixture(scope="module", params=PROVIDERS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    with source(request.param, tmp_path_factory.mktemp(request.param)) as made:
        yield made


def test_it_is_a_warehouse_and_says_what_answers(opened: Source) -> None:
    assert isinstance(opened.warehouse, Warehouse)
    assert opened.warehouse.datasource_id == "d1"
    assert opened.warehouse.dialect == opened.provider
    assert opened.warehouse.datasets == (opened.schema,)
    title, version = opened.warehouse.check().split(" ", 1)
    assert title in ("DuckDB", "SQLite", "PostgreSQL", "Redshift", "BigQuery")
    assert version.lstrip("v")[0].isdigit()


def test_tables_and_views_are_listed_sorted_and_without_system_ones(opened: Source) -> None:
    listed = opened.warehouse.tables()
    refs = [table.ref for table in listed]
    assert refs == sorted(refs)
    assert set(refs) == {
        make_ref(opened.schema, name)
        for name in ("people", "adults", "blank", "many", *strange_names(opened.provider))
    }
    by_ref = {table.ref: table for table in listed}
    assert by_ref[f"{opened.schema}.many"].row_count == ROWS
    assert by_ref[f"{opened.schema}.many"].column_count == 2
    assert by_ref[f"{opened.schema}.people"].column_count == 7
    assert by_ref[f"{opened.schema}.adults"].row_count is None
    assert by_ref[f"{opened.schema}.blank"].row_count == 0


def test_columns_carry_label_kind_nullability_and_category(opened: Source) -> None:
    (people,) = opened.warehouse.describe([f"{opened.schema}.people"])
    assert people.ref == f"{opened.schema}.people"
    assert people.row_count == 2
    assert people.datasource_id == "d1"
    assert [(column.name, column.kind, column.category) for column in people.columns] == [
        ("id", "INT64", "primary_key"),
        ("name", "STRING", "dimension"),
        ("age", "INT64", "metric"),
        ("salary", "FLOAT64", "metric"),
        ("active", "BOOL", "dimension"),
        ("born", "DATE", "time"),
        ("seen", "TIMESTAMP", "time"),
    ]
    nullable = {column.name: column.nullable for column in people.columns}
    assert nullable["age"]
    assert not nullable["id"]
    assert not nullable["name"]
    assert all(column.type for column in people.columns)


def test_tables_are_described_in_the_order_asked_and_found_by_their_bare_name(opened: Source) -> None:
    described = opened.warehouse.describe(["many", f"{opened.schema}.adults", "PEOPLE"])
    assert [table.ref for table in described] == [
        f"{opened.schema}.{name}" for name in ("many", "adults", "people")
    ]
    assert [column.name for column in described[0].columns] == ["n", "t"]


def test_an_unknown_table_is_named(opened: Source) -> None:
    with pytest.raises(QueryError, match=r"no such table: .*nowhere"):
        opened.warehouse.describe([f"{opened.schema}.nowhere"])
    with pytest.raises(QueryError, match="nowhere"):
        opened.warehouse.sample("nowhere", limits=some_limits())


def test_a_strange_name_works_from_listing_to_rows(opened: Source) -> None:
    dialect = opened.warehouse.dialect
    for name in strange_names(opened.provider):
        ref = make_ref(opened.schema, name)
        written, quoted = quote_ref(ref, dialect=dialect), quote_name(name, dialect=dialect)
        (table,) = opened.warehouse.describe([ref])
        assert [column.name for column in table.columns] == [name, "plain"]
        assert opened.warehouse.describe([written])[0].ref == ref
        assert opened.warehouse.sample(ref, limits=some_limits(rows=3)).rows == ((7, "seven"),)
        sql = f"SELECT t.{quoted} AS {quoted} FROM {written} AS t WHERE t.{quoted} = 7"
        guarded = check(sql, dialect=dialect)
        assert guarded.tables == (ref,)
        result = opened.warehouse.execute(guarded.sql, limits=some_limits())
        assert [column.name for column in result.columns] == [name]
        assert result.rows == ((7,),)


def test_rows_come_in_order_with_types_and_no_caveat(opened: Source) -> None:
    result = opened.warehouse.execute("SELECT n, t FROM many ORDER BY n DESC", limits=some_limits(rows=5_000))
    assert [row[0] for row in result.rows] == list(range(ROWS - 1, -1, -1))
    assert result.rows[0][1] == f"text {ROWS - 1}"
    assert not result.truncated
    assert result.caveats == ()
    assert all(column.type not in ("", "unknown") for column in result.columns)
    assert result.duration_ms >= 0


@pytest.mark.parametrize("rows", [1, 7, 64, 65, ROWS - 1])
def test_more_rows_than_the_cap_are_cut_and_said(opened: Source, rows: int) -> None:
    result = opened.warehouse.execute("SELECT n FROM many ORDER BY n", limits=some_limits(rows=rows))
    assert [row[0] for row in result.rows] == list(range(rows))
    assert result.truncated
    assert [caveat.kind for caveat in result.caveats] == [CaveatKind.TRUNCATED]
    assert f"first {rows:,} rows" in result.caveats[0].text


def test_exactly_the_cap_is_not_truncated(opened: Source) -> None:
    result = opened.warehouse.execute("SELECT n FROM many ORDER BY n", limits=some_limits(rows=ROWS))
    assert len(result.rows) == ROWS
    assert not result.truncated
    assert result.caveats == ()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT n FROM many ORDER BY n LIMIT 3", 3),
        ("SELECT n FROM many ORDER BY n LIMIT 100", 10),
        ("SELECT n FROM many ORDER BY n LIMIT 100 OFFSET 1995", 5),
        ("SELECT n FROM many WHERE n < 4 UNION ALL SELECT n FROM many WHERE n < 4 ORDER BY 1", 8),
        ("WITH x AS (SELECT n FROM many LIMIT 5) SELECT * FROM x -- limit 1", 5),
        ('SELECT n AS "limit" FROM many ORDER BY 1', 10),
        ("SELECT n FROM (SELECT n FROM many LIMIT 4) t", 4),
    ],
)
def test_the_cap_leaves_the_statements_own_limit_alone(opened: Source, sql: str, expected: int) -> None:
    assert len(opened.warehouse.execute(sql, limits=some_limits(rows=10)).rows) == expected


def test_a_long_cell_is_cut_and_said(opened: Source) -> None:
    long = {
        "duckdb": "repeat('x', 1000000)",
        "postgres": "repeat('x', 1000000)",
        "redshift": "repeat('x', 1000000)",
        "bigquery": "repeat('x', 1000000)",
        "sqlite": "replace(hex(9), '3', 'y')",
    }
    if opened.provider == "sqlite":
        sql = "SELECT 1 AS a, group_concat(t, '') AS big FROM many"
    else:
        sql = f"SELECT 1 AS a, {long[opened.provider]} AS big"
    result = opened.warehouse.execute(sql, limits=some_limits(cell_chars=50))
    (row,) = result.rows
    assert row[0] == 1
    assert len(row[1]) == 50
    assert row[1].endswith("…")
    assert [caveat.kind for caveat in result.caveats] == [CaveatKind.TRUNCATED]
    assert "column big: 1 cell(s) cut at 50 characters" in result.caveats[0].text
    assert not result.truncated


def test_a_result_over_the_byte_cap_is_cut_and_said(opened: Source) -> None:
    result = opened.warehouse.execute(
        "SELECT a.t, b.t AS u, a.n FROM many a JOIN many b ON a.n = b.n ORDER BY a.n",
        limits=some_limits(rows=5_000, result_bytes=10_000),
    )
    assert 10 < len(result.rows) < 1_000
    assert result.truncated
    assert "10,000 bytes" in result.caveats[0].text


def test_doubled_and_missing_column_names_become_unique(opened: Source) -> None:
    result = opened.warehouse.execute(
        'SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a, 5 AS "A"', limits=some_limits()
    )
    names = [column.name for column in result.columns]
    assert len(set(names)) == 5
    if opened.provider != "bigquery":  # which refuses them, and whose emulator renames some itself
        assert names == ["a", "a_3", "a_2", "a_4", "A"]
    assert result.rows == ((1, 2, 3, 4, 5),)


def test_no_rows_keep_their_columns(opened: Source) -> None:
    result = opened.warehouse.execute("SELECT a, b FROM blank", limits=some_limits())
    assert [column.name for column in result.columns] == ["a", "b"]
    assert result.rows == ()
    assert not result.truncated


def test_text_of_any_script_and_signs_of_drivers_come_through(opened: Source) -> None:
    result = opened.warehouse.execute(
        "SELECT name, '%s %(x)s %' AS p, ':name' AS c, '?' AS q, '{}' AS b FROM people WHERE name LIKE 'B%' AND id = 2",
        limits=some_limits(),
    )
    assert result.rows == (("Béa 🛒 שלום", "%s %(x)s %", ":name", "?", "{}"),)


def test_a_faulty_statement_is_a_short_query_error(opened: Source) -> None:
    for sql, word in (
        ("SELECT nope FROM people", "nope"),
        ("SELECT * FROM missing_table", "missing_table"),
        ("SELECT FROM WHERE", ""),
        ("SELECT no_such_function(1)", "no_such_function"),
    ):
        with pytest.raises(QueryError) as failed:
            opened.warehouse.execute(sql, limits=some_limits())
        text = str(failed.value)
        assert word in text
        assert len(text) <= 1_000
        for noise in ("sqlalche.me", "Background on", "[SQL:", "psycopg", "_duckdb", "sqlite3.", "DECLARE"):
            assert noise not in text


def test_an_error_leaves_the_warehouse_usable(opened: Source) -> None:
    for _ in range(20):
        with pytest.raises(QueryError):
            opened.warehouse.execute("SELECT nope", limits=some_limits())
    assert opened.warehouse.execute("SELECT 1", limits=some_limits()).rows == ((1,),)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO many VALUES (1, 'x')",
        "DELETE FROM many",
        "UPDATE many SET n = 0",
        "DROP TABLE many",
        "CREATE TABLE evil (a INTEGER)",
        "WITH x AS (SELECT 1) INSERT INTO many SELECT 1, 'x' FROM x",
    ],
)
def test_a_write_that_slipped_past_the_guard_fails(opened: Source, sql: str) -> None:
    with pytest.raises(AssayError):
        opened.warehouse.execute(sql, limits=some_limits())
    assert opened.warehouse.execute("SELECT count(*) FROM many", limits=some_limits()).rows == ((ROWS,),)


def test_a_statement_over_its_time_is_stopped_and_says_so(opened: Source) -> None:
    started = time.monotonic()
    with pytest.raises(QueryError, match=r"stopped after 0\.5 s|stopped by its timeout") as failed:
        opened.warehouse.execute(ENDLESS[opened.provider], limits=some_limits(timeout_s=0.5))
    assert failed.value.kind == "timeout"
    assert time.monotonic() - started < 10
    assert opened.warehouse.execute("SELECT 1", limits=some_limits(timeout_s=5)).rows == ((1,),)


def test_several_threads_get_their_own_rows(opened: Source) -> None:
    def ask(number: int) -> list[int]:
        result = opened.warehouse.execute(
            f"SELECT n FROM many WHERE n >= {number} ORDER BY n LIMIT 50", limits=some_limits()
        )
        return [row[0] for row in result.rows]

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(120)))
    assert answers == [list(range(number, number + 50)) for number in range(120)]


def test_closing_stops_what_runs_and_is_final(opened: Source) -> None:
    other = opened.open(opened.settings)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            other.execute(ENDLESS[opened.provider], limits=some_limits(timeout_s=60))
        except AssayError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.5)
    started = time.monotonic()
    other.close()
    thread.join(20)
    assert not thread.is_alive()
    assert time.monotonic() - started < 15
    assert [type(error) for error in raised] == [TransientError]
    other.close()
    with pytest.raises(ConfigError, match="closed"):
        other.execute("SELECT 1", limits=some_limits())


def test_two_openings_of_one_source_do_not_disturb_each_other(opened: Source, tmp_path: Path) -> None:
    second = opened.open(opened.settings)
    assert second.execute("SELECT count(*) FROM many", limits=some_limits()).rows == ((ROWS,),)
    second.close()
    assert opened.warehouse.execute("SELECT 1", limits=some_limits()).rows == ((1,),)
