"""PostgreSQL as a warehouse: psycopg 3, every transaction read-only, timeouts on the server.

Found by the entry point `postgres`. `settings.config`: `host`, `port`, `database`, `user`, `sslmode`, or `url` (without
password); the password is `settings.secret`. `settings.datasets` are schemas, by default `public`. Invariant: the
password stands in no error, log or `repr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import psycopg
import sqlalchemy as sa
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.types.datetime import (
    DateLoader,
    IntervalLoader,
    TimeLoader,
    TimestampLoader,
    TimestamptzLoader,
    TimetzLoader,
)
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from assay_agent.adapters.catalog import CatalogColumn, CatalogTable
from assay_agent.adapters.sqlalchemy_warehouse import SqlWarehouse
from assay_agent.adapters.statements import tidy
from assay_agent.ports import Grant, Grants, Warehouse, WarehouseSettings
from assay_core.errors import AssayError, ConfigError, QueryError, TransientError

CONNECT_TIMEOUT_S = 10
CONNECTIONS = 8
_GRACE_S = 5.0
"""How much longer than the server's own timeout our timer waits, so that the server speaks first."""


_MAX_GRANTS = 200
"""Things that a role may write to which are named; more are not needed to refuse it."""
_PROOF = "role attributes, memberships and privileges read from the catalogue"
_ATTRIBUTES = ("superuser", "createdb", "createrole", "replication", "bypassrls")
_ROLES = """
    SELECT r.rolname, r.rolsuper, r.rolcreatedb, r.rolcreaterole, r.rolreplication, r.rolbypassrls
    FROM pg_roles r WHERE r.rolname = session_user
       OR (pg_has_role(session_user, r.oid, 'MEMBER')
           AND NOT (SELECT s.rolsuper FROM pg_roles s WHERE s.rolname = session_user))
    ORDER BY r.rolname <> session_user, r.rolname
"""
_PRIVILEGES = """
    WITH taken AS (SELECT oid, rolname FROM pg_roles WHERE rolname = ANY(%s)),
    spaces AS (SELECT oid, nspname, nspowner FROM pg_namespace
               WHERE nspname NOT IN ('information_schema') AND nspname NOT LIKE 'pg\\_%%'),
    found AS (
        SELECT 'database ' || d.datname AS "on", p.name
        FROM pg_database d, taken t, (VALUES ('CREATE')) p(name)
        WHERE d.datname = current_database() AND has_database_privilege(t.oid, d.oid, p.name)
        UNION SELECT 'schema ' || s.nspname, p.name FROM spaces s, taken t, (VALUES ('CREATE')) p(name)
        WHERE has_schema_privilege(t.oid, s.oid, p.name)
        UNION SELECT 'table ' || s.nspname || '.' || c.relname, p.name
        FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace, taken t,
             (VALUES ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE'), ('TRIGGER')) p(name)
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND has_table_privilege(t.oid, c.oid, p.name)
        UNION SELECT 'columns of ' || s.nspname || '.' || c.relname, p.name
        FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace, taken t, (VALUES ('INSERT'), ('UPDATE')) p(name)
        WHERE c.relkind IN ('r', 'p', 'v', 'f') AND NOT has_table_privilege(t.oid, c.oid, p.name)
          AND has_any_column_privilege(t.oid, c.oid, p.name)
        UNION SELECT 'table ' || s.nspname || '.' || c.relname, 'OWNER'
        FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace JOIN taken t ON t.oid = c.relowner
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
        UNION SELECT 'schema ' || s.nspname, 'OWNER' FROM spaces s JOIN taken t ON t.oid = s.nspowner
        UNION SELECT 'sequence ' || s.nspname || '.' || c.relname, p.name
        FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace, taken t, (VALUES ('UPDATE')) p(name)
        WHERE c.relkind = 'S' AND has_sequence_privilege(t.oid, c.oid, p.name)
    )
    SELECT "on", array_agg(name ORDER BY name) FROM found GROUP BY "on" ORDER BY "on" LIMIT %s
"""
"""What a set of roles may change in the database, system schemas left out: (on what, which privileges)."""


