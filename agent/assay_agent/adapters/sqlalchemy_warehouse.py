"""The one SQL warehouse: a `ports.Warehouse` over an SQLAlchemy engine, with a small `Backend` per product.

`duckdb`, `sqlite` and `postgres` each build an engine and a backend and return this class. It owns streaming, limits,
timeouts, cancelling, catalogue caching and the shape of errors; a backend owns what differs. Safe for several threads:
each call takes its own pooled connection. Invariant: no SQLAlchemy or driver exception leaves this module.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from assay_agent.adapters.cells import fetch, unique_names
from assay_agent.adapters.column_kinds import category_of, kind_of
from assay_agent.ports import Grants, QueryLimits, QueryResult, TableRef
from assay_agent.sql.dialects import make_ref, sample_statement, split_ref
from assay_agent.sql.limits import limited
from assay_core.errors import AssayError, ConfigError, QueryError, TransientError
from assay_core.model.step import ResultColumn
from assay_core.model.table import ColumnSchema, TableSchema

CATALOG_TIMEOUT_S = 120.0
"""Seconds one catalogue query may take."""
MESSAGE_CHARS = 1_000
DESCRIBE_BATCH = 500
"""Tables whose columns are read in one catalogue query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    schema: str
    name: str
    column_count: int
    row_count: int | None
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogColumn:
    schema: str
    table: str
    name: str
    type: str
    nullable: bool
    primary_key: bool = False
    comment: str = ""


