"""Every kind of value a source can hold comes out, and can be stored, digested and written as strict JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from assay_agent.evidence.digest import digest
from assay_agent.policy import DigestPolicy
from assay_core.encoding import json_value
from tests.contract.warehouses import PROVIDERS, Source, some_limits, source

SHARED: list[tuple[str, Any]] = [
    ("NULL", None),
    ("0", 0),
    ("-9223372036854775807", -9223372036854775807),
    ("1.5e300", 1.5e300),
    ("''", ""),
    ("'emoji 🛒'", "emoji 🛒"),
    ("'שלום עולם'", "שלום עולם"),
    ("'a' || 'b'", "ab"),
    ("'line' || ' \n\t break'", "line \n\t break"),
    ("'{{f1}} <script>'", "{{f1}} <script>"),
]

OWN: dict[str, list[tuple[str, Any]]] = {
    "duckdb": [
        ("true", True),
        ("1.5::DECIMAL(38,9)", Decimal("1.500000000")),
        (
            "99999999999999999999999999999.123456789::DECIMAL(38,9)",
            Decimal("99999999999999999999999999999.123456789"),
        ),
        ("170141183460469231731687303715884105727::HUGEINT", 170141183460469231731687303715884105727),
        ("DATE '1500-01-01'", date(1500, 1, 1)),
        ("DATE '0044-03-15 (BC)'", "0044-03-15 (BC)"),
        ("DATE '20000-01-01'", "20000-01-01"),
        ("TIMESTAMP '1883-11-18 12:03:58.123456'", datetime(1883, 11, 18, 12, 3, 58, 123456)),
        ("INTERVAL '3 days 4 hours'", timedelta(days=3, hours=4)),
        ("[1, NULL, 3]", [1, None, 3]),
        ("[[1], []]", [[1], []]),
        ("{'a': 1, 'b': {'c': [1]}}", {"a": 1, "b": {"c": [1]}}),
        ("MAP {'k': 1}", {"k": 1}),
        ("'\\x00\\xFF'::BLOB", b"\x00\xff"),
        ("'{\"a\": 1}'::JSON", {"a": 1}),
        ("'inf'::DATE", date.max),
    ],
    "bigquery": [
        ("true", True),
        ("NUMERIC '1.5'", Decimal("1.500")),
        ("BIGNUMERIC '99999999999999999999999999999.12345'", Decimal("99999999999999999999999999999.12345")),
        ("DATE '1500-01-01'", date(1500, 1, 1)),
        ("DATE '0001-01-01'", date(1, 1, 1)),
        ("DATETIME '1883-11-18 12:03:58.123456'", datetime(1883, 11, 18, 12, 3, 58, 123456)),
        ("TIMESTAMP '1883-11-18 12:03:58.123456'", datetime(1883, 11, 18, 12, 3, 58, 123456, tzinfo=UTC)),
        ("TIMESTAMP '2020-01-01 00:00:00+05'", datetime(2019, 12, 31, 19, tzinfo=UTC)),
        ("TIME '23:59:59.999999'", time(23, 59, 59, 999999)),
        ("INTERVAL 3 DAY", timedelta(days=3)),
        ("MAKE_INTERVAL(hour => 4, minute => 30)", timedelta(hours=4, minutes=30)),
        ("MAKE_INTERVAL(1, 2, 3)", "1-2 3 0:0:0"),
        ("[INTERVAL 3 DAY]", [timedelta(days=3)]),
        ("STRUCT(INTERVAL 3 DAY AS i, [1, 2] AS n)", {"i": timedelta(days=3), "n": [1, 2]}),
        ("[1, 2, 3]", [1, 2, 3]),
        ("CAST([] AS ARRAY<STRING>)", []),
        ("STRUCT(1 AS a, [STRUCT('x' AS y)] AS b)", {"a": 1, "b": [{"y": "x"}]}),
        ("FROM_HEX('00ff')", b"\x00\xff"),
        ('JSON \'{"a": {"b": [1, null]}}\'', {"a": {"b": [1, None]}}),
        ("ST_ASTEXT(ST_GEOGPOINT(1, 2))", "POINT (1 2)"),
        ("RANGE(DATE '2020-01-01', DATE '2021-01-01')", {"start": date(2020, 1, 1), "end": date(2021, 1, 1)}),
    ],
    "sqlite": [
        ("x'00ff'", b"\x00\xff"),
        ("9e999", float("inf")),
        ("1 = 1", 1),
        ("date('1500-01-01')", "1500-01-01"),
        ("json_array(1, NULL)", "[1,null]"),
    ],
    "postgres": [
        ("true", True),
        ("1.5::numeric(38,9)", Decimal("1.500000000")),
        (
            "99999999999999999999999999999.123456789::numeric",
            Decimal("99999999999999999999999999999.123456789"),
        ),
        ("date '1500-01-01'", date(1500, 1, 1)),
        ("date '0044-03-15 BC'", "0044-03-15 BC"),
        ("date '20000-01-01'", "20000-01-01"),
        ("date 'infinity'", "infinity"),
        ("timestamp '-infinity'", "-infinity"),
        ("timestamptz 'infinity'", "infinity"),
        ("timestamp '1883-11-18 12:03:58.123456'", datetime(1883, 11, 18, 12, 3, 58, 123456)),
        ("interval '3 days 4 hours'", timedelta(days=3, hours=4)),
        ("ARRAY[1, NULL, 3]", [1, None, 3]),
        ("ARRAY[]::text[]", []),
        ("'\\x00ff'::bytea", b"\x00\xff"),
        ('\'{"a": {"b": [1]}}\'::jsonb', {"a": {"b": [1]}}),
        ("'{\"a\": 1}'::json", {"a": 1}),
    ],
}

OWN["redshift"] = OWN["postgres"]

# Values without an equal in Python, or unequal to themselves: they only have to survive.
ODD = {
    "duckdb": (
        "'NaN'::DOUBLE",
        "'-inf'::DOUBLE",
        "uuid()",
        "TIMESTAMPTZ '2020-01-01 00:00:00+05'",
        "TIME '10:00:00'",
        "TIME '24:00:00'",
        "TIMETZ '10:00:00+02'",
        "TIMESTAMP_NS '2020-01-01 00:00:00.123456789'",
        "'101'::BIT",
        "INTERVAL '5 months'",
        "'-infinity'::TIMESTAMP",
        "[{'a': 'NaN'::DOUBLE}]",
        "union_value(x := 1)",
        "{'a': 170141183460469231731687303715884105727::HUGEINT}",
        "'a'::ENUM('a', 'b')",
        "row(1, 'a')",
        "chr(0) || 'x'",
    ),
    "bigquery": (
        "CAST('NaN' AS FLOAT64)",
        "CAST('-inf' AS FLOAT64)",
        "CAST('inf' AS FLOAT64)",
        "GENERATE_UUID()",
        "[STRUCT(CAST('NaN' AS FLOAT64) AS a)]",
        "MAKE_INTERVAL(year => -1)",
        "JSON 'null'",
        "JSON '\"text\"'",
        "CURRENT_TIMESTAMP()",
        "SHA256('a')",
    ),
    "sqlite": ("-9e999", "CAST(x'ff41' AS TEXT)", "char(0) || 'x'", "'a' || char(0)", "zeroblob(3)"),
    "postgres": (
        "'NaN'::float8",
        "'-Infinity'::float8",
        "'NaN'::numeric",
        "gen_random_uuid()",
        "timestamptz '2020-01-01 00:00:00+05'",
        "time '24:00:00'",
        "timetz '10:00:00+02'",
        "interval '5 months 2 days'",
        "interval '-1 year'",
        "row(1, 'a')",
        "int4range(1, 5)",
        "'{[1,3), [5,9)}'::int4multirange",
        "'10.0.0.0/8'::cidr",
        "'10.0.0.1'::inet",
        "'08:00:2b:01:02:03'::macaddr",
        "point(1, 2)",
        "'101'::bit(3)",
        "'a b'::tsvector",
        "money '12.50'",
        "interval 'infinity'",
        "date '0001-01-01 BC'",
        "ARRAY[[1, 2], [3, 4]]",
        "'5'::jsonb",
        "'null'::jsonb",
        "ARRAY['NaN'::float8]",
        "'A=>1'::text",
        "pg_lsn '0/1'",
        "xid8 '1'",
        "'1 day'::interval * 1e6",
    ),
}

ODD["redshift"] = ODD["postgres"]


@pytest.fixture(scope="module", params=PROVIDERS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    with source(request.param, tmp_path_factory.mktemp(request.param)) as made:
        yield made


def _one(opened: Source, expression: str) -> Any:
    result = opened.warehouse.execute(f"SELECT {expression} AS v", limits=some_limits())
    assert [column.name for column in result.columns] == ["v"]
    small, caveats, rows = digest(result.columns, result.rows, policy=DigestPolicy(), truncated=False)
    assert small.rows == rows
    text = json.dumps(json_value(rows), allow_nan=False, ensure_ascii=False)
    assert "\x00" not in text
    assert all(caveat.text.startswith("column v: ") for caveat in caveats)
    return result.rows[0][0]


def test_values_with_an_equal_in_python_come_out_as_it(opened: Source) -> None:
    wrong = [
        (expression, got, expected)
        for expression, expected in [*SHARED, *OWN[opened.provider]]
        if (got := _one(opened, expression)) != expected or type(got) is not type(expected)
        if not (opened.provider in ("postgres", "redshift") and expression == "1.5e300")  # numeric there
    ]
    assert wrong == []


def test_odd_values_survive(opened: Source) -> None:
    for expression in ODD[opened.provider]:
        if "zeroblob" in expression or "pg_lsn" in expression:
            continue
        _one(opened, expression)


def test_all_odd_values_in_one_row_are_digested_with_statistics(opened: Source) -> None:
    parts = [e for e in ODD[opened.provider] if "zeroblob" not in e]
    sql = " UNION ALL ".join(["SELECT " + ", ".join(parts)] * 25)
    result = opened.warehouse.execute(sql, limits=some_limits())
    assert len(result.rows) == 25
    assert len({column.name for column in result.columns}) == len(parts)
    small, _, rows = digest(result.columns, result.rows, policy=DigestPolicy(), truncated=False)
    assert len(small.columns) == len(parts)
    assert len(rows) == 25
    json.dumps(json_value(small.stored()), allow_nan=False)


def test_a_cell_of_a_megabyte_does_not_reach_the_digest(opened: Source) -> None:
    big = "group_concat(t, '')" if opened.provider == "sqlite" else "repeat('ü', 1000000)"
    result = opened.warehouse.execute(f"SELECT {big} AS v FROM many LIMIT 1", limits=some_limits())
    small, _, rows = digest(result.columns, result.rows, policy=DigestPolicy(), truncated=False)
    assert len(rows[0]["v"]) == 2_000
    assert len(small.rows[0]["v"]) < 240
    assert "characters]" in small.rows[0]["v"]


def test_a_wide_row_comes_through(opened: Source) -> None:
    sql = "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(1_000))
    result = opened.warehouse.execute(sql, limits=some_limits())
    assert result.rows == (tuple(range(1_000)),)


def test_a_single_row_over_the_byte_cap_is_still_kept(opened: Source, tmp_path: Path) -> None:
    result = opened.warehouse.execute(
        "SELECT t FROM many ORDER BY n", limits=some_limits(result_bytes=1, rows=10)
    )
    assert len(result.rows) == 1
    assert result.truncated
