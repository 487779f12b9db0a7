"""What Redshift says of its own tables: local ones and views, late-binding views, external tables of Spectrum and federation.

Called by `redshift`. Each kind of relation has its own system views, and those of the leader node cannot be joined with
the others: they meet here. What only helps, and some users may not read, may be refused; the listing itself may not.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay_agent.adapters.catalog import CatalogColumn, CatalogTable
from assay_core.errors import ConfigError

Rows = Sequence[Sequence[Any]]
Ask = Callable[[str, Sequence[Any]], Rows]
Named = tuple[str, str]
"""Schema and table."""

_SHOWN_SCHEMAS = 10
_SYSTEM_SCHEMAS = frozenset({"information_schema", "catalog_history"})
_INTERNAL_TABLE = re.compile(r"mv_tbl__.+__\d+")
"""Where the rows of a materialised view are kept; the view itself is listed."""
_INTERNAL_COLUMN = "padb_internal"

_SORTS = "sorts the table: a filter on it reads less"
_PARTITIONS = "partitions the table: a filter on it reads less"

_SCHEMAS = """
    SELECT current_database(), n.nspname, e.esoid IS NOT NULL
    FROM pg_namespace n LEFT JOIN pg_external_schema e ON e.esoid = n.oid ORDER BY n.nspname
"""
_TABLES = """
    SELECT schema_name, table_name, table_type, remarks
    FROM svv_redshift_tables WHERE database_name = %s AND schema_name IN ({schemas})
"""
_WIDTHS = """
    SELECT schema_name, table_name, count(*)
    FROM svv_redshift_columns
    WHERE database_name = %s AND schema_name IN ({schemas}) AND column_name NOT LIKE 'padb_internal%%'
    GROUP BY schema_name, table_name
"""
_COUNTS = """
    SELECT "schema", "table", tbl_rows FROM svv_table_info WHERE "database" = %s AND "schema" IN ({schemas})
"""
_COLUMNS = """
    SELECT schema_name, table_name, ordinal_position, column_name, data_type, is_nullable, sortkey, remarks
    FROM svv_redshift_columns
    WHERE database_name = %s AND schema_name IN ({schemas}) AND table_name IN ({tables})
"""
_KEYS = """
    SELECT n.nspname, c.relname, a.attname
    FROM pg_constraint k
    JOIN pg_class c ON c.oid = k.conrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(k.conkey)
    WHERE k.contype = 'p' AND n.nspname IN ({schemas}) AND c.relname IN ({tables})
"""
_LATE_BINDING = """
    SELECT view_schema, view_name, col_num, col_name, col_type
    FROM pg_get_late_binding_view_cols()
        AS cols(view_schema name, view_name name, col_name name, col_type varchar, col_num int)
    WHERE view_schema IN ({schemas})
"""
_EXTERNAL_TABLES = """
    SELECT schemaname, tablename, parameters
    FROM svv_external_tables WHERE redshift_database_name = %s AND schemaname IN ({schemas})
"""
_EXTERNAL_WIDTHS = """
    SELECT schemaname, tablename, count(*)
    FROM svv_external_columns WHERE redshift_database_name = %s AND schemaname IN ({schemas})
    GROUP BY schemaname, tablename
