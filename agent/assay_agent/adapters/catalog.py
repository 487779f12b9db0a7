"""What a source lists of itself, and how a name that somebody wrote is found in it. Pure but for the two readers it is given.

Called by every SQL warehouse. A warehouse says how tables are listed and columns are read; here they become references
and schemas, and the last listing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from assay_agent.adapters.column_kinds import category_of, kind_of
from assay_agent.ports import TableRef
from assay_agent.sql.dialects import make_ref, parts_of, split_ref
from assay_core.errors import QueryError
from assay_core.model.table import ColumnSchema, TableSchema

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


class Catalog:
    """The tables of one datasource. `list_tables` and `read_columns` ask the source, in its own way and with its own errors.

    `read_columns` gets (schema, table) pairs, at most `DESCRIBE_BATCH`, and returns their columns in table order. `ref_of` makes
    a reference of such a pair; `listed_as` gives the reference under which a table is listed, by any name it has. A source with
    that has several catalogues, and a name that begins with one must be listed so.
    """

    def __init__(
        self,
        *,
        datasource_id: str,
        list_tables: Callable[[], Iterable[CatalogTable]],
        read_columns: Callable[[Sequence[tuple[str, str]]], Iterable[CatalogColumn]],
        ref_of: Callable[[str, str], str] = make_ref,
        listed_as: Callable[[str], str] | None = None,
    ) -> None:
        self._datasource_id = datasource_id
        self._list_tables = list_tables
        self._read_columns = read_columns
        self._ref_of = ref_of
        self._listed_as = listed_as
        self._listed: dict[str, CatalogTable] | None = None

    def tables(self) -> Sequence[TableRef]:
        """Asked anew each time, sorted by `ref`."""
        return [
            TableRef(ref=ref, column_count=table.column_count, row_count=table.row_count)
            for ref, table in sorted(self._list().items())
        ]

    def describe(self, refs: Sequence[str]) -> Sequence[TableSchema]:
        """In the order asked. Raises QueryError naming the tables that do not exist or are out of scope."""
        listed = self._known()
        wanted = [self._resolved(ref, listed) for ref in refs]
        missing = [ref for ref, found in zip(refs, wanted, strict=True) if found is None]
        if missing:
            raise no_such_table(*missing)
        found = [key for key in wanted if key is not None]
        columns: dict[str, list[ColumnSchema]] = {key: [] for key in found}
        unique = list(columns)
        for start in range(0, len(unique), DESCRIBE_BATCH):
            batch = [(listed[key].schema, listed[key].name) for key in unique[start : start + DESCRIBE_BATCH]]
            for column in self._read_columns(batch):
                columns[self._ref_of(column.schema, column.table)].append(_column_schema(column))
        return [self._schema(key, listed[key], columns[key]) for key in found]

    def find(self, ref: str) -> tuple[str, CatalogTable]:
        """The listed name for `ref` and its table; raises QueryError when there is none."""
        listed = self._known()
        key = self._resolved(ref, listed)
        if key is None:
            raise no_such_table(ref)
        return key, listed[key]

    def _known(self) -> dict[str, CatalogTable]:
        return self._listed or self._list()

    def _list(self) -> dict[str, CatalogTable]:
        self._listed = {self._ref_of(table.schema, table.name): table for table in self._list_tables()}
        return self._listed

    def _resolved(self, ref: str, listed: dict[str, CatalogTable]) -> str | None:
        if self._listed_as is None:
            return _resolve(ref, listed)
        known = self._listed_as(ref)
        if len(parts_of(known)) > 2:
            return known if known in listed else None
        return _resolve(known, listed)

    def _schema(self, key: str, table: CatalogTable, columns: list[ColumnSchema]) -> TableSchema:
        return TableSchema(
            ref=key,
            columns=columns,
            row_count=table.row_count,
            comment=table.comment,
            datasource_id=self._datasource_id,
        )


def no_such_table(*refs: str) -> QueryError:
    return QueryError(f"no such table: {', '.join(refs[:10])}", kind="unknown_table")


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
