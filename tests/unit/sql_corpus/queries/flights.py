"""The small tables that most queries of the corpus run on, as each dialect creates them."""

from __future__ import annotations

FLIGHTS = {
    "duckdb": (
        "CREATE TABLE flights (id INTEGER, carrier VARCHAR, origin VARCHAR, dest VARCHAR, dep_delay INTEGER, "
        "arr_delay INTEGER, distance DOUBLE, ts TIMESTAMP, day DATE, info JSON, tags VARCHAR[], "
        "box STRUCT(w INTEGER, h INTEGER), late BOOLEAN)",
        "INSERT INTO flights SELECT i, ['AA', 'UA', 'B6', NULL][i % 4 + 1], ['JFK', 'LGA'][i % 2 + 1], "
        "['LAX', 'SFO', 'BOS'][i % 3 + 1], CASE WHEN i % 11 = 0 THEN NULL ELSE i % 37 - 9 END, i % 53 - 20, i * 1.5, "
        "TIMESTAMP '2013-01-01 00:00:00' + INTERVAL (i * 7) HOUR, DATE '2013-01-01' + (i % 90)::INTEGER, "
        "('{\"a\": ' || i || ', \"b\": {\"c\": [1, ' || i || ']}, \"s\": \"x' || i || '\"}')::JSON, ['a', 't' || i % 3], "
        "{'w': i % 5, 'h': i}, i % 3 = 0 FROM range(200) r(i)",
        "CREATE TABLE airlines (carrier VARCHAR, name VARCHAR)",
        "INSERT INTO airlines VALUES ('AA', 'American'), ('UA', 'United'), ('DL', 'Delta')",
        'CREATE TABLE "Order Lines" ("id" INTEGER, "Größe" DOUBLE, "select" VARCHAR)',
        "INSERT INTO \"Order Lines\" VALUES (1, 1.5, 'x'), (2, NULL, 'y')",
    ),
    "bigquery": (
        "CREATE TABLE flights (id INT64, carrier STRING, origin STRING, dest STRING, dep_delay INT64, arr_delay INT64, "
        "distance FLOAT64, ts TIMESTAMP, day DATE, info JSON, tags ARRAY<STRING>, box STRUCT<w INT64, h INT64>, late BOOL)",
        "INSERT INTO flights SELECT i, ['AA', 'UA', 'B6', NULL][OFFSET(MOD(i, 4))], ['JFK', 'LGA'][OFFSET(MOD(i, 2))], "
        "['LAX', 'SFO', 'BOS'][OFFSET(MOD(i, 3))], CASE WHEN MOD(i, 11) = 0 THEN NULL ELSE MOD(i, 37) - 9 END, "
        "MOD(i, 53) - 20, i * 1.5, TIMESTAMP_ADD(TIMESTAMP '2013-01-01 00:00:00', INTERVAL i * 7 HOUR), "
        "DATE_ADD(DATE '2013-01-01', INTERVAL MOD(i, 90) DAY), "
        'PARSE_JSON(CONCAT(\'{"a": \', i, \', "b": {"c": [1, \', i, \']}, "s": "x\', i, \'"}\')), '
        "['a', CONCAT('t', MOD(i, 3))], STRUCT(MOD(i, 5) AS w, i AS h), MOD(i, 3) = 0 FROM UNNEST(GENERATE_ARRAY(0, 199)) AS i",
        "CREATE TABLE airlines (carrier STRING, name STRING)",
        "INSERT INTO airlines VALUES ('AA', 'American'), ('UA', 'United'), ('DL', 'Delta')",
    ),
    "sqlite": (
        "CREATE TABLE flights (id INTEGER, carrier TEXT, origin TEXT, dest TEXT, dep_delay INTEGER, arr_delay INTEGER, "
        "distance REAL, ts TEXT, day TEXT, info TEXT, late INTEGER)",
        "WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < 199) INSERT INTO flights SELECT i, "
        "CASE i % 4 WHEN 0 THEN 'AA' WHEN 1 THEN 'UA' WHEN 2 THEN 'B6' END, CASE i % 2 WHEN 0 THEN 'JFK' ELSE 'LGA' END, "
        "CASE i % 3 WHEN 0 THEN 'LAX' WHEN 1 THEN 'SFO' ELSE 'BOS' END, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 37 - 9 END, "
        "i % 53 - 20, i * 1.5, datetime('2013-01-01', '+' || (i * 7) || ' hours'), date('2013-01-01', '+' || (i % 90) || "
        "' days'), json_object('a', i, 'b', json_object('c', json_array(1, i)), 's', 'x' || i), i % 3 = 0 FROM r",
        "CREATE TABLE airlines (carrier TEXT, name TEXT)",
        "INSERT INTO airlines VALUES ('AA', 'American'), ('UA', 'United'), ('DL', 'Delta')",
        'CREATE TABLE "Order Lines" ("id" INTEGER, "Größe" REAL, "select" TEXT)',
        "INSERT INTO \"Order Lines\" VALUES (1, 1.5, 'x'), (2, NULL, 'y')",
    ),
    "postgres": (
        "CREATE TABLE flights (id integer, carrier text, origin text, dest text, dep_delay integer, arr_delay integer, "
        "distance double precision, ts timestamp, day date, info jsonb, tags text[], late boolean, price numeric(12,2))",
        "INSERT INTO flights SELECT i, (ARRAY['AA', 'UA', 'B6', NULL])[i % 4 + 1], (ARRAY['JFK', 'LGA'])[i % 2 + 1], "
        "(ARRAY['LAX', 'SFO', 'BOS'])[i % 3 + 1], CASE WHEN i % 11 = 0 THEN NULL ELSE i % 37 - 9 END, i % 53 - 20, i * 1.5, "
        "timestamp '2013-01-01 00:00:00' + i * interval '7 hours', date '2013-01-01' + i % 90, "
        "jsonb_build_object('a', i, 'b', jsonb_build_object('c', jsonb_build_array(1, i)), 's', 'x' || i), "
        "ARRAY['a', 't' || i % 3], i % 3 = 0, i * 1.25 FROM generate_series(0, 199) i",
        "CREATE TABLE airlines (carrier text, name text)",
        "INSERT INTO airlines VALUES ('AA', 'American'), ('UA', 'United'), ('DL', 'Delta')",
        'CREATE TABLE "Order Lines" ("id" integer, "Größe" double precision, "select" text)',
        "INSERT INTO \"Order Lines\" VALUES (1, 1.5, 'x'), (2, NULL, 'y')",
    ),
}
