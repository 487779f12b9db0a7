"""DuckDB files as a warehouse: opened read-only, cut off from files and network, with its configuration locked.

Found by the entry point `duckdb`. `settings.config`: `path`, optionally `memory_limit`, `threads`, `temp_directory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import sqlalchemy as sa
from duckdb_sqlalchemy import ConnectionWrapper
from sqlalchemy.pool import QueuePool

from assay_agent.adapters.catalog import CatalogColumn, CatalogTable
from assay_agent.adapters.sqlalchemy_warehouse import SqlWarehouse
from assay_agent.adapters.statements import tidy
from assay_agent.ports import Grant, Grants, Warehouse, WarehouseSettings
from assay_core.errors import AssayError, ConfigError, QueryError

MEMORY_LIMIT = "1GB"
"""Memory DuckDB may take; beyond it sorts and joins spill to the temporary folder."""
THREADS = 2
TEMP_LIMIT = "10GB"
CONNECTIONS = 8


def open_warehouse(settings: WarehouseSettings) -> Warehouse:
    """Open the file `settings.config["path"]`; raises ConfigError when it is missing, locked or no DuckDB file."""
    path = Path(str(settings.config.get("path", "")))
    if not path.is_file():
        raise ConfigError(f"{path} is not there; config.path must name a DuckDB file")
    try:
        root = _confined(path, _configuration(settings, path))
    except duckdb.Error as error:
        raise ConfigError(_file_problem(path, tidy(str(error)))) from error
    engine = sa.create_engine(
        "duckdb://",
        creator=lambda: ConnectionWrapper(root.cursor()),
        poolclass=QueuePool,
        pool_size=CONNECTIONS,
        max_overflow=CONNECTIONS,
    )
    backend = _DuckDB(path, root, tuple(settings.datasets))
    warehouse = SqlWarehouse(datasource_id=settings.datasource_id, engine=engine, backend=backend)
    warehouse.check()
    return warehouse


def _configuration(
    settings: WarehouseSettings, path: Path
) -> dict[str, str | bool | int | float | list[str]]:
    config = settings.config
    return {
        "memory_limit": str(config.get("memory_limit", MEMORY_LIMIT)),
        "threads": str(config.get("threads", THREADS)),
        "temp_directory": str(config.get("temp_directory", f"{path}.tmp")),
        "max_temp_directory_size": TEMP_LIMIT,
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }


def _confined(
    path: Path, config: dict[str, str | bool | int | float | list[str]]
) -> duckdb.DuckDBPyConnection:
    """A read-only connection that can reach no other file and whose settings nobody can change.

    The order matters: the temporary folder cannot be set once access is off. A file that this process has open already
    is confined already.
    """
    connection = duckdb.connect(str(path), read_only=True, config=config)
    locked = connection.execute("SELECT current_setting('lock_configuration')").fetchone()
    if not (locked and locked[0]):
        for statement in (
            "SET TimeZone = 'UTC'",
            "SET GLOBAL enable_external_access = false",
            "SET GLOBAL lock_configuration = true",
        ):
            connection.execute(statement)
    return connection


class _DuckDB:
    """Catalogue, types and errors of DuckDB. `datasets` are schemas; empty means all."""

    dialect = "duckdb"

    def __init__(self, path: Path, root: duckdb.DuckDBPyConnection, datasets: tuple[str, ...]) -> None:
        self._path = path
        self._root = root
        self.datasets = datasets or ("main",)
        self._scope = datasets

    def version(self, connection: sa.Connection) -> str:
        return f"DuckDB {connection.exec_driver_sql('SELECT version()').scalar_one()}"

    def grants(self, connection: sa.Connection) -> Grants:
        """A file has no users: what counts is that it was opened for reading, and nothing else can be reached."""
        row = connection.exec_driver_sql(
            "SELECT (SELECT bool_and(readonly) FROM duckdb_databases() WHERE NOT internal), "
            "current_setting('enable_external_access'), current_setting('lock_configuration')"
        ).one()
        open_ways = (
            Grant(on=f"the file {self._path}", names=() if row[0] else ("WRITE",)),
            Grant(on="other files and the network", names=("REACH",) if row[1] else ()),
            Grant(on="the configuration", names=() if row[2] else ("SET",)),
        )
        return Grants(
            user="file",
            privileges=tuple(grant for grant in open_ways if grant.names),
            proof="opened read-only, no external access, configuration locked",
        )

    def tables(self, connection: sa.Connection) -> Iterable[CatalogTable]:
        rows = connection.exec_driver_sql(
            """
            SELECT schema_name, table_name, column_count, estimated_size, comment FROM duckdb_tables()
            WHERE database_name = current_database() AND NOT internal
            UNION ALL
            SELECT schema_name, view_name, column_count, NULL, comment FROM duckdb_views()
            WHERE database_name = current_database() AND NOT internal
            """
        )
        return [
            CatalogTable(schema=schema, name=name, column_count=count, row_count=size, comment=comment or "")
            for schema, name, count, size, comment in rows
            if not self._scope or schema in self._scope
        ]

    def columns(
        self, connection: sa.Connection, tables: Sequence[tuple[str, str]]
    ) -> Iterable[CatalogColumn]:
        rows = connection.execute(
            sa.text(
                """
                SELECT c.schema_name, c.table_name, c.column_name, c.data_type, c.is_nullable,
                       coalesce(list_contains(k.constraint_column_names, c.column_name), false), c.comment
                FROM duckdb_columns() c
                LEFT JOIN duckdb_constraints() k
                  ON k.table_oid = c.table_oid AND k.database_oid = c.database_oid AND k.constraint_type = 'PRIMARY KEY'
                WHERE c.database_name = current_database() AND c.table_name IN :names
                ORDER BY c.schema_name, c.table_name, c.column_index
                """
            ).bindparams(sa.bindparam("names", expanding=True)),
            {"names": [name for _, name in tables]},
        )
        wanted = set(tables)
        return [
            CatalogColumn(
                schema=schema,
                table=table,
                name=name,
                type=label,
                nullable=nullable,
                primary_key=primary_key,
                comment=comment or "",
            )
            for schema, table, name, label, nullable, primary_key, comment in rows
            if (schema, table) in wanted
        ]

    def prepare(self, connection: sa.Connection, *, timeout_s: float) -> None:
        """DuckDB has no timeout of its own; the timer interrupts."""

    def cancel(self, connection: sa.Connection) -> None:
        native: Any = connection.connection.dbapi_connection
        if native is not None:
            native.interrupt()

    def close(self) -> None:
        self._root.close()

    def type_labels(self, description: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
        del rows
        return [str(entry[1]) for entry in description]

    def translate(self, error: BaseException) -> AssayError | None:
        text = tidy(str(error))
        if isinstance(error, duckdb.PermissionException):
            return QueryError(text, kind="guard")
        if isinstance(error, duckdb.OutOfMemoryException):
            return QueryError(
                f"the query needs more memory than it may take; aggregate earlier ({text})", kind="resources"
            )
        if isinstance(error, duckdb.IOException):
            return ConfigError(_file_problem(self._path, text))
        if isinstance(error, duckdb.ConnectionException):
            return ConfigError(f"{self._path} cannot be opened: {text}")
        return None


def _file_problem(path: Path, text: str) -> str:
    first = text.splitlines()[0] if text else "input/output error"
    if "lock" in first.lower():
        return f"{path} is locked by another program; ask whoever has it open to close it ({first[:300]})"
    if "not a valid DuckDB" in first:
        return f"{path} is not a DuckDB database file"
    return f"{path} cannot be read: {first[:300]}"
