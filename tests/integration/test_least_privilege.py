"""The start-up proof on real sources: what PostgreSQL and Redshift grant, how files are opened, and what a run records of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from assay_agent.adapters.environment_secrets import open_provider
from assay_agent.ports import QueryLimits
from assay_agent.wiring import open_warehouses
from assay_core.errors import ConfigError, QueryError
from assay_core.model.project import Project
from assay_core.model.run import CredentialRecord
from tests.integration import redshift
from tests.integration.postgres import PASSWORD, PostgresServer, postgres_server

ROLE = "proof"
LIMITS = QueryLimits(rows=10, cell_chars=100, result_bytes=10_000, timeout_s=20.0)


def _opened(source: dict[str, Any]) -> CredentialRecord:
    """Open a datasource as a run does and close it; the record of its credential."""
    project = Project.model_validate({"id": "p", "datasources": [{"id": "shop", **source}]})
    records: list[CredentialRecord] = []
    for warehouse in open_warehouses(project, open_provider(), record=records.append).values():
        warehouse.close()
    return records[0]


@pytest.fixture(scope="module")
def server() -> PostgresServer:
    return postgres_server()


@pytest.fixture
def database(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database with a table, a sequence and a schema, and a fresh role that may read them."""
    monkeypatch.setenv("WAREHOUSE_CREDENTIALS_SHOP", PASSWORD)
    with server.database() as name:
        with server.connect(name) as session:
            for statement in (
                f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'",
                "CREATE ROLE writers",
                "CREATE TABLE orders (id integer, amount integer)",
                "CREATE VIEW large AS SELECT * FROM orders WHERE amount > 10",
                "CREATE SEQUENCE numbers",
                "CREATE SCHEMA extra",
                "CREATE TABLE extra.lines (id integer)",
                f"GRANT USAGE ON SCHEMA public, extra TO {ROLE}",
                f"GRANT SELECT ON ALL TABLES IN SCHEMA public, extra TO {ROLE}",
            ):
                session.execute(statement)
        yield name
        with server.connect(name) as session:
            for role in (ROLE, "writers"):
                session.execute(f"DROP OWNED BY {role} CASCADE")
                session.execute(f"DROP ROLE {role}")


def _source(server: PostgresServer, database: str, **more: Any) -> dict[str, Any]:
    return {"provider": "postgres", "config": server.config(database, user=ROLE), **more}


def test_a_role_that_may_only_read_is_proven_to_be_one(server: PostgresServer, database: str) -> None:
    record = _opened(_source(server, database))
    assert (record.datasource_id, record.user, record.read_only, record.reasons) == ("shop", ROLE, True, [])
    assert "catalogue" in record.proof


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"ALTER ROLE {ROLE} SUPERUSER", "it is superuser"),
        (f"ALTER ROLE {ROLE} CREATEDB", "it is createdb"),
        (f"ALTER ROLE {ROLE} CREATEROLE", "it is createrole"),
        (f"ALTER ROLE {ROLE} REPLICATION", "it is replication"),
        (f"ALTER ROLE {ROLE} BYPASSRLS", "it is bypassrls"),
        (f"GRANT pg_write_all_data TO {ROLE}", "it is a member of pg_write_all_data"),
        (f"GRANT pg_read_server_files TO {ROLE}", "it is a member of pg_read_server_files"),
        (f"GRANT pg_execute_server_program TO {ROLE}", "it is a member of pg_execute_server_program"),
        (f"GRANT pg_signal_backend TO {ROLE}", "it is a member of pg_signal_backend"),
        (f"GRANT INSERT ON orders TO {ROLE}", "INSERT on table public.orders"),
        (f"GRANT UPDATE (amount) ON orders TO {ROLE}", "UPDATE on columns of public.orders"),
        (f"GRANT DELETE, TRUNCATE ON extra.lines TO {ROLE}", "DELETE, TRUNCATE on table extra.lines"),
        (f"GRANT UPDATE ON large TO {ROLE}", "UPDATE on table public.large"),
        ("GRANT INSERT ON orders TO PUBLIC", "INSERT on table public.orders"),
        (f"GRANT UPDATE ON SEQUENCE numbers TO {ROLE}", "UPDATE on sequence public.numbers"),
        (f"GRANT CREATE ON SCHEMA extra TO {ROLE}", "CREATE on schema extra"),
        (f"ALTER TABLE orders OWNER TO {ROLE}", "TRUNCATE, UPDATE on table public.orders"),
        (f"ALTER SCHEMA extra OWNER TO {ROLE}", "OWNER on schema extra"),
        (
            "GRANT INSERT ON orders TO writers; GRANT writers TO proof WITH INHERIT FALSE",
            "INSERT on table public.orders",
        ),
        ("ALTER ROLE writers CREATEDB; GRANT writers TO proof", "it is createdb"),
    ],
)
def test_a_role_that_could_write_is_refused_unless_it_is_named(
    server: PostgresServer, database: str, statement: str, words: str
) -> None:
    with server.connect(database) as session:
        session.execute(statement.encode())
    with pytest.raises(ConfigError) as refused:
        _opened(_source(server, database))
    said = str(refused.value)
    assert said.startswith(f"datasource shop: the credential '{ROLE}' could write: ")
    assert words in said
    assert "\n" not in said
    assert PASSWORD not in said
    record = _opened(_source(server, database, allow_writable_credential=ROLE))
    assert (record.read_only, record.allowed_by_name) == (False, True)
    assert any(words in reason for reason in record.reasons)


