"""PostgreSQL dressed as Redshift: the system views that the adapter reads, over PostgreSQL's own catalogue.

Views and functions stand in pg_catalog, as Redshift's do, with Redshift's columns and its gaps: a late-binding view has
no columns in svv_redshift_columns, svv_table_info leaves out empty tables and is closed to most users, and external
tables are in none of the local views. What cannot be copied so: savepoints, arrays and functions that Redshift lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg

from tests.integration.postgres import PostgresServer

VERSION = (
    "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2 20041017 (Red Hat 3.4.2-6.fc3), "
    "Redshift 1.0.77467"
)
LATE_BINDING = "with no schema binding"
"""The comment that makes a view a late-binding one."""
_OURS: LiteralString = (
    "n.nspname NOT IN ('information_schema') AND n.nspname NOT LIKE 'pg\\_%' "
    "AND n.oid NOT IN (SELECT esoid FROM pg_catalog.pg_external_schema)"
)
_LATE: LiteralString = f"coalesce(obj_description(c.oid, 'pg_class') = '{LATE_BINDING}', false)"
_READABLE: LiteralString = "has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')"
_GRANTEES: LiteralString = (
    "CASE WHEN a.grantee = 0 THEN 'public' WHEN r.rolcanlogin THEN 'user' "
    "WHEN r.rolname LIKE '%\\_group' THEN 'group' ELSE 'role' END::text AS identity_type, "
    "coalesce(r.rolname, 'public')::text AS identity_name"
)
_STATEMENTS: tuple[LiteralString, ...] = (
    "SET allow_system_table_mods = on",
    f"CREATE OR REPLACE FUNCTION pg_catalog.version() RETURNS text LANGUAGE sql STABLE AS $$ SELECT '{VERSION}' $$",
    "CREATE TABLE pg_catalog.pg_external_schema (esoid oid, eskind integer, esdbname text, esoptions text)",
    f"""CREATE VIEW pg_catalog.svv_redshift_tables AS
        SELECT current_database()::varchar AS database_name, n.nspname::varchar AS schema_name,
               c.relname::varchar AS table_name,
               CASE WHEN c.relkind IN ('v', 'm') THEN 'VIEW' ELSE 'TABLE' END::varchar AS table_type,
               NULL::varchar AS table_acl,
               CASE WHEN {_LATE} THEN NULL ELSE obj_description(c.oid, 'pg_class') END::varchar AS remarks
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {_OURS} AND {_READABLE} AND c.relkind IN ('r', 'v', 'm')""",
    f"""CREATE VIEW pg_catalog.svv_redshift_columns AS
        SELECT current_database()::varchar AS database_name, n.nspname::varchar AS schema_name,
               c.relname::varchar AS table_name, a.attname::varchar AS column_name, a.attnum::integer AS ordinal_position,
               format_type(a.atttypid, a.atttypmod)::varchar AS data_type,
               CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END::varchar AS is_nullable,
               coalesce((regexp_match(col_description(c.oid, a.attnum), 'sortkey (-?\\d+)'))[1], '0')::integer AS sortkey,
               col_description(c.oid, a.attnum)::varchar AS remarks
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE {_OURS} AND {_READABLE} AND c.relkind IN ('r', 'v', 'm') AND NOT {_LATE}""",
    f"""CREATE VIEW pg_catalog.svv_table_info AS
        SELECT current_database()::text AS "database", n.nspname::text AS "schema", c.relname::text AS "table",
               c.reltuples::numeric AS tbl_rows
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {_OURS} AND c.relkind = 'r' AND c.reltuples > 0""",
    f"""CREATE FUNCTION pg_catalog.pg_get_late_binding_view_cols() RETURNS SETOF record LANGUAGE sql STABLE AS $$
        SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod)::varchar, a.attnum::integer
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relkind = 'v' AND {_LATE} ORDER BY a.attname $$""",
    """CREATE VIEW pg_catalog.svv_external_tables AS
        SELECT current_database()::text AS redshift_database_name, n.nspname::text AS schemaname,
               c.relname::text AS tablename, obj_description(c.oid, 'pg_class') AS parameters
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_catalog.pg_external_schema e ON e.esoid = n.oid
        WHERE c.relkind = 'r' AND has_schema_privilege(n.oid, 'USAGE')""",
    """CREATE VIEW pg_catalog.svv_external_columns AS
        SELECT t.redshift_database_name, t.schemaname, t.tablename, a.attname::text AS columnname,
               CASE format_type(a.atttypid, NULL) WHEN 'text' THEN 'string' WHEN 'integer' THEN 'int'
                    WHEN 'double precision' THEN 'double' WHEN 'jsonb' THEN 'struct<a:int>'
                    WHEN 'timestamp without time zone' THEN 'timestamp'
                    ELSE format_type(a.atttypid, a.atttypmod) END AS external_type,
               a.attnum::integer AS columnnum,
               CASE col_description(a.attrelid, a.attnum) WHEN 'partition' THEN 1 ELSE 0 END AS part_key,
               CASE WHEN a.attnotnull THEN 'false' ELSE '' END AS is_nullable
        FROM pg_catalog.svv_external_tables t JOIN pg_namespace n ON n.nspname = t.schemaname
        JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped""",
    """CREATE VIEW pg_catalog.svv_user_grants AS
        SELECT m.rolname::text AS user_name, r.rolname::text AS role_name
        FROM pg_auth_members g JOIN pg_roles m ON m.oid = g.member JOIN pg_roles r ON r.oid = g.roleid
        WHERE m.rolcanlogin AND r.rolname NOT LIKE '%\\_group'""",
    """CREATE VIEW pg_catalog.svv_role_grants AS
        SELECT m.rolname::text AS role_name, r.rolname::text AS granted_role_name
        FROM pg_auth_members g JOIN pg_roles m ON m.oid = g.member JOIN pg_roles r ON r.oid = g.roleid
        WHERE NOT m.rolcanlogin AND m.rolname NOT LIKE '%\\_group'""",
    f"""CREATE VIEW pg_catalog.svv_database_privileges AS
        SELECT d.datname::text AS database_name, a.privilege_type::text AS privilege_type, {_GRANTEES}
        FROM pg_database d, aclexplode(d.datacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE d.datname = current_database()""",
    f"""CREATE VIEW pg_catalog.svv_schema_privileges AS
        SELECT n.nspname::text AS namespace_name, a.privilege_type::text AS privilege_type, {_GRANTEES}
        FROM pg_namespace n, aclexplode(n.nspacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE {_OURS}""",
    f"""CREATE VIEW pg_catalog.svv_relation_privileges AS
        SELECT n.nspname::text AS namespace_name, c.relname::text AS relation_name,
               a.privilege_type::text AS privilege_type, {_GRANTEES}
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
        LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE {_OURS} AND c.relkind IN ('r', 'v', 'm')""",
    f"""CREATE VIEW pg_catalog.svv_column_privileges AS
        SELECT n.nspname::text AS namespace_name, c.relname::text AS relation_name, t.attname::text AS column_name,
               a.privilege_type::text AS privilege_type, {_GRANTEES}
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
        LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE {_OURS}""",
    "CREATE TABLE pg_catalog.svv_system_privileges "
    "(system_privilege text, identity_id integer, identity_name text, identity_type text)",
    *(
        f"GRANT SELECT ON pg_catalog.{view} TO PUBLIC"
        for view in (
            "pg_external_schema",
            "svv_redshift_tables",
            "svv_redshift_columns",
            "svv_external_tables",
            "svv_external_columns",
            "svv_user_grants",
            "svv_role_grants",
            "svv_database_privileges",
            "svv_schema_privileges",
            "svv_relation_privileges",
            "svv_column_privileges",
            "svv_system_privileges",
        )
    ),
    "RESET allow_system_table_mods",
)


def dress(session: psycopg.Connection[Any]) -> None:
    """Make a new database of PostgreSQL look like Redshift."""
    for statement in _STATEMENTS:
        session.execute(statement)


@contextmanager
def redshift_database(server: PostgresServer) -> Iterator[str]:
    """A new database that says it is Redshift, dropped afterwards."""
    with server.database() as name:
        with server.connect(name) as session:
            dress(session)
        yield name


def config(server: PostgresServer, database: str, *, user: str = "postgres") -> dict[str, Any]:
    """Settings for it. Redshift is asked for encryption unless told otherwise, and the server of the tests has none."""
    return {**server.config(database, user=user), "sslmode": "disable"}