def open_warehouse(settings: WarehouseSettings) -> Warehouse:
    """Connect once to prove credentials. Raises ConfigError (wrong password, database, host) or TransientError."""
    schemas = tuple(settings.datasets) or ("public",)
    target = _target(settings)
    engine = sa.create_engine(
        "postgresql+psycopg://",
        creator=lambda: _connect(target, schemas),
        poolclass=QueuePool,
        pool_size=CONNECTIONS,
        max_overflow=CONNECTIONS,
        pool_pre_ping=True,
    )
    backend = _Postgres(_shown(target), schemas)
    warehouse = SqlWarehouse(datasource_id=settings.datasource_id, engine=engine, backend=backend)
    try:
        warehouse.check()
    except AssayError:
        warehouse.close()
        raise
    return warehouse


def _target(settings: WarehouseSettings) -> dict[str, Any]:
    """Connection parameters as libpq names them."""
    config = settings.config
    parameters: dict[str, Any] = {}
    if config.get("url"):
        try:
            url = sa.make_url(str(config["url"]))
        except ArgumentError:
            raise ConfigError(
                "config.url is not a URL such as postgresql://user@host:5432/database"
            ) from None
        parameters = {"host": url.host, "port": url.port, "dbname": url.database, "user": url.username}
        parameters |= {key: value for key, value in url.query.items() if isinstance(value, str)}
    names = {"host": "host", "port": "port", "database": "dbname", "user": "user", "sslmode": "sslmode"}
    parameters |= {name: config[key] for key, name in names.items() if config.get(key) is not None}
    if settings.secret:
        parameters["password"] = settings.secret
    if not parameters.get("dbname"):
        raise ConfigError("a PostgreSQL source needs the name of a database")
    return {key: value for key, value in parameters.items() if value is not None}


def _shown(target: dict[str, Any]) -> str:
    return f"{target.get('user', '')}@{target.get('host', 'localhost')}:{target.get('port', 5432)}/{target['dbname']}"


def _connect(target: dict[str, Any], schemas: tuple[str, ...]) -> psycopg.Connection[Any]:
    defaults: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": "assay",
        "keepalives_idle": 60,
        "options": "-c default_transaction_read_only=on -c timezone=UTC -c idle_in_transaction_session_timeout=15min "
        "-c standard_conforming_strings=on",
    }
    connection = psycopg.connect(**(defaults | target))
    try:
        connection.read_only = True
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('search_path', %s, false), set_config('standard_conforming_strings', 'on', false)",
                [", ".join(f'"{s.replace(chr(34), chr(34) * 2)}"' for s in schemas)],
            )
        connection.commit()
        for name, loader in _LOADERS.items():
            connection.adapters.register_loader(name, loader)
    except BaseException:
        connection.close()
        raise
    return connection


class _OrText(Loader):
    """What Python cannot hold (infinity, before year 1, after 9999, 24:00:00), or reads in no other style, stays the server's text."""

    inner: ClassVar[type[Loader]]

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._inner = self.inner(oid, context)

    def load(self, data: Buffer) -> Any:
        try:
            return self._inner.load(data)
        except (psycopg.DataError, psycopg.NotSupportedError, OverflowError, ValueError):
            return bytes(data).decode()


class _Date(_OrText):
    inner = DateLoader


class _Time(_OrText):
    inner = TimeLoader


class _TimeTz(_OrText):
    inner = TimetzLoader


class _Timestamp(_OrText):
    inner = TimestampLoader


class _TimestampTz(_OrText):
    inner = TimestamptzLoader


class _Interval(_OrText):
    inner = IntervalLoader


_LOADERS = {
    "date": _Date,
    "time": _Time,
    "timetz": _TimeTz,
    "timestamp": _Timestamp,
    "timestamptz": _TimestampTz,
    "interval": _Interval,
}