def test_a_right_to_create_in_the_database_counts(server: PostgresServer, database: str) -> None:
    with server.connect(database) as session:
        session.execute(f"GRANT CREATE ON DATABASE {database} TO {ROLE}".encode())
    with pytest.raises(ConfigError, match=f"CREATE on database {database}"):
        _opened(_source(server, database))


def test_an_allowed_credential_still_cannot_write_in_a_run(server: PostgresServer, database: str) -> None:
    with server.connect(database) as session:
        session.execute(f"GRANT ALL ON orders TO {ROLE}".encode())
    source = _source(server, database, allow_writable_credential=ROLE)
    project = Project.model_validate({"id": "p", "datasources": [{"id": "shop", **source}]})
    warehouse = open_warehouses(project, open_provider())["shop"]
    try:
        # The guard would not let it come so far; the session does not let it go further.
        with pytest.raises(QueryError):
            warehouse.execute(
                "WITH x AS (INSERT INTO orders VALUES (1, 1) RETURNING id) SELECT id FROM x", limits=LIMITS
            )
    finally:
        warehouse.close()
    with psycopg.connect(**_as_role(server, database)) as plain:
        plain.execute("INSERT INTO orders VALUES (1, 1)")  # the grant is real


def _as_role(server: PostgresServer, database: str) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": server.port, "user": ROLE, "password": PASSWORD, "dbname": database}


# ----------------------------------------------------------------------------------------------------- Redshift


