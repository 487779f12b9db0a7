"""Small real sources for the contract suite: the same tables in DuckDB, SQLite, PostgreSQL, the BigQuery emulator, and Redshift.

Redshift cannot be had: its adapter is held to the contract on PostgreSQL with Redshift's system views.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from assay_agent.adapters import bigquery as bigquery_adapter
from assay_agent.adapters import duckdb as duckdb_adapter
from assay_agent.adapters import postgres as postgres_adapter
from assay_agent.adapters import redshift as redshift_adapter
from assay_agent.adapters import sqlite as sqlite_adapter
from assay_agent.ports import QueryLimits, Warehouse, WarehouseSettings
from assay_agent.sql.dialects import quote_name
from tests.bigquery_server import bigquery_server
from tests.integration import redshift
from tests.integration.postgres import PASSWORD, postgres_server

PROVIDERS = ("duckdb", "sqlite", "postgres", "redshift", "bigquery")
ROWS = 2_000
STRANGE = (
    "two words",
    "select",
    "Größe",
    "🛒",
    'quo"te',
    "a.b",
    "UPPER",
    "x'y",
    "semi;colon",
    "per%cent",
    "co:lon",
)

STRANGE_TO_BIGQUERY = ("select", "UPPER", "with-dash", "hash")
"""BigQuery takes letters, digits, spaces, dashes and underscores of any script; its emulator fewer of them."""

_TABLES = (
    "CREATE TABLE people (id INTEGER PRIMARY KEY, name VARCHAR(50) NOT NULL, age INTEGER, salary NUMERIC(12, 2), "
    "active BOOLEAN, born DATE, seen TIMESTAMP)",
    "CREATE VIEW adults AS SELECT id, name FROM people WHERE age >= 18",
    "CREATE TABLE blank (a INTEGER, b VARCHAR(5))",
    "CREATE TABLE many (n INTEGER, t VARCHAR(40))",
    "INSERT INTO people VALUES (1, 'Ann', 30, 1000.50, true, '1880-02-29', '2020-01-02 03:04:05')",
    "INSERT INTO people VALUES (2, 'Béa 🛒 שלום', 17, NULL, false, NULL, NULL)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An opened warehouse and the name of the schema its tables are in."""

    warehouse: Warehouse
    schema: str
    settings: WarehouseSettings
    open: Callable[[WarehouseSettings], Warehouse]

    @property
    def provider(self) -> str:
        return self.settings.provider


def some_limits(**changed: Any) -> QueryLimits:
    given: dict[str, Any] = {"rows": 1_000, "cell_chars": 2_000, "result_bytes": 16 << 20, "timeout_s": 30.0}
    return QueryLimits(**(given | changed))


def strange_names(provider: str) -> tuple[str, ...]:
    return STRANGE_TO_BIGQUERY if provider == "bigquery" else STRANGE


def statements(provider: str = "") -> list[str]:
    strange = [
        statement
        for name in strange_names(provider)
        for quoted in [quote_name(name, dialect=provider)]
        for statement in (
            f"CREATE TABLE {quoted} ({quoted} INTEGER, plain VARCHAR(9))",
            f"INSERT INTO {quoted} VALUES (7, 'seven')",
        )
    ]
    return [*_TABLES, *strange]


@contextmanager
def source(provider: str, folder: Path) -> Iterator[Source]:
    """The tables in a source of `provider`, opened."""
    makers = {
        "duckdb": _duckdb,
        "sqlite": _sqlite,
        "postgres": _postgres,
        "redshift": _redshift,
        "bigquery": _bigquery,
    }
    with makers[provider](folder) as made:
        try:
            yield made
        finally:
            made.warehouse.close()


@contextmanager
def _duckdb(folder: Path) -> Iterator[Source]:
    path = folder / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in statements():
            connection.execute(statement)
        connection.execute(f"INSERT INTO many SELECT i, 'text ' || i FROM range({ROWS}) r(i)")
    settings = WarehouseSettings(datasource_id="d1", provider="duckdb", config={"path": str(path)})
    yield Source(
        warehouse=duckdb_adapter.open_warehouse(settings),
        schema="main",
        settings=settings,
        open=duckdb_adapter.open_warehouse,
    )


@contextmanager
def _sqlite(folder: Path) -> Iterator[Source]:
    path = folder / "data.sqlite"
    connection = sqlite3.connect(path)
    for statement in statements():
        connection.execute(statement)
    connection.executemany("INSERT INTO many VALUES (?, ?)", [(n, f"text {n}") for n in range(ROWS)])
    connection.commit()
    connection.close()
    settings = WarehouseSettings(datasource_id="d1", provider="sqlite", config={"path": str(path)})
    yield Source(
        warehouse=sqlite_adapter.open_warehouse(settings),
        schema="main",
        settings=settings,
        open=sqlite_adapter.open_warehouse,
    )


@contextmanager
def _postgres(folder: Path) -> Iterator[Source]:
    server = postgres_server()
    with server.database() as name:
        with server.connect(name) as connection:
            _fill(connection)
        yield _served(
            WarehouseSettings(
                datasource_id="d1", provider="postgres", config=server.config(name), secret=PASSWORD
            ),
            postgres_adapter.open_warehouse,
        )


@contextmanager
def _redshift(folder: Path) -> Iterator[Source]:
    server = postgres_server()
    with redshift.redshift_database(server) as name:
        with server.connect(name) as connection:
            _fill(connection)
        yield _served(
            WarehouseSettings(
                datasource_id="d1", provider="redshift", config=redshift.config(server, name), secret=PASSWORD
            ),
            redshift_adapter.open_warehouse,
        )


def _fill(connection: psycopg.Connection[Any]) -> None:
    for statement in statements():
        connection.execute(statement.encode())
    connection.execute(
        f"INSERT INTO many SELECT i, 'text ' || i FROM generate_series(0, {ROWS - 1}) i".encode()
    )
    connection.execute("ANALYZE")


def _served(settings: WarehouseSettings, open_warehouse: Callable[[WarehouseSettings], Warehouse]) -> Source:
    return Source(warehouse=open_warehouse(settings), schema="public", settings=settings, open=open_warehouse)


@contextmanager
def _bigquery(folder: Path) -> Iterator[Source]:
    made = [standard(statement) for statement in statements("bigquery")]
    made.append(
        f"INSERT INTO many SELECT i, CONCAT('text ', i) FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS i"
    )
    with bigquery_server() as server, server.dataset(*made) as name:
        server.keys["people"] = ["id"]
        settings = WarehouseSettings(
            datasource_id="d1",
            provider="bigquery",
            datasets=(name,),
            config=server.config(),
            secret=server.key(),
        )
        yield Source(
            warehouse=bigquery_adapter.open_warehouse(settings),
            schema=name,
            settings=settings,
            open=bigquery_adapter.open_warehouse,
        )


def standard(statement: str) -> str:
    """A statement that makes a table, in BigQuery's types."""
    return re.sub(r"VARCHAR(\(\d+\))?", r"STRING\1", statement.replace("PRIMARY KEY", "NOT NULL"))