class Backend(Protocol):
    """What differs between products. Methods that take a connection run inside this module's error translation."""

    @property
    def dialect(self) -> str: ...
    @property
    def datasets(self) -> tuple[str, ...]: ...
    def version(self, connection: sa.Connection) -> str: ...
    def grants(self, connection: sa.Connection) -> Grants:
        """What the credential may do beyond reading."""
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
        self._lock = threading.Lock()
        self._running: set[_Statement] = set()
        self._closed = False
        self._listed: dict[str, CatalogTable] | None = None

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

    def grants(self) -> Grants:
        with self._connected(timeout_s=CATALOG_TIMEOUT_S) as connection:
            return self._backend.grants(connection)

    def tables(self) -> Sequence[TableRef]:
        listed = self._list()
        return [
            TableRef(ref=ref, column_count=table.column_count, row_count=table.row_count)
            for ref, table in sorted(listed.items())
        ]

    def describe(self, refs: Sequence[str]) -> Sequence[TableSchema]:
        """In the order asked. Raises QueryError naming the tables that do not exist or are out of scope."""
        listed = self._listed or self._list()
        wanted = [self._resolve(ref, listed) for ref in refs]
        missing = [ref for ref, found in zip(refs, wanted, strict=True) if found is None]
        if missing:
            raise QueryError(f"no such table: {', '.join(missing[:10])}", kind="unknown_table")
        found = [key for key in wanted if key is not None]
        columns: dict[str, list[ColumnSchema]] = {key: [] for key in found}
        unique = list(columns)
        for start in range(0, len(unique), DESCRIBE_BATCH):
            batch = [(listed[key].schema, listed[key].name) for key in unique[start : start + DESCRIBE_BATCH]]
            with self._connected(timeout_s=CATALOG_TIMEOUT_S) as connection:
                for column in self._backend.columns(connection, batch):
                    columns[make_ref(column.schema, column.table)].append(_column_schema(column))
        return [self._schema(key, listed[key], columns[key]) for key in found]

    def sample(self, ref: str, *, limits: QueryLimits) -> QueryResult:
        listed = self._listed or self._list()
        key = self._resolve(ref, listed)
        if key is None:
            raise QueryError(f"no such table: {ref}", kind="unknown_table")
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
        names = unique_names([entry[0] for entry in description])
        columns = tuple(
            ResultColumn(name=name, type=label) for name, label in zip(names, labels, strict=True)
        )
        return QueryResult(
            columns=columns,
            rows=tuple(kept.rows),
            truncated=kept.more_rows,
            duration_ms=int((time.monotonic() - started) * 1000),
            caveats=kept.caveats(names),
        )

    def close(self) -> None:
        """Cancel what runs and give back every connection; a second call does nothing."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for statement in running:
            statement.cancel()
        self._engine.dispose()
        self._backend.close()

    # ------------------------------------------------------------------------------------------------ inside

    def _list(self) -> dict[str, CatalogTable]:
        with self._connected(timeout_s=CATALOG_TIMEOUT_S) as connection:
            listed = {make_ref(table.schema, table.name): table for table in self._backend.tables(connection)}
        self._listed = listed
        return listed

    @staticmethod
    def _resolve(ref: str, listed: dict[str, CatalogTable]) -> str | None:
        """The listed name for `ref`: exact, its quoted form, a bare table name, then the same without case."""
        if ref in listed:
            return ref
        schema, name = split_ref(ref)
        if make_ref(schema, name) in listed:
            return make_ref(schema, name)
        for fold in (str, str.casefold):
            matching = [
                key
                for key, table in listed.items()
                if fold(table.name) == fold(name) and (schema is None or fold(table.schema) == fold(schema))
            ]
            if len(matching) == 1 or (matching and schema is None):
                return matching[0]
        return None

    def _schema(self, key: str, table: CatalogTable, columns: list[ColumnSchema]) -> TableSchema:
        return TableSchema(
            ref=key,
            columns=columns,
            row_count=table.row_count,
            comment=table.comment,
            datasource_id=self._datasource_id,
        )

    @contextmanager
    def _connected(self, *, timeout_s: float) -> Iterator[sa.Connection]:
        """A connection whose statement is stopped after `timeout_s`, and whose errors are ours."""
        if self._closed:
            raise ConfigError("the warehouse is closed")
        try:
            with self._engine.connect() as connection:
                statement = _Statement(lambda: self._backend.cancel(connection))
                with self._lock:
                    self._running.add(statement)
                try:
                    with statement.within(timeout_s):
                        yield connection
                except self._errors as error:
                    if statement.timed_out:
                        raise _too_slow(timeout_s) from error
                    raise
                finally:
                    with self._lock:
                        self._running.discard(statement)
                    if self._closed:  # the pool is gone and would leave it open
                        connection.invalidate()
        except self._errors as error:
            raise self._translated(error) from error

    def _translated(self, error: BaseException) -> AssayError:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        if self._closed:
            return TransientError("the warehouse was closed while it answered", dependency="warehouse")
        return self._backend.translate(cause) or QueryError(tidy(str(cause)), kind="execution")


class _Statement:
    """One running statement: cancelled by its timer or by `close`, and never after it has ended."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._lock = threading.Lock()
        self._ended = False
        self.timed_out = False

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._lock:
                self._ended = True

    def _expire(self) -> None:
        self.timed_out = True
        self.cancel()

    def cancel(self) -> None:
        with self._lock:
            if not self._ended:
                self._cancel()


def tidy(text: str) -> str:
    """A driver's message fit for a model: no background links, no echoed statement, no runs of blank lines, short."""
    kept = re.split(r"\n\[SQL:|\n\(Background on this error", text, maxsplit=1)[0]
    kept = re.sub(r"^\([\w.]+\)\s*", "", kept.strip())
    kept = re.sub(r"\n\s*\n+", "\n", kept)
    return kept if len(kept) <= MESSAGE_CHARS else kept[: MESSAGE_CHARS - 1] + "…"


def _too_slow(timeout_s: float) -> QueryError:
    return QueryError(
        f"the query was stopped after {timeout_s:g} s; read fewer rows or join less before aggregating",
        kind="timeout",
    )


def _driver_errors(engine: sa.Engine) -> tuple[type[Exception], ...]:
    """Exceptions a raw cursor raises past SQLAlchemy's wrapping."""
    error = getattr(engine.dialect.loaded_dbapi, "Error", None)
    return (error,) if isinstance(error, type) and issubclass(error, Exception) else ()


def _column_schema(column: CatalogColumn) -> ColumnSchema:
    kind = kind_of(column.type)
    return ColumnSchema(
        name=column.name,
        type=column.type,
        kind=kind,
        nullable=column.nullable,
        category=category_of(column.name, kind=kind, primary_key=column.primary_key),
        comment=column.comment,
    )