@pytest.fixture
def dressed(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database like Redshift's with tables, and a fresh user, a group and two roles, one granted to the other."""
    monkeypatch.setenv("WAREHOUSE_CREDENTIALS_SHOP", PASSWORD)
    roles = (ROLE, "red_group", "outer_role", "inner_role")
    with redshift.redshift_database(server) as name:
        with server.connect(name) as session:
            for statement in (
                f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'",
                "CREATE ROLE red_group; CREATE ROLE outer_role; CREATE ROLE inner_role",
                "GRANT inner_role TO outer_role",
                "CREATE TABLE orders (id integer, amount integer)",
                "CREATE SCHEMA extra",
                f"GRANT USAGE ON SCHEMA public, extra TO {ROLE}",
                f"GRANT SELECT ON ALL TABLES IN SCHEMA public, extra TO {ROLE}",
            ):
                session.execute(statement)
        yield name
        with server.connect(name) as session:
            for role in roles:
                session.execute(f"DROP OWNED BY {role} CASCADE".encode())
                session.execute(f"DROP ROLE {role}".encode())


def _redshift(server: PostgresServer, database: str, **more: Any) -> dict[str, Any]:
    return {"provider": "redshift", "config": redshift.config(server, database, user=ROLE), **more}


def test_a_redshift_user_that_may_only_read_is_proven_to_be_one(server: PostgresServer, dressed: str) -> None:
    with server.connect(dressed) as session:
        session.execute("GRANT SELECT ON orders TO inner_role; GRANT outer_role, red_group TO proof")
        session.execute(
            "INSERT INTO svv_system_privileges VALUES ('ACCESS SYSTEM TABLE', 1, 'outer_role', 'role'), "
            "('DROP TABLE', 2, 'somebody', 'role')"
        )
    record = _opened(_redshift(server, dressed))
    assert (record.user, record.read_only, record.reasons) == (ROLE, True, [])
    assert "system views" in record.proof


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"ALTER ROLE {ROLE} SUPERUSER", "it is superuser"),
        (f"ALTER ROLE {ROLE} CREATEDB", "it is createdb"),
        (f"GRANT INSERT ON orders TO {ROLE}", "INSERT on table public.orders"),
        ("GRANT DELETE ON orders TO PUBLIC", "DELETE on table public.orders"),
        ("GRANT UPDATE ON orders TO red_group; GRANT red_group TO proof", "UPDATE on table public.orders"),
        (f"GRANT UPDATE (amount) ON orders TO {ROLE}", "UPDATE on columns of public.orders"),
        (
            "GRANT TRUNCATE ON orders TO inner_role; GRANT outer_role TO proof",
            "TRUNCATE on table public.orders",
        ),
        (f"GRANT CREATE ON SCHEMA extra TO {ROLE}", "CREATE on schema extra"),
        ("GRANT CREATE ON SCHEMA extra TO inner_role; GRANT outer_role TO proof", "CREATE on schema extra"),
        (f"ALTER TABLE orders OWNER TO {ROLE}", "OWNER, TRIGGER, TRUNCATE, UPDATE on table public.orders"),
        (f"ALTER SCHEMA extra OWNER TO {ROLE}", "OWNER on schema extra"),
        (
            "INSERT INTO svv_system_privileges VALUES ('DROP TABLE', 1, 'inner_role', 'role'); "
            "GRANT outer_role TO proof",
            "DROP TABLE on the system",
        ),
    ],
)
def test_a_redshift_user_that_could_write_is_refused_unless_it_is_named(
    server: PostgresServer, dressed: str, statement: str, words: str
) -> None:
    with server.connect(dressed) as session:
        session.execute(statement.encode())
    with pytest.raises(ConfigError) as refused:
        _opened(_redshift(server, dressed))
    said = str(refused.value)
    assert said.startswith(f"datasource shop: the credential '{ROLE}' could write: ")
    assert words in said
    assert "\n" not in said
    record = _opened(_redshift(server, dressed, allow_writable_credential=ROLE))
    assert (record.read_only, record.allowed_by_name) == (False, True)


def test_a_redshift_that_hides_its_grants_is_recorded_as_not_proven(
    server: PostgresServer, dressed: str
) -> None:
    with server.connect(dressed) as session:
        session.execute("REVOKE SELECT ON pg_catalog.svv_role_grants FROM PUBLIC")
    record = _opened(_redshift(server, dressed))
    assert (record.read_only, record.reasons) == (None, [])


def test_a_duckdb_file_is_proven_by_how_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    record = _opened({"provider": "duckdb", "config": {"path": str(path)}})
    assert (record.user, record.read_only) == ("file", True)


def test_a_sqlite_file_is_proven_by_a_write_that_it_refuses(tmp_path: Path) -> None:
    path = tmp_path / "w.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a INTEGER)")
    connection.commit()
    connection.close()
    record = _opened({"provider": "sqlite", "config": {"path": str(path)}})
    assert (record.user, record.read_only) == ("file", True)
