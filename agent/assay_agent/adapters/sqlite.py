"""SQLite files as a warehouse: opened read-only, with an authorizer that lets nothing but reading pass.

Found by the entry point `sqlite`. `settings.config`: `path`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

from assay_agent.adapters.catalog import CatalogColumn, CatalogTable
from assay_agent.adapters.sqlalchemy_warehouse import SqlWarehouse
from assay_agent.adapters.statements import tidy
from assay_agent.ports import Grant, Grants, Warehouse, WarehouseSettings
from assay_agent.sql.dialects import SQLITE, quote_name
from assay_core.errors import AssayError, ConfigError, QueryError, TransientError

CONNECTIONS = 8
BUSY_S = 5.0
"""Seconds to wait for a writer of the file."""
COUNT_S = 5.0
"""Seconds for counting the rows of all tables that have no statistics; what is not counted then is unknown."""
_MAGIC = b"SQLite format 3\x00"
_CACHE_KIB = 64_000
_READING = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_LABELS = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}


def open_warehouse(settings: WarehouseSettings) -> Warehouse:
    """Open the file `settings.config["path"]`; raises ConfigError when it is missing or no SQLite file."""
    path = Path(str(settings.config.get("path", "")))
    if not path.is_file():
        raise ConfigError(f"{path} is not there; config.path must name a SQLite file")
    try:
        with path.open("rb") as stream:
            magic = stream.read(len(_MAGIC))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if magic != _MAGIC:
        raise ConfigError(f"{path} is not a SQLite database file")
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: _connect(path),
        poolclass=QueuePool,
        pool_size=CONNECTIONS,
        max_overflow=CONNECTIONS,
    )
    warehouse = SqlWarehouse(datasource_id=settings.datasource_id, engine=engine, backend=_SQLite(path))
    warehouse.check()
    return warehouse


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, check_same_thread=False, timeout=BUSY_S
    )
    connection.text_factory = _text
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA trusted_schema = OFF")
    # A table-valued function declares its columns on first use, which the authorizer would take for a CREATE.
    connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()
    return connection


def _text(raw: bytes) -> str:
    """Text that is not UTF-8 is read with replacement signs instead of failing the whole result."""
    return raw.decode("utf-8", errors="replace")


def _authorize(
    action: int, first: str | None, second: str | None, database: str | None, trigger: str | None
) -> int:
    """SQLite asks this for each thing a statement would do, while it is prepared."""
    del database, trigger
    if action not in _READING:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in _FUNCTIONS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_READ and (first or "").lower().startswith(("sqlite_", "pragma_", "dbstat")):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


# What operators become inside SQLite.
_FUNCTIONS = SQLITE.functions | {"->", "->>", "glob", "like", "match", "regexp"}


class _SQLite:
    """Catalogue, types and errors of SQLite."""

    dialect = "sqlite"
    datasets = ("main",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def version(self, connection: sa.Connection) -> str:
        return f"SQLite {connection.exec_driver_sql('SELECT sqlite_version()').scalar_one()}"

    def grants(self, connection: sa.Connection) -> Grants:
        """A file has no users: what counts is that this connection cannot begin to write."""
        _authorizer(connection, None)
        native: Any = connection.connection.dbapi_connection
        try:
            native.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            writable = "readonly" not in str(error)
        else:
            native.rollback()
            writable = True
        query_only = bool(native.execute("PRAGMA query_only").fetchone()[0])
        return Grants(
            user="file",
            privileges=(Grant(on=f"the file {self._path}", names=("WRITE",)),)
            if writable or not query_only
            else (),
            proof="opened read-only, a writing transaction was refused",
        )

    def tables(self, connection: sa.Connection) -> Iterable[CatalogTable]:
        _authorizer(connection, None)
        rows = connection.exec_driver_sql(
            "SELECT m.name, m.type, (SELECT count(*) FROM pragma_table_xinfo(m.name) WHERE hidden <> 1) "
            "FROM sqlite_master m WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        ).all()
        known = _statistics(connection)
        counts = _counted(
            connection, [name for name, kind, _ in rows if kind == "table" and name not in known]
        )
        known.update(counts)
        return [
            CatalogTable(schema="main", name=name, column_count=columns, row_count=known.get(name))
            for name, _, columns in rows
        ]

    def columns(
        self, connection: sa.Connection, tables: Sequence[tuple[str, str]]
    ) -> Iterable[CatalogColumn]:
        _authorizer(connection, None)
        rows = connection.execute(
            sa.text(
                'SELECT m.name, c.name, c.type, c."notnull", c.pk FROM sqlite_master m, pragma_table_xinfo(m.name) c '
                "WHERE m.type IN ('table', 'view') AND m.name IN :names AND c.hidden <> 1 ORDER BY m.name, c.cid"
            ).bindparams(sa.bindparam("names", expanding=True)),
            {"names": [name for _, name in tables]},
        )
        return [
            CatalogColumn(
                schema="main",
                table=table,
                name=name,
                type=label or "ANY",
                nullable=not not_null and not key,
                primary_key=bool(key),
            )
            for table, name, label, not_null, key in rows
        ]

    def prepare(self, connection: sa.Connection, *, timeout_s: float) -> None:
        del timeout_s
        _authorizer(connection, _authorize)

    def cancel(self, connection: sa.Connection) -> None:
        native: Any = connection.connection.dbapi_connection
        if native is not None:
            native.interrupt()

    def close(self) -> None:
        """Nothing is open besides the pool."""

    def type_labels(self, description: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
        """SQLite types values, not columns: the label is that of the values seen."""
        labels = []
        for index in range(len(description)):
            seen = {type(row[index]) for row in rows} - {type(None)}
            labels.append(
                _LABELS.get(seen.pop(), "ANY")
                if len(seen) == 1
                else "NUMERIC"
                if seen == {int, float}
                else "ANY"
            )
        return labels

    def translate(self, error: BaseException) -> AssayError | None:
        text = tidy(str(error))
        lowered = text.lower()
        if "not authorized" in lowered or "prohibited" in lowered or "readonly" in lowered:
            return QueryError(f"only reading tables is allowed: {text}", kind="guard")
        if "locked" in lowered or "busy" in lowered:
            return TransientError(f"{self._path} is locked by a writer", dependency="warehouse")
        if (
            "not a database" in lowered
            or "malformed" in lowered
            or "unable to open" in lowered
            or "disk i/o" in lowered
        ):
            return ConfigError(f"{self._path} cannot be read: {text}")
        return None


def _authorizer(connection: sa.Connection, authorize: Any) -> None:
    native: Any = connection.connection.dbapi_connection
    native.set_authorizer(authorize)


def _statistics(connection: sa.Connection) -> dict[str, int]:
    """Rows per table as ANALYZE left them; the first number of `stat`."""
    there = connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'").first()
    if not there:
        return {}
    rows = connection.exec_driver_sql("SELECT tbl, stat FROM sqlite_stat1 WHERE stat IS NOT NULL")
    return {table: int(first) for table, stat in rows if (first := str(stat).split(" ", 1)[0]).isdigit()}


def _counted(connection: sa.Connection, tables: Sequence[str]) -> dict[str, int]:
    native: Any = connection.connection.dbapi_connection
    end = time.monotonic() + COUNT_S
    native.set_progress_handler(lambda: time.monotonic() > end, 10_000)
    counts: dict[str, int] = {}
    try:
        for table in tables:
            counts[table] = native.execute(f"SELECT count(*) FROM main.{quote_name(table)}").fetchone()[0]
    except sqlite3.OperationalError:
        return counts
    finally:
        native.set_progress_handler(None, 0)
    return counts
