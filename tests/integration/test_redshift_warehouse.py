"""Redshift where it differs, on PostgreSQL with its system views: views without binding, external schemas, log-ins, errors."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from assay_agent.adapters.redshift import PAGE_ROWS, open_warehouse
from assay_agent.ports import QueryLimits, Warehouse, WarehouseSettings
from assay_core.errors import ConfigError, QueryError, TransientError
from tests.aws_server import aws_server
from tests.integration.postgres import PASSWORD, PostgresServer, postgres_server
from tests.integration.redshift import LATE_BINDING, config, redshift_database

LIMITS = QueryLimits(rows=5_000, cell_chars=200, result_bytes=1 << 20, timeout_s=20)
KEYS = '{"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "very/secret"}'


@pytest.fixture(scope="module")
def server() -> PostgresServer:
    return postgres_server()


@pytest.fixture
def database(server: PostgresServer) -> Iterator[str]:
    with redshift_database(server) as name:
        yield name


def _run(server: PostgresServer, database: str, *statements: str) -> None:
    with server.connect(database) as session:
        for statement in statements:
            session.execute(statement.encode())


def _settings(
    config: dict[str, Any], *, secret: str | None = PASSWORD, datasets: tuple[str, ...] = ()
) -> WarehouseSettings:
    return WarehouseSettings(
        datasource_id="shop", provider="redshift", datasets=datasets, config=config, secret=secret
    )


def _rows(warehouse: Warehouse, sql: str) -> tuple[tuple[Any, ...], ...]:
    return warehouse.execute(sql, limits=LIMITS).rows


# ---------------------------------------------------------------------------------------------------- catalogue


def test_a_late_binding_view_is_listed_described_and_read(server: PostgresServer, database: str) -> None:
    _run(
        server,
        database,
        "CREATE TABLE sales (id int PRIMARY KEY, price numeric(10,2) NOT NULL)",
        "INSERT INTO sales VALUES (1, 9.50)",
        "CREATE VIEW late AS SELECT id AS sale, price FROM sales",
        f"COMMENT ON VIEW late IS '{LATE_BINDING}'",
        "CREATE VIEW bound AS SELECT id FROM sales",
        "COMMENT ON COLUMN sales.id IS 'sortkey 1'",
        "COMMENT ON TABLE sales IS 'one row per sale'",
    )
    warehouse = open_warehouse(_settings(config(server, database)))
    assert [(t.ref, t.column_count) for t in warehouse.tables()] == [
        ("public.bound", 1),
        ("public.late", 2),
        ("public.sales", 2),
    ]
    late, sales = warehouse.describe(["late", "sales"])
    assert [(c.name, c.type, c.kind) for c in late.columns] == [
        ("sale", "integer", "INT64"),
        ("price", "numeric(10,2)", "FLOAT64"),
    ]
    assert sales.comment == "one row per sale"
    assert [(c.category, c.nullable) for c in sales.columns] == [("primary_key", False), ("metric", False)]
    assert sales.columns[0].comment == "sortkey 1; sorts the table: a filter on it reads less"
    assert [int(row[0]) for row in warehouse.sample("late", limits=LIMITS).rows] == [1]
    warehouse.close()


def test_a_broken_view_spoils_neither_listing_nor_the_other_views(
    server: PostgresServer, database: str
) -> None:
    _run(
        server,
        database,
        "CREATE TABLE sales (id int, name text)",
        "CREATE VIEW late AS SELECT * FROM sales",
        "CREATE FUNCTION gone() RETURNS int LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'relation \"gone\" does not exist' USING ERRCODE = '42P01'; END $$",
        "CREATE VIEW broken AS SELECT * FROM sales WHERE id = gone()",
        f"COMMENT ON VIEW late IS '{LATE_BINDING}'",
        f"COMMENT ON VIEW broken IS '{LATE_BINDING}'",
        "DROP FUNCTION pg_catalog.pg_get_late_binding_view_cols()",
        "REVOKE SELECT ON late, broken FROM PUBLIC",
        "GRANT SELECT ON late TO reader",
        "GRANT SELECT ON sales TO reader",
    )
    warehouse = open_warehouse(_settings(config(server, database)))
    assert [t.ref for t in warehouse.tables()] == ["public.broken", "public.late", "public.sales"]
    late, sales = warehouse.describe(["late", "sales"])
    assert [(c.name, c.type) for c in late.columns] == [("id", "int4"), ("name", "text")]
    assert [c.name for c in sales.columns] == ["id", "name"]
    warehouse.close()


def test_external_schemas_are_listed_described_and_never_searched(
    server: PostgresServer, database: str
) -> None:
    _run(
        server,
        database,
        "CREATE TABLE sales (id int)",
        "CREATE SCHEMA lake",
        "CREATE TABLE lake.events (id bigint NOT NULL, name text, price double precision, extra jsonb, day date)",
        "INSERT INTO lake.events VALUES (7, 'seen', 1.5, '{\"a\": 1}', '2020-01-02')",
        'COMMENT ON TABLE lake.events IS \'{"numRows": "170000"}\'',
        "COMMENT ON COLUMN lake.events.day IS 'partition'",
        "INSERT INTO pg_external_schema SELECT oid, 1, 'glue', '{}' FROM pg_namespace WHERE nspname = 'lake'",
    )
    warehouse = open_warehouse(_settings(config(server, database), datasets=("public", "lake")))
    assert warehouse.datasets == ("public", "lake")
    assert [(t.ref, t.column_count, t.row_count) for t in warehouse.tables()] == [
        ("lake.events", 5, 170_000),
        ("public.sales", 1, None),
    ]
    (events,) = warehouse.describe(["events"])
    assert [(c.name, c.type, c.kind, c.nullable) for c in events.columns] == [
        ("id", "bigint", "INT64", False),
        ("name", "string", "STRING", True),
        ("price", "double", "FLOAT64", True),
        ("extra", "struct<a:int>", "RECORD", True),
        ("day", "date", "DATE", True),
    ]
    assert events.columns[-1].comment == "partitions the table: a filter on it reads less"
    assert warehouse.sample("lake.events", limits=LIMITS).rows[0][:2] == (7, "seen")
    assert _rows(warehouse, "SELECT current_setting('search_path')") == (("public",),)
    warehouse.close()
    only = open_warehouse(_settings(config(server, database), datasets=("lake",)))
    assert [t.ref for t in only.tables()] == ["lake.events"]
    assert _rows(only, "SELECT current_setting('search_path')") == (("pg_catalog",),)
    only.close()


def test_a_reader_sees_what_it_may_read_and_counts_only_where_it_may(
    server: PostgresServer, database: str
) -> None:
    _run(
        server,
        database,
        "CREATE TABLE open_table (a int); INSERT INTO open_table VALUES (1), (2)",
        "CREATE TABLE closed_table (a int); CREATE TABLE blank (a int)",
        "GRANT SELECT ON open_table, blank TO reader; ANALYZE",
    )
    settings = _settings(config(server, database, user="reader"))
    warehouse = open_warehouse(settings)
    assert [(t.ref, t.row_count) for t in warehouse.tables()] == [
        ("public.blank", None),
        ("public.open_table", None),
    ]
    with pytest.raises(QueryError, match="permission denied") as failed:
        warehouse.execute("SELECT * FROM closed_table", limits=LIMITS)
    assert failed.value.kind == "permission"
    _run(server, database, "GRANT SELECT ON pg_catalog.svv_table_info TO reader")
    assert [t.row_count for t in warehouse.tables()] == [0, 2]
    warehouse.close()


def test_a_schema_that_is_not_there_is_named_once(server: PostgresServer, database: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        open_warehouse(_settings(config(server, database), datasets=("public", "Sales")))
    assert str(wrong.value) == (
        f"datasets names 'Sales', and postgres@127.0.0.1:{server.port}/{database} has these schemas: public"
    )


# ------------------------------------------------------------------------------------------------------- log-in


def test_plain_postgresql_is_told_to_be_one(server: PostgresServer) -> None:
    with (
        server.database() as name,
        pytest.raises(ConfigError, match=r"provider is 'redshift', and .* is PostgreSQL 18.*postgres$"),
    ):
        open_warehouse(_settings(config(server, name)))


def test_encryption_is_asked_for_unless_settings_say_otherwise(server: PostgresServer, database: str) -> None:
    with pytest.raises(ConfigError, match="does not support SSL"):
        open_warehouse(_settings(server.config(database)))


def test_a_wrong_log_in_is_one_line_without_the_password(server: PostgresServer, database: str) -> None:
    known = config(server, database)
    for changed, secret, words in (
        (known, "s3cr3t-guess", "password authentication failed"),
        (known, None, "there is no password for postgres"),
        ({**known, "database": "no_such"}, PASSWORD, "no_such"),
        ({key: value for key, value in known.items() if key != "database"}, PASSWORD, "name of a database"),
        ({**known, "host": "no-such-host.invalid"}, PASSWORD, "no-such-host.invalid"),
        ({**known, "iam": "maybe"}, PASSWORD, "config.iam is 'maybe', must be true or false"),
        ({"url": "no url"}, PASSWORD, "redshift://user@host:5439/database"),
    ):
        with pytest.raises(ConfigError, match=words) as failed:
            open_warehouse(_settings(changed, secret=secret))
        assert "\n" not in str(failed.value)
        assert PASSWORD not in str(failed.value)
        assert "s3cr3t-guess" not in str(failed.value)


def test_an_unreachable_cluster_is_transient_and_its_port_is_redshifts(
    server: PostgresServer, database: str
) -> None:
    known = config(server, database)
    del known["port"]
    with pytest.raises(TransientError, match=f"127.0.0.1:5439/{database} is not reachable"):
        open_warehouse(_settings(known))


def test_a_password_of_aws_opens_every_connection_and_is_asked_for_once(
    server: PostgresServer, database: str
) -> None:
    with aws_server() as aws:
        aws.user, aws.password = "postgres", PASSWORD.replace("&", "&amp;")
        settings = _settings(
            {
                **config(server, database, user="analyst"),
                "iam": True,
                "cluster_identifier": "c1",
                "region": "eu-west-1",
                "api_endpoint": aws.url,
            },
            secret=KEYS,
        )
        warehouse = open_warehouse(settings)
        with ThreadPoolExecutor(4) as pool:
            asked = pool.map(
                lambda _: _rows(warehouse, "SELECT current_user, pg_backend_pid(), pg_sleep(0.2)"), range(4)
            )
            rows = [row for answer in asked for row in answer]
        assert {row[0] for row in rows} == {"postgres"}
        assert len({row[1] for row in rows}) == 4
        warehouse.close()
        assert [(call["ClusterIdentifier"], call["DbUser"]) for call in aws.asked] == [("c1", "analyst")]
        aws.password = "expired"
        with pytest.raises(ConfigError, match="password authentication failed") as failed:
            open_warehouse(settings)
    assert "very/secret" not in str(failed.value)


def test_a_url_works_as_settings(server: PostgresServer, database: str) -> None:
    url = f"redshift://postgres@127.0.0.1:{server.port}/{database}?sslmode=disable"
    warehouse = open_warehouse(_settings({"url": url}))
    assert warehouse.check() == "Redshift 1.0.77467"
    warehouse.close()


# ------------------------------------------------------------------------------------------------------ queries


def test_the_session_is_read_only_named_and_in_utc(server: PostgresServer, database: str) -> None:
    warehouse = open_warehouse(_settings(config(server, database)))
    assert _rows(
        warehouse,
        "SELECT current_setting('transaction_read_only'), current_setting('application_name'), "
        "current_setting('timezone'), current_setting('client_encoding'), current_setting('statement_timeout')",
    ) == (("on", "assay", "UTC", "UTF8", "20s"),)
    for attempt in ("SELECT set_config('transaction_read_only', 'off', false)", "SELECT nextval('s')"):
        with pytest.raises(QueryError):
            warehouse.execute(attempt, limits=LIMITS)
    warehouse.close()


def test_no_more_rows_are_fetched_at_once_than_one_node_gives(server: PostgresServer, database: str) -> None:
    _run(server, database, f"ALTER DATABASE {database} SET log_statement = 'all'")
    warehouse = open_warehouse(_settings(config(server, database)))
    assert len(_rows(warehouse, "SELECT i FROM generate_series(1, 4500) AS t(i)")) == 4_500
    warehouse.close()
    fetches = [entry for entry in server.statements(database) if "FETCH FORWARD" in entry]
    sizes = [int(entry.split("FETCH FORWARD ")[1].split(maxsplit=1)[0]) for entry in fetches]
    assert max(sizes) == PAGE_ROWS
    assert sum(sizes) >= 4_500


def test_connecting_asks_nothing_that_redshift_does_not_know(server: PostgresServer, database: str) -> None:
    _run(server, database, f"ALTER DATABASE {database} SET log_statement = 'all'")
    warehouse = open_warehouse(_settings(config(server, database)))
    warehouse.tables()
    warehouse.close()
    said = "\n".join(server.statements(database))
    assert "BEGIN READ ONLY" in said
    for unknown in (
        "standard_conforming_strings",
        "hstore",
        "to_regtype",
        "DISCARD",
        "SAVEPOINT",
        "pg_roles",
        "unnest",
    ):
        assert unknown not in said


def test_the_nodes_own_reason_is_said_and_their_report_is_not(server: PostgresServer, database: str) -> None:
    report = (
        "\n  -----------------------------------------------\n  error:  Spectrum Scan Error\n  code:      15001\n"
        "  context:   Forbidden: HTTP response error code: 403\n  query:     4711\n  location:  dory_util.cpp:1509\n"
    )
    _run(
        server,
        database,
        "CREATE FUNCTION scan() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
        f"RAISE EXCEPTION 'Spectrum Scan Error' USING ERRCODE = 'XX000', DETAIL = '{report}'; END $$",
        "CREATE FUNCTION ruled() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
        "'Query (4711) cancelled by WLM abort action of Query Monitoring Rule \"rows\"' USING ERRCODE = '57014'; END $$",
    )
    warehouse = open_warehouse(_settings(config(server, database)))
    with pytest.raises(QueryError) as failed:
        warehouse.execute("SELECT scan()", limits=LIMITS)
    assert str(failed.value) == "Spectrum Scan Error\nForbidden: HTTP response error code: 403"
    with pytest.raises(
        QueryError, match=r'by a rule of the cluster: .*Query Monitoring Rule "rows"'
    ) as stopped:
        warehouse.execute("SELECT ruled()", limits=LIMITS)
    assert stopped.value.kind == "timeout"
    warehouse.close()


def test_the_secret_is_not_in_the_settings_repr(server: PostgresServer, database: str) -> None:
    assert PASSWORD not in repr(_settings(config(server, database)))
