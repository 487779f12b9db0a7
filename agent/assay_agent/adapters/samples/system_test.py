"""Tables of every common type with known counts, gaps and edges, made by arithmetic alone.

The facts are in docs/packs/system-test.md.
"""

from __future__ import annotations

from typing import Any

import duckdb

PROFILE: dict[str, Any] = {
    "about": "A check of types and edges after an installation",
    "expected_tables": 8,
    "expected_rows": {"numbers": 20_000, "moments": 10_000, "children": 30_000, "empty_table": 0},
}

_TABLES = (
    # Decimals whose sum is known; whole numbers beyond what a double holds; twelve floats that are no number.
    """CREATE TABLE numbers AS SELECT i AS number_id, CAST(i % 100 AS TINYINT) AS small_number,
       CAST(i * 3 AS INTEGER) AS whole_number, 9007199254740993 + i AS beyond_double,
       CAST(CAST(i % 1000 AS DECIMAL(18,4)) / 8 AS DECIMAL(18,4)) AS price,
       CASE i % 5000 WHEN 1 THEN 'NaN'::DOUBLE WHEN 2 THEN 'Infinity'::DOUBLE WHEN 3 THEN '-Infinity'::DOUBLE
            ELSE i / 7.0 END AS float_number,
       CASE WHEN i % 4 = 0 THEN NULL ELSE i % 50 END AS quarter_missing, (i % 3 = 0) AS is_third
       FROM range(1, 20001) t(i)""",
    # Days from before 1900 on, hours, the same hours as instants, and times of day.
    """CREATE TABLE moments AS SELECT i AS moment_id, DATE '1850-01-01' + CAST(i * 13 AS INTEGER) AS old_day,
       TIMESTAMP '2024-01-01 00:00:00' + i * INTERVAL 1 HOUR AS at_hour,
       CAST(TIMESTAMP '2024-01-01 00:00:00' + i * INTERVAL 1 HOUR AS TIMESTAMPTZ) AS at_instant,
       TIME '00:00:00' + (i % 86400) * INTERVAL 1 SECOND AS time_of_day FROM range(0, 10000) t(i)""",
    # Empty text beside null, and letters that are often lost.
    """CREATE TABLE texts AS SELECT i AS text_id,
       CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN '\N{WATER BUFFALO} ünï©ode' WHEN 3 THEN 'שלום, عالم'
            ELSE 'it''s "quoted", with' || chr(10) || 'a break' END AS content,
       repeat('x', CAST(i % 50 AS INTEGER) * 40) AS long_text FROM range(1, 5001) t(i)""",
    """CREATE TABLE nested AS SELECT i AS nested_id, [i, i + 1, NULL] AS listed,
       {'a': i, 'b': 'text'} AS structured, CAST('{"k": ' || i || '}' AS JSON) AS document, encode('b' || i) AS bytes
       FROM range(1, 501) t(i)""",
    """CREATE TABLE parents AS SELECT i AS parent_id, 'Parent ' || i AS parent_name,
       chr(CAST(65 + i % 5 AS INTEGER)) AS kind FROM range(1, 1001) t(i)""",
    "ALTER TABLE parents ADD PRIMARY KEY (parent_id)",
    # 250 children of parents that are not there; 100 rows twice.
    """CREATE TABLE children AS SELECT CASE WHEN i <= 250 THEN 5000 + i % 25 ELSE 1 + i % 1000 END AS parent_id,
       CAST(i % 400 AS INTEGER) AS amount, DATE '2025-01-01' + CAST(i % 300 AS INTEGER) AS born_on,
       'c' || i AS label FROM range(1, 29901) t(i)""",
    "INSERT INTO children SELECT * FROM children WHERE label IN (SELECT 'c' || i FROM range(1000, 1100) t(i))",
    "CREATE TABLE empty_table (nothing_id INTEGER, nothing_said VARCHAR)",
    """CREATE TABLE "Odd Name" AS SELECT i AS "select", 'v' || (i % 3) AS "group by", i % 7 AS "größe"
       FROM range(1, 501) t(i)""",
)


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the eight tables."""
    connection.execute("SET TimeZone = 'UTC'")
    for statement in _TABLES:
        connection.execute(statement)
