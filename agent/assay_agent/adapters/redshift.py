"""Redshift as a warehouse, provisioned or serverless: psycopg 3, every transaction read-only, timeouts on the server.

Found by the entry point `redshift`. `settings.config`: `host`, `port`, `database`, `user`, `sslmode`, or `url` (without
password); the password is `settings.secret`. With `iam: true` AWS gives one: `cluster_identifier` or `workgroup` and
`region` (by default read from the host), `api_endpoint`. `settings.datasets` are schemas, external ones too, by default
`public`. Invariant: no password stands in an error, log or `repr`.

Redshift calls itself PostgreSQL 8.0: it has no savepoints, does not know most settings, and must be told its encoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from assay_agent.adapters import redshift_catalog as catalog
from assay_agent.adapters.catalog import CatalogColumn, CatalogTable
from assay_agent.adapters.postgres_failures import message_of, one_line, translated
from assay_agent.adapters.postgres_session import (
    CONNECT_TIMEOUT_S,
    CONNECTIONS,
    Session,
    parameters_of,
    shown,
)
from assay_agent.adapters.redshift_grants import grants
from assay_agent.adapters.redshift_login import Logins, logins_of
from assay_agent.adapters.redshift_values import LOADERS, label_of
from assay_agent.adapters.sqlalchemy_warehouse import SqlWarehouse
from assay_agent.adapters.statements import tidy
from assay_agent.ports import Grants, Warehouse, WarehouseSettings
from assay_agent.sql.dialects import make_ref, quote_name, sample_statement
from assay_core.errors import AssayError, ConfigError, QueryError

PORT = 5439
PAGE_ROWS = 1_000
"""Rows one FETCH may ask a cluster of one node for."""
_REFUSED = ("42", "0A", "XX")
"""SQLSTATE classes of a question that is not answered here: unknown or not permitted, not supported, failed inside."""
_Answer = TypeVar("_Answer")


def open_warehouse(settings: WarehouseSettings) -> Warehouse:
    """Connect once to prove credentials and schemas. Raises ConfigError for what is wrong, TransientError when nobody answers."""
    schemas = tuple(settings.datasets) or ("public",)
    target = parameters_of(settings, title="Redshift", example="redshift://user@host:5439/database")
    logins = logins_of(settings, target)
    where = shown(target, port=PORT)
    engine = _engine(lambda: _connect(target, logins, schemas, shown=where))
    warehouse = SqlWarehouse(
        datasource_id=settings.datasource_id, engine=engine, backend=_Redshift(shown=where, schemas=schemas)
    )
    try:
        warehouse.check()
    except AssayError:
        warehouse.close()
        raise
    return warehouse


def _engine(connect: Callable[[], Any]) -> sa.Engine:
    """An engine that asks nothing of its own on connecting: SQLAlchemy's questions to PostgreSQL fail here."""
    dialect = PGDialect_psycopg(dbapi=psycopg)  # type: ignore[no-untyped-call]  # SQLAlchemy's dialects are untyped
    pool = QueuePool(connect, pool_size=CONNECTIONS, max_overflow=CONNECTIONS, pre_ping=True, dialect=dialect)
    return sa.Engine(pool, dialect, sa.make_url("postgresql+psycopg://"))


def _connect(
    target: Mapping[str, Any], logins: Logins, schemas: tuple[str, ...], *, shown: str
) -> psycopg.Connection[Any]:
    defaults: dict[str, Any] = {
        "port": PORT,
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": "assay",
        "client_encoding": "UTF8",
        "keepalives_idle": 60,
        "sslmode": "require",
    }
    login = logins.next()
    given = {**defaults, **target, "user": login.user, "password": login.password}
    connection = psycopg.connect(**given, prepare_threshold=None)
    try:
        connection.read_only = True
        connection.server_cursor_factory = _Pages
        with connection.cursor() as cursor:
            _release(cursor.execute("SELECT version()").fetchall()[0][0], shown=shown)
            scope = catalog.schemas_of(
                lambda statement, values: cursor.execute(statement.encode(), values).fetchall(),
                schemas,
                shown=shown,
            )
            # External schemas cannot be searched: their tables are always qualified.
            cursor.execute(
                "SELECT set_config('search_path', %s, false), set_config('timezone', 'UTC', false)",
                [", ".join(quote_name(name) for name in scope.local) or "pg_catalog"],
            )
        connection.commit()
        for name, loader in LOADERS.items():
            connection.adapters.register_loader(name, loader)
    except BaseException:
        connection.close()
        raise
    return connection


