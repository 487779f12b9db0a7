"""PostgreSQL where it differs: credentials, roles, thousands of tables, and what a reader may see."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from assay_agent.adapters.postgres import open_warehouse
from assay_agent.ports import QueryLimits, WarehouseSettings
from assay_core.errors import ConfigError, QueryError, TransientError
from tests.integration.postgres import PASSWORD, PostgresServer, postgres_server

LIMITS = QueryLimits(rows=100, cell_chars=200, result_bytes=1 << 20, timeout_s=20)


@pytest.fixture(scope="module")
def server() -> PostgresServer:
    return postgres_server()


@pytest.fixture
def database(server: PostgresServer) -> Iterator[str]:
    with server.database() as name:
        yield name


def _settings(
    config: dict[str, Any], *, secret: str | None = PASSWORD, datasets: tuple[str, ...] = ()
) -> WarehouseSettings:
    return WarehouseSettings(
        datasource_id="default", provider="postgres", datasets=datasets, config=config, secret=secret
    )


def test_a_wrong_password_is_a_config_error_without_the_password(
    server: PostgresServer, database: str
) -> None:
    with pytest.raises(ConfigError, match="password authentication failed") as failed:
        open_warehouse(_settings(server.config(database), secret="s3cr3t-guess"))
    assert "s3cr3t-guess" not in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_missing_password_database_or_user_is_a_config_error(server: PostgresServer, database: str) -> None:
    config = server.config(database)
    for changed, secret in (
        (config, None),
        ({**config, "database": "no_such_database"}, PASSWORD),
        ({**config, "user": "no_such_user"}, PASSWORD),
        ({**config, "sslmode": "require"}, PASSWORD),
        ({**config, "sslmode": "nonsense"}, PASSWORD),
        ({**config, "host": "no-such-host.invalid"}, PASSWORD),
        ({key: value for key, value in config.items() if key != "database"}, PASSWORD),
    ):
        with pytest.raises(ConfigError) as failed:
            open_warehouse(_settings(changed, secret=secret))
        assert PASSWORD not in str(failed.value)


def test_an_unreachable_server_is_transient_and_found_out_soon(server: PostgresServer, database: str) -> None:
    started = time.monotonic()
    with pytest.raises(TransientError) as failed:
        open_warehouse(_settings({**server.config(database), "port": 1}))
    assert failed.value.dependency == "warehouse"
    assert time.monotonic() - started < 15
    assert PASSWORD not in str(failed.value)


def test_a_url_works_as_settings(server: PostgresServer, database: str) -> None:
    url = f"postgresql://postgres@127.0.0.1:{server.port}/{database}?sslmode=disable"
    warehouse = open_warehouse(_settings({"url": url}))
    assert warehouse.execute("SELECT 1", limits=LIMITS).rows == ((1,),)
    warehouse.close()


def test_the_session_is_read_only_named_and_in_utc(server: PostgresServer, database: str) -> None:
    with server.connect(database) as connection:
        connection.execute('CREATE SCHEMA "we ird"')
    warehouse = open_warehouse(_settings(server.config(database), datasets=("public", "we ird")))
    result = warehouse.execute(
        "SELECT current_setting('transaction_read_only'), current_setting('application_name'), "
        "current_setting('timezone'), current_setting('search_path'), current_setting('statement_timeout')",
        limits=LIMITS,
    )
    assert result.rows == (("on", "assay", "UTC", '"public", "we ird"', "20s"),)
    for attempt in ("SELECT set_config('transaction_read_only', 'off', false)", "SELECT nextval('s')"):
        with pytest.raises(QueryError):
            warehouse.execute(attempt, limits=LIMITS)
    warehouse.close()


def test_an_interval_in_another_style_stays_text(server: PostgresServer, database: str) -> None:
    with server.connect(database) as connection:
        connection.execute(f"ALTER DATABASE {database} SET intervalstyle = 'iso_8601'".encode())
    warehouse = open_warehouse(_settings(server.config(database)))
    assert warehouse.execute("SELECT interval '3 days'", limits=LIMITS).rows == (("P3D",),)
    warehouse.close()


def test_a_reader_sees_only_what_it_may_read(server: PostgresServer, database: str) -> None:
    with server.connect(database) as connection:
        connection.execute("CREATE TABLE open_table (a int, b text); CREATE TABLE closed_table (a int)")
        connection.execute("CREATE TABLE half_open (a int, secret text)")
        connection.execute("GRANT SELECT ON open_table TO reader; GRANT SELECT (a) ON half_open TO reader")
    warehouse = open_warehouse(_settings(server.config(database, user="reader")))
    assert [table.ref for table in warehouse.tables()] == ["public.half_open", "public.open_table"]
    with pytest.raises(QueryError, match="permission denied") as failed:
        warehouse.execute("SELECT * FROM closed_table", limits=LIMITS)
    assert failed.value.kind == "permission"
    warehouse.close()


def test_partitions_are_one_table_and_every_kind_of_relation_is_listed(
    server: PostgresServer, database: str
) -> None:
    with server.connect(database) as connection:
        connection.execute("CREATE TABLE events (day date, n int) PARTITION BY RANGE (day)")
        for month in range(1, 4):
            connection.execute(
                f"CREATE TABLE events_{month} PARTITION OF events "
                f"FOR VALUES FROM ('2020-0{month}-01') TO ('2020-0{month + 1}-01')".encode()
            )
        connection.execute("CREATE MATERIALIZED VIEW daily AS SELECT day, sum(n) FROM events GROUP BY day")
        connection.execute("CREATE VIEW recent AS SELECT * FROM events")
        connection.execute(
            "COMMENT ON TABLE events IS 'one row per event'; COMMENT ON COLUMN events.n IS 'how many'"
        )
        connection.execute(
            "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE moods (m mood, p point, x mood[])"
        )
    warehouse = open_warehouse(_settings(server.config(database)))
    assert [table.ref for table in warehouse.tables()] == [
        f"public.{name}" for name in ("daily", "events", "moods", "recent")
    ]
    events, moods = warehouse.describe(["public.events", "moods"])
    assert events.comment == "one row per event"
    assert [(column.name, column.comment) for column in events.columns] == [("day", ""), ("n", "how many")]
    assert [(column.type, column.kind) for column in moods.columns] == [
        ("mood", "STRING"),
        ("point", "STRING"),
        ("mood[]", "RECORD"),
    ]
    warehouse.close()


def test_two_thousand_tables_are_listed_and_described_in_seconds(
    server: PostgresServer, database: str
) -> None:
    with server.connect(database) as connection:
        for start in range(0, 2_000, 200):
            connection.execute(
                ";".join(
                    f"CREATE TABLE t{n} (id int PRIMARY KEY, name text, made timestamptz, price numeric(10,2), "
                    f"a int, b int, c text, d text, e float8, f bool)"
                    for n in range(start, start + 200)
                ).encode()
            )
    warehouse = open_warehouse(_settings(server.config(database)))
    started = time.monotonic()
    listed = warehouse.tables()
    list_s = time.monotonic() - started
    described = warehouse.describe([table.ref for table in listed])
    describe_s = time.monotonic() - started - list_s
    warehouse.close()
    sys.stdout.write(f"\n2,000 tables: listed in {list_s:.2f} s, described in {describe_s:.2f} s\n")
    assert len(listed) == len(described) == 2_000
    assert sum(len(table.columns) for table in described) == 20_000
    assert described[0].columns[0].category == "primary_key"
    assert list_s + describe_s < 15


def test_a_killed_connection_is_transient_and_the_next_statement_works(
    server: PostgresServer, database: str
) -> None:
    warehouse = open_warehouse(_settings(server.config(database)))
    with server.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (database,)
        )
    time.sleep(0.2)
    assert warehouse.execute("SELECT 1", limits=LIMITS).rows == ((1,),)
    warehouse.close()


def test_the_secret_is_not_in_the_settings_repr(server: PostgresServer, database: str) -> None:
    assert PASSWORD not in repr(_settings(server.config(database)))


def test_a_schema_that_is_not_there_and_one_that_may_not_be_used_are_told_apart(
    server: PostgresServer, database: str
) -> None:
    with server.connect(database) as connection:
        connection.execute("CREATE SCHEMA hidden")
    config = server.config(database, user="reader")
    with pytest.raises(
        ConfigError, match=r"datasets names 'nowhere', and .* has these schemas: hidden, public$"
    ):
        open_warehouse(_settings(config, datasets=("public", "nowhere")))
    with pytest.raises(ConfigError, match=r"reader may not use schema 'hidden' of .*; grant USAGE on it"):
        open_warehouse(_settings(config, datasets=("hidden",)))
