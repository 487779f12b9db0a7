"""PostgreSQL as a warehouse: psycopg 3, every transaction read-only, timeouts on the server.

Found by the entry point `postgres`. `settings.config`: `host`, `port`, `database`, `user`, `sslmode`, or `url` (without
password); the password is `settings.secret`. `settings.datasets` are schemas, by default `public`. Invariant: the
password stands in no error, log or `repr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

from assay_agent.adapters.catalog import CatalogColumn, CatalogTable
from assay_agent.adapters.postgres_session import (
    CONNECT_TIMEOUT_S,
    CONNECTIONS,
    Session,
    parameters_of,
    shown,
)
from assay_agent.adapters.postgres_values import LOADERS
from assay_agent.adapters.sqlalchemy_warehouse import SqlWarehouse
from assay_agent.ports import Grant, Grants, Warehouse, WarehouseSettings
from assay_core.errors import AssayError, ConfigError

_SHOWN_SCHEMAS = 10
"""Schemas named to someone who named one that is not there."""
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
    target = parameters_of(settings, title="PostgreSQL", example="postgresql://user@host:5432/database")
    engine = sa.create_engine(
        "postgresql+psycopg://",
        creator=lambda: _connect(target, schemas),
        poolclass=QueuePool,
        pool_size=CONNECTIONS,
        max_overflow=CONNECTIONS,
        pool_pre_ping=True,
    )
    backend = _Postgres(shown=shown(target, port=5432), schemas=schemas)
    warehouse = SqlWarehouse(datasource_id=settings.datasource_id, engine=engine, backend=backend)
    try:
        warehouse.check()
    except AssayError:
        warehouse.close()
        raise
    return warehouse


def _connect(target: Mapping[str, Any], schemas: tuple[str, ...]) -> psycopg.Connection[Any]:
    defaults: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": "assay",
        "keepalives_idle": 60,
        "options": "-c default_transaction_read_only=on -c timezone=UTC -c idle_in_transaction_session_timeout=15min "
        "-c standard_conforming_strings=on",
    }
    connection = psycopg.connect(**(defaults | dict(target)))
    try:
        connection.read_only = True
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('search_path', %s, false), set_config('standard_conforming_strings', 'on', false)",
                [", ".join(f'"{s.replace(chr(34), chr(34) * 2)}"' for s in schemas)],
            )
        connection.commit()
        for name, loader in LOADERS.items():
            connection.adapters.register_loader(name, loader)
    except BaseException:
        connection.close()
        raise
    return connection


class _Postgres(Session):
    """Catalogue, types and errors of PostgreSQL."""

    dialect = "postgres"

    def version(self, connection: sa.Connection) -> str:
        """Raises ConfigError for a schema that is not there, or that the role may not use."""
        rows = connection.exec_driver_sql(
            "SELECT nspname, has_schema_privilege(oid, 'USAGE') FROM pg_namespace ORDER BY nspname"
        )
        usable = {str(name): bool(may) for name, may in rows}
        for schema in self.datasets:
            if schema not in usable:
                others = [name for name in usable if name != "information_schema" and name[:3] != "pg_"]
                there = ", ".join(others[:_SHOWN_SCHEMAS]) + (", …" if len(others) > _SHOWN_SCHEMAS else "")
                raise ConfigError(
                    f"datasets names {schema!r}, and {self._shown} has these schemas: {there or 'none'}"
                )
            if not usable[schema]:
                user = connection.exec_driver_sql("SELECT current_user").scalar_one()
                raise ConfigError(
                    f"{user} may not use schema {schema!r} of {self._shown}; grant USAGE on it, and SELECT on its tables"
                )
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