def _release(version: str, *, shown: str) -> str:
    """Raises ConfigError when something else answers, which would know none of the system views."""
    found = re.search(r"Redshift ([\d.]+)", version)
    if found is None:
        other = " ".join(version.split()[:2])
        raise ConfigError(f"provider is 'redshift', and {shown} is {other}; set provider: postgres")
    return found.group(1)


class _Pages(psycopg.ServerCursor[Any]):
    """A cursor on the server that asks for no more rows at once than any cluster gives."""

    def fetchmany(self, size: int = 0) -> list[Any]:
        wanted = size or self.arraysize
        rows: list[Any] = []
        while len(rows) < wanted:
            asked = min(PAGE_ROWS, wanted - len(rows))
            page = super().fetchmany(asked)
            rows += page
            if len(page) < asked:
                break
        return rows


class _Redshift(Session):
    """Catalogue, types and errors of Redshift."""

    dialect = "redshift"

    def version(self, connection: sa.Connection) -> str:
        found = connection.exec_driver_sql("SELECT version()").scalar_one()
        return f"Redshift {_release(found, shown=self._shown)}"

    def grants(self, connection: sa.Connection) -> Grants | None:
        """None where the system views are refused, for then it is not known what roles bring along."""
        try:
            return grants(_asking(connection))
        except DBAPIError as error:
            if not _is_refused(error):
                raise
            return None

    def tables(self, connection: sa.Connection) -> Iterable[CatalogTable]:
        return catalog.tables(self._cluster(connection), self._schemas(connection))

    def columns(
        self, connection: sa.Connection, tables: Sequence[tuple[str, str]]
    ) -> Iterable[CatalogColumn]:
        return catalog.columns(self._cluster(connection), self._schemas(connection), tables)

    def type_labels(self, description: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
        labels = super().type_labels(description, rows)
        return [label_of(entry[1], otherwise=label) for entry, label in zip(description, labels, strict=True)]

    def translate(self, error: BaseException) -> AssayError | None:
        if not isinstance(error, psycopg.Error):
            return None
        text = _said(error)
        if error.sqlstate == "57014" and "monitoring rule" in text.lower():
            return QueryError(
                f"the query was stopped by a rule of the cluster: {one_line(text)}", kind="timeout"
            )
        return translated(error, text=text, shown=self._shown)

    def _schemas(self, connection: sa.Connection) -> catalog.Schemas:
        return catalog.schemas_of(_asking(connection), self.datasets, shown=self._shown)

    def _cluster(self, connection: sa.Connection) -> catalog.Cluster:
        return catalog.Cluster(
            ask=_asking(connection),
            try_ask=lambda statement, values: _unless_refused(
                connection, lambda: _asking(connection)(statement, values)
            ),
            probe=lambda named: _unless_refused(connection, lambda: self._probed(connection, named)) or (),
        )

    def _probed(self, connection: sa.Connection, named: tuple[str, str]) -> list[tuple[str, str]]:
        """Names and types of a relation's columns, from an empty result."""
        statement = sample_statement(make_ref(*named), 0)
        cursor = connection.execution_options(no_parameters=True).exec_driver_sql(statement).cursor
        description = list(cursor.description or ()) if cursor else []
        return list(zip([entry[0] for entry in description], self.type_labels(description, ()), strict=True))


def _asking(connection: sa.Connection) -> catalog.Ask:
    return lambda statement, values: [
        tuple(row) for row in connection.exec_driver_sql(statement, tuple(values)).all()
    ]


def _unless_refused(connection: sa.Connection, ask: Callable[[], _Answer]) -> _Answer | None:
    """None for a question that is refused. The transaction is then over: there are no savepoints to go back to."""
    try:
        return ask()
    except DBAPIError as error:
        if not _is_refused(error):
            raise
        connection.rollback()
        return None


def _is_refused(error: DBAPIError) -> bool:
    cause = error.orig
    return isinstance(cause, psycopg.Error) and (cause.sqlstate or "")[:2] in _REFUSED


def _said(error: psycopg.Error) -> str:
    """The server's words, with the one line of its report that says why: `context:` of the compute nodes."""
    context = re.search(r"^\s*context:\s*(\S.*)$", error.diag.message_detail or "", re.MULTILINE)
    return tidy("\n".join([message_of(error), *(context.groups() if context else ())]))