class _Postgres:
    """Catalogue, types and errors of PostgreSQL."""

    dialect = "postgres"

    def __init__(self, shown: str, schemas: tuple[str, ...]) -> None:
        self._shown = shown
        self.datasets = schemas
        self._labels: dict[int, str] = {}

    def version(self, connection: sa.Connection) -> str:
        return f"PostgreSQL {connection.exec_driver_sql('SHOW server_version').scalar_one()}"

    def grants(self, connection: sa.Connection) -> Grants:
        """What the role may do, and every role that it could take with SET ROLE, whether it inherits or not."""
        user = str(connection.exec_driver_sql("SELECT session_user").scalar_one())
        rows = connection.exec_driver_sql(_ROLES).all()
        attributes = {
            name: None for row in rows for name, has in zip(_ATTRIBUTES, row[1:], strict=True) if has
        }
        if "superuser" in attributes:
            return Grants(user=user, attributes=tuple(attributes), proof=_PROOF)
        found = connection.exec_driver_sql(
            _PRIVILEGES, (list(map(str, [row[0] for row in rows])), _MAX_GRANTS)
        )
        return Grants(
            user=user,
            attributes=tuple(attributes),
            roles=tuple(str(row[0]) for row in rows if row[0] != user),
            privileges=tuple(Grant(on=on, names=tuple(names)) for on, names in found),
            proof=_PROOF,
        )

    def tables(self, connection: sa.Connection) -> Iterable[CatalogTable]:
        """Tables of every kind, views, materialised views and foreign tables that the role may read."""
        rows = connection.exec_driver_sql(
            """
            SELECT n.nspname, c.relname,
                   (SELECT count(*) FROM pg_attribute a
                    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
                   CASE WHEN c.relkind IN ('v', 'f') OR c.reltuples < 0 THEN NULL ELSE c.reltuples::bigint END,
                   coalesce(obj_description(c.oid, 'pg_class'), '')
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = ANY(%s) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
              AND has_schema_privilege(n.oid, 'USAGE')
              AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))
            """,
            (list(self.datasets),),
        )
        return [
            CatalogTable(schema=schema, name=name, column_count=columns, row_count=count, comment=comment)
            for schema, name, columns, count, comment in rows
        ]

    def columns(
        self, connection: sa.Connection, tables: Sequence[tuple[str, str]]
    ) -> Iterable[CatalogColumn]:
        rows = connection.exec_driver_sql(
            """
            SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
                   coalesce(a.attnum = ANY(i.indkey::int2[]), false), coalesce(col_description(c.oid, a.attnum), '')
            FROM unnest(%s::text[], %s::text[]) AS wanted(schema_name, table_name)
            JOIN pg_namespace n ON n.nspname = wanted.schema_name
            JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.table_name
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
            ORDER BY n.nspname, c.relname, a.attnum
            """,
            ([schema for schema, _ in tables], [name for _, name in tables]),
        )
        return [
            CatalogColumn(
                schema=schema,
                table=table,
                name=name,
                type=label,
                nullable=nullable,
                primary_key=primary_key,
                comment=comment,
            )
            for schema, table, name, label, nullable, primary_key, comment in rows
        ]

    def prepare(self, connection: sa.Connection, *, timeout_s: float) -> None:
        connection.exec_driver_sql(
            "SELECT set_config('statement_timeout', %s, true)", (str(int(timeout_s * 1000)),)
        )

    def cancel(self, connection: sa.Connection) -> None:
        native: Any = connection.connection.dbapi_connection
        if native is not None and not native.closed:
            native.cancel_safe(timeout=_GRACE_S)

    def close(self) -> None:
        """Nothing is open besides the pool."""

    def type_labels(self, description: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
        del rows
        return [str(getattr(entry, "type_display", entry[1])) for entry in description]

    def translate(self, error: BaseException) -> AssayError | None:
        if not isinstance(error, psycopg.Error):
            return None
        state = error.sqlstate or ""
        text = _message(error)
        if state == "57014":
            return QueryError(
                "the query was stopped by its timeout; read fewer rows or join less", kind="timeout"
            )
        if state in ("25006", "42501"):
            return QueryError(text, kind="permission" if state == "42501" else "guard")
        if state[:2] == "28" or state == "3D000" or (not state and _is_refused(text)):
            return ConfigError(f"{self._shown}: {_one_line(text)}")
        if state[:2] in ("08", "57", "58") or state in ("53300", "40001", "40P01"):
            return TransientError(f"{self._shown}: {_one_line(text)}", dependency="warehouse")
        if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) and not state:
            return TransientError(
                f"{self._shown} is not reachable: {_one_line(text)}", dependency="warehouse"
            )
        return QueryError(text, kind="execution")


def _message(error: psycopg.Error) -> str:
    """The server's words with detail and hint, without its echo of the statement."""
    diagnosis = error.diag
    if not diagnosis.message_primary:
        return tidy(str(error))
    lines = [diagnosis.message_primary]
    if diagnosis.message_hint:
        lines.append(f"Hint: {diagnosis.message_hint}")
    return tidy("\n".join(lines))


def _is_refused(text: str) -> bool:
    """Failures while connecting carry no state; these words mean that a setting is wrong, not that time will help."""
    lowered = text.lower()
    return any(
        words in lowered
        for words in (
            "password authentication failed",
            "no password supplied",
            "does not exist",
            "no pg_hba.conf entry",
            "could not translate host name",
            "failed to resolve host",
            "name or service not known",
            "invalid connection option",
            "invalid sslmode",
            "does not support ssl",
        )
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
