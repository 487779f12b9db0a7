"""The one SQL warehouse: a `ports.Warehouse` over an SQLAlchemy engine, with a small `Backend` per product.

`duckdb`, `sqlite`, `postgres` and `redshift` each build an engine and a backend and return this class. It owns
streaming, limits and the shape of errors; a backend owns what differs. Safe for several threads: each call takes its own
pooled connection. Invariant: no SQLAlchemy or driver exception leaves this module.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from assay_agent.adapters.catalog import Catalog, CatalogColumn, CatalogTable
from assay_agent.adapters.cells import fetch
from assay_agent.adapters.statements import Running, tidy, too_slow
from assay_agent.ports import Grants, QueryLimits, QueryResult, TableRef
from assay_agent.sql.dialects import sample_statement
from assay_agent.sql.limits import limited
from assay_core.errors import AssayError, ConfigError, QueryError, TransientError
from assay_core.model.table import TableSchema

CATALOG_TIMEOUT_S = 120.0
"""Seconds one catalogue query may take."""


class Backend(Protocol):
    """What differs between products. Methods that take a connection run inside this module's error translation."""

    @property
    def dialect(self) -> str: ...
    @property
    def datasets(self) -> tuple[str, ...]: ...
    def version(self, connection: sa.Connection) -> str: ...
    def grants(self, connection: sa.Connection) -> Grants | None:
        """What the credential may do beyond reading; None where the product does not say."""
        ...

    def tables(self, connection: sa.Connection) -> Iterable[CatalogTable]: ...
    def columns(
        self, connection: sa.Connection, tables: Sequence[tuple[str, str]]
    ) -> Iterable[CatalogColumn]:
        """Columns of the named (schema, table) pairs, in table order."""
        ...

    def prepare(self, connection: sa.Connection, *, timeout_s: float) -> None:
        """Before a statement: set the server's own timeout, where there is one."""
        ...

    def cancel(self, connection: sa.Connection) -> None:
        """Stop what the connection runs; called from another thread, must not raise."""
        ...

    def close(self) -> None:
        """After the engine has given back its connections."""
        ...

    def type_labels(self, description: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]: ...
    def translate(self, error: BaseException) -> AssayError | None:
        """The error of ours for a driver's exception; None to call it the statement's fault."""
        ...


class SqlWarehouse:
    """A read-only warehouse over one engine; see `ports.Warehouse` for the contract."""

    def __init__(self, *, datasource_id: str, engine: sa.Engine, backend: Backend) -> None:
        self._datasource_id = datasource_id
        self._engine = engine
        self._backend = backend
        self._errors: tuple[type[Exception], ...] = (SQLAlchemyError, *_driver_errors(engine))
        self._running = Running()
        self._catalog = Catalog(
            datasource_id=datasource_id, list_tables=self._list_tables, read_columns=self._read_columns
        )

    @property
    def datasource_id(self) -> str:
        return self._datasource_id

    @property
    def dialect(self) -> str:
        return self._backend.dialect

    @property
    def datasets(self) -> tuple[str, ...]:
        return self._backend.datasets

    def check(self) -> str:
        with self._connected(timeout_s=CATALOG_TIMEOUT_S) as connection:
            return self._backend.version(connection)

    def grants(self) -> Grants | None:
        with self._connected(timeout_s=CATALOG_TIMEOUT_S) as connection:
            return self._backend.grants(connection)

    def tables(self) -> Sequence[TableRef]:
        return self._catalog.tables()

    def describe(self, refs: Sequence[str]) -> Sequence[TableSchema]:
        return self._catalog.describe(refs)

    def sample(self, ref: str, *, limits: QueryLimits) -> QueryResult:
        key, _ = self._catalog.find(ref)
        return self.execute(sample_statement(key, limits.rows), limits=limits)

    def execute(self, sql: str, *, limits: QueryLimits) -> QueryResult:
        started = time.monotonic()
        statement = limited(sql, dialect=self.dialect, rows=limits.rows + 1)
        with self._connected(timeout_s=limits.timeout_s) as connection:
            self._backend.prepare(connection, timeout_s=limits.timeout_s)
            streaming = connection.execution_options(no_parameters=True, stream_results=True)
            result = streaming.exec_driver_sql(statement)
            cursor = result.cursor
            if cursor is None or cursor.description is None:
                raise QueryError("the statement returned no result", kind="execution")
            description = list(cursor.description)
            kept = fetch(result.fetchmany, limits)
            labels = self._backend.type_labels(description, kept.rows)
            result.close()
        return kept.result([entry[0] for entry in description], labels, started=started)

    def close(self) -> None:
        """Cancel what runs and give back every connection; a second call does nothing."""
        self._running.close()
        self._engine.dispose()
        self._backend.close()

    # ------------------------------------------------------------------------------------------------ inside

    def _list_tables(self) -> Iterable[CatalogTable]:
        with self._connected(timeout_s=CATALOG_TIMEOUT_S) as connection:
            return list(self._backend.tables(connection))

    def _read_columns(self, tables: Sequence[tuple[str, str]]) -> Iterable[CatalogColumn]:
        with self._connected(timeout_s=CATALOG_TIMEOUT_S) as connection:
            return list(self._backend.columns(connection, tables))

    @contextmanager
    def _connected(self, *, timeout_s: float) -> Iterator[sa.Connection]:
        """A connection whose statement is stopped after `timeout_s`, and whose errors are ours."""
        if self._running.closed:
            raise ConfigError("the warehouse is closed")
        try:
            with (
                self._engine.connect() as connection,
                self._running.statement(
                    lambda: self._backend.cancel(connection), timeout_s=timeout_s
                ) as statement,
            ):
                try:
                    yield connection
                except self._errors as error:
                    if statement.timed_out:
                        raise too_slow(timeout_s) from error
                    raise
                finally:
                    if self._running.closed:  # the pool is gone and would leave it open
                        connection.invalidate()
        except self._errors as error:
            raise self._translated(error) from error

    def _translated(self, error: BaseException) -> AssayError:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        if self._running.closed:
            return TransientError("the warehouse was closed while it answered", dependency="warehouse")
        return self._backend.translate(cause) or QueryError(tidy(str(cause)), kind="execution")


def _driver_errors(engine: sa.Engine) -> tuple[type[Exception], ...]:
    """Exceptions a raw cursor raises past SQLAlchemy's wrapping."""
    error = getattr(engine.dialect.loaded_dbapi, "Error", None)
    return (error,) if isinstance(error, type) and issubclass(error, Exception) else ()
