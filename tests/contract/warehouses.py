"""Small real sources for the contract suite: the same tables in DuckDB, SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from assay_agent.adapters import duckdb as duckdb_adapter
from assay_agent.adapters import postgres as postgres_adapter
from assay_agent.adapters import sqlite as sqlite_adapter
from assay_agent.ports import QueryLimits, Warehouse, WarehouseSettings
from tests.integration.postgres import PASSWORD, postgres_server

PROVIDERS = ("duckdb", "sqlite", "postgres")
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


def statements() -> list[str]:
    strange = [
        statement
        for name in STRANGE
        for quoted in ['"' + name.replace('"', '""') + '"']
        for statement in (
            f"CREATE TABLE {quoted} ({quoted} INTEGER, plain VARCHAR(9))",
            f"INSERT INTO {quoted} VALUES (7, 'seven')",
        )
    ]
    return [*_TABLES, *strange]


@contextmanager
def source(provider: str, folder: Path) -> Iterator[Source]:
    """The tables in a source of `provider`, opened."""
    makers = {"duckdb": _duckdb, "sqlite": _sqlite, "postgres": _postgres}
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
            for statement in statements():
                connection.execute(statement.encode())
            connection.execute(
                f"INSERT INTO many SELECT i, 'text ' || i FROM generate_series(0, {ROWS - 1}) i".encode()
            )
            connection.execute("ANALYZE")
        settings = WarehouseSettings(
            datasource_id="d1", provider="postgres", config=server.config(name), secret=PASSWORD
        )
        yield Source(
            warehouse=postgres_adapter.open_warehouse(settings),
            schema="public",
            settings=settings,
            open=postgres_adapter.open_warehouse,
        )