"""
_EXTERNAL_COLUMNS = """
    SELECT schemaname, tablename, columnnum, columnname, external_type, is_nullable, part_key
    FROM svv_external_columns
    WHERE redshift_database_name = %s AND schemaname IN ({schemas}) AND tablename IN ({tables})
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """How one is asked: a catalogue query, the same with None where it is refused, and a relation for its own columns.

    `probe` returns names and type labels, none for a relation that cannot be read.
    """

    ask: Ask
    try_ask: Callable[[str, Sequence[Any]], Rows | None]
    probe: Callable[[Named], Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schemas:
    """Schemas in scope, told apart by where their tables are."""

    database: str
    local: tuple[str, ...]
    external: tuple[str, ...]


def schemas_of(ask: Ask, wanted: Sequence[str], *, shown: str) -> Schemas:
    """Raises ConfigError naming a wanted schema that the database does not have; `shown` says which database it is."""
    rows = ask(_SCHEMAS, ())
    external = {str(name): bool(elsewhere) for _, name, elsewhere in rows}
    missing = [name for name in wanted if name not in external]
    if missing:
        others = [name for name in external if name not in _SYSTEM_SCHEMAS and not name.startswith("pg_")]
        there = ", ".join(others[:_SHOWN_SCHEMAS]) + (", …" if len(others) > _SHOWN_SCHEMAS else "")
        raise ConfigError(f"datasets names {missing[0]!r}, and {shown} has these schemas: {there or 'none'}")
    return Schemas(
        database=str(rows[0][0]),
        local=tuple(name for name in wanted if not external[name]),
        external=tuple(name for name in wanted if external[name]),
    )


def tables(cluster: Cluster, schemas: Schemas) -> list[CatalogTable]:
    """Tables, views and external tables that the user may read."""
    found: list[CatalogTable] = []
    if schemas.local:
        found += _local_tables(cluster, schemas)
    if schemas.external:
        found += _external_tables(cluster.ask, schemas)
    return found


def columns(cluster: Cluster, schemas: Schemas, named: Sequence[Named]) -> list[CatalogColumn]:
    """Columns of the named tables in table order. A view whose own tables are gone has none."""
    local = [table for table in named if table[0] in schemas.local]
    external = [table for table in named if table[0] in schemas.external]
    found: list[CatalogColumn] = []
    if local:
        found += _local_columns(cluster, schemas.database, local)
    if external:
        found += _external_columns(cluster.ask, schemas.database, external)
    return found


# -------------------------------------------------------------------------------------------------------- local


def _local_tables(cluster: Cluster, schemas: Schemas) -> Iterator[CatalogTable]:
    scope = (schemas.database, *schemas.local)
    rows = cluster.ask(_within(_TABLES, schemas.local), scope)
    listed = [row for row in rows if not _INTERNAL_TABLE.fullmatch(row[1])]
    widths = _by_table(cluster.ask(_within(_WIDTHS, schemas.local), scope))
    if any(not widths.get((row[0], row[1])) for row in listed):
        widths = _late_widths(cluster, schemas.local) | widths
    counts = _counts(cluster.try_ask(_within(_COUNTS, schemas.local), scope))
    for schema, name, kind, remarks in listed:
        yield CatalogTable(
            schema=schema,
            name=name,
            column_count=widths.get((schema, name), 0),
            row_count=None if counts is None or _is_view(kind) else counts.get((schema, name), 0),
            comment=remarks or "",
        )


def _local_columns(cluster: Cluster, database: str, named: Sequence[Named]) -> Iterator[CatalogColumn]:
    within, scope = _of(named)
    rows = cluster.ask(_COLUMNS.format(**within), (database, *scope))
    keys = {tuple(row) for row in cluster.try_ask(_KEYS.format(**within), scope) or ()}
    listed = _in_order(rows, named)
    for (schema, table), entries in listed.items():
        for _, name, label, nullable, sort, remarks in entries:
            if not name.startswith(_INTERNAL_COLUMN):
                yield CatalogColumn(
                    schema=schema,
                    table=table,
                    name=name,
                    type=label,
                    nullable=str(nullable).upper() != "NO",
                    primary_key=(schema, table, name) in keys,
                    comment=_joined(remarks, _SORTS if abs(sort or 0) == 1 else ""),
                )
    unresolved = [table for table in named if table not in listed]
    if unresolved:
        yield from _late_columns(cluster, unresolved)


def _late_widths(cluster: Cluster, schemas: Sequence[str]) -> dict[Named, int]:
    rows = cluster.try_ask(_within(_LATE_BINDING, schemas), tuple(schemas))
    return dict(Counter((row[0], row[1]) for row in rows or ()))


def _late_columns(cluster: Cluster, named: Sequence[Named]) -> Iterator[CatalogColumn]:
    """Columns of views WITH NO SCHEMA BINDING, which one function alone knows; it may fail for all over one broken view."""
    schemas = tuple(dict.fromkeys(schema for schema, _ in named))
    told = _in_order(cluster.try_ask(_within(_LATE_BINDING, schemas), schemas) or (), named)
    for schema, view in named:
        entries = told.get((schema, view))
        found = [(name, label) for _, name, label in entries] if entries else cluster.probe((schema, view))
        for name, label in found:
            yield CatalogColumn(schema=schema, table=view, name=name, type=label, nullable=True)


def _counts(rows: Rows | None) -> dict[Named, int] | None:
    """Rows by table; svv_table_info leaves out empty tables. None where it shows nothing: most users may not read it."""
    return {(row[0], row[1]): int(row[2] or 0) for row in rows} if rows else None


def _is_view(kind: str | None) -> bool:
    return "view" in (kind or "").lower()


# ----------------------------------------------------------------------------------------------------- external


def _external_tables(ask: Ask, schemas: Schemas) -> Iterator[CatalogTable]:
    scope = (schemas.database, *schemas.external)
    widths = _by_table(ask(_within(_EXTERNAL_WIDTHS, schemas.external), scope))
    for schema, name, parameters in ask(_within(_EXTERNAL_TABLES, schemas.external), scope):
        yield CatalogTable(
            schema=schema,
            name=name,
            column_count=widths.get((schema, name), 0),
            row_count=_told_rows(parameters),
        )


def _external_columns(ask: Ask, database: str, named: Sequence[Named]) -> Iterator[CatalogColumn]:
    within, scope = _of(named)
    rows = ask(_EXTERNAL_COLUMNS.format(**within), (database, *scope))
    for (schema, table), entries in _in_order(rows, named).items():
        for _, name, label, nullable, part in entries:
            yield CatalogColumn(
                schema=schema,
                table=table,
                name=name,
                type=label,
                nullable=str(nullable).lower() != "false",
                comment=_PARTITIONS if part else "",
            )


def _told_rows(parameters: str | None) -> int | None:
    """What the table's owner or a crawler wrote down; nobody counts the rows of files."""
    try:
        told: Any = json.loads(parameters or "")
        count = int(told["numRows"] if "numRows" in told else told["recordCount"])
    except (ValueError, TypeError, KeyError):
        return None
    return count if count >= 0 else None


# --------------------------------------------------------------------------------------------------------- rows


def _within(statement: str, schemas: Sequence[str]) -> str:
    return statement.format(schemas=_places(schemas))


def _of(named: Sequence[Named]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Placeholders and parameters for the schemas and the names of tables; pairs that were not asked for come along."""
    schemas = tuple(dict.fromkeys(schema for schema, _ in named))
    names = tuple(dict.fromkeys(name for _, name in named))
    return {"schemas": _places(schemas), "tables": _places(names)}, schemas + names


def _places(values: Sequence[str]) -> str:
    return ", ".join(["%s"] * len(values))


def _by_table(rows: Rows) -> dict[Named, int]:
    return {(row[0], row[1]): int(row[2]) for row in rows}


def _in_order(rows: Rows, named: Sequence[Named]) -> dict[Named, list[Sequence[Any]]]:
    """What follows schema and table in each row, by table and in the order of the column's number, for tables asked for."""
    wanted = set(named)
    found: dict[Named, list[Sequence[Any]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row[0], row[1], row[2])):
        if (row[0], row[1]) in wanted:
            found[row[0], row[1]].append(row[2:])
    return found


def _joined(*texts: str | None) -> str:
    return "; ".join(text for text in texts if text)
