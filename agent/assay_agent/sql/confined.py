"""A warehouse that shows one tenant: every statement, sample and row count passes the filter, whoever asks.

Built by `wiring` around the warehouse of a datasource with `filter_field` and `filter_value`, outside every middleware;
`query.run_query` confines what the guard has passed before it runs, so that the text on record is the one that ran.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from assay_agent.ports import Meter, QueryLimits, QueryResult, TableRef, Warehouse
from assay_agent.sql.dialects import dialect_of, make_ref, parts_of
from assay_agent.sql.guard import Guarded, check, parsed
from assay_agent.sql.limits import metered
from assay_agent.sql.rendering import render
from assay_agent.sql.tenant import Filter, TableFacts, confine, own_rows, unproven
from assay_core.errors import ConfigError, QueryError
from assay_core.model.table import TableSchema

DESCRIBE_BATCH = 500
"""Tables described at once to learn which of them hold the tenant's column."""
REMEMBERED = 256
"""Confined statements that need not be confined again when they are executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSettings:
    """What a datasource says: the column, whose rows, other names of the column by table, tables that belong to all."""

    column: str
    value: str
    columns: Mapping[str, str] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    catalog: str | None = None


def is_confined(warehouse: Warehouse) -> bool:
    """Whether statements are rewritten for one tenant before they run, so that what ran is not what was proposed."""
    return isinstance(warehouse, ConfinedWarehouse)


class ConfinedWarehouse:
    """See `ports.Warehouse`. Tables that do not say whose their rows are do not exist here, but for the shared ones."""

    def __init__(self, inner: Warehouse, settings: TenantSettings, *, meter: Meter | None = None) -> None:
        self._inner = inner
        self._meter = meter
        self._settings = settings
        self._language = dialect_of(inner.dialect)
        self._facts: dict[str, TableFacts] = {}
        self._listed = False
        self._confined: OrderedDict[str, None] = OrderedDict()
        if any(char < " " for char in settings.value) or (
            self._language.doubled_quotes and "\\" in settings.value
        ):
            raise ConfigError(
                f"datasource {inner.datasource_id}: filter_value may hold neither control characters nor backslashes"
            )

    @property
    def datasource_id(self) -> str:
        return self._inner.datasource_id

    @property
    def dialect(self) -> str:
        return self._inner.dialect

    @property
    def datasets(self) -> tuple[str, ...]:
        return self._inner.datasets

    def check(self) -> str:
        return self._inner.check()

    def tables(self) -> Sequence[TableRef]:
        """Those that may be queried. The number of rows is everybody's and is not told but for shared tables."""
        listed = self._inner.tables()
        self._listed = True
        for start in range(0, len(listed), DESCRIBE_BATCH):
            self._inner_describe([table.ref for table in listed[start : start + DESCRIBE_BATCH]])
        shown = [(table, self._facts[table.ref]) for table in listed if table.ref in self._facts]
        return [
            table
            if facts.shared
            else TableRef(ref=table.ref, column_count=table.column_count, row_count=None)
            for table, facts in shown
            if facts.shared or facts.column is not None
        ]

    def describe(self, refs: Sequence[str]) -> Sequence[TableSchema]:
        described = self._inner_describe(refs)
        hidden = [table.ref for table in described if not self._is_open(self._facts[table.ref])]
        if hidden:
            raise QueryError(f"no such table: {', '.join(hidden[:10])}", kind="unknown_table")
        return [
            table if self._facts[table.ref].shared else table.model_copy(update={"row_count": None})
            for table in described
        ]

    def sample(self, ref: str, *, limits: QueryLimits) -> QueryResult:
        found = self.describe([ref])[0].ref
        sql = self._sample_statement(self._facts[found], limits.rows)
        result = self.execute(sql, limits=metered(limits, self._meter))
        if self._meter is not None:
            self._meter.bill(result.bytes_scanned)
        return result

    def execute(self, sql: str, *, limits: QueryLimits) -> QueryResult:
        if sql not in self._confined:
            sql = self.confined(check(sql, dialect=self.dialect)).sql
        return self._inner.execute(sql, limits=limits)

    def close(self) -> None:
        self._inner.close()

    def confined(self, guarded: Guarded) -> Guarded:
        """The statement as it may run; raises QueryError(kind="tenant") when it cannot be the tenant's alone."""
        tenant = self._filter(guarded.tables)
        tree = confine(parsed(guarded, dialect=self.dialect), language=self._language, tenant=tenant)
        written = render(tree, dialect=self.dialect, source=guarded.sql)
        again = check(written, dialect=self.dialect, proof=lambda final: self._prove(final, tenant))
        self._confined[again.sql] = None
        if len(self._confined) > REMEMBERED:
            self._confined.popitem(last=False)
        return Guarded(sql=again.sql, tables=guarded.tables)

    # ------------------------------------------------------------------------------------------------ inside

    def _prove(self, tree: exp.Expr, tenant: Filter) -> None:
        left = unproven(tree, language=self._language, tenant=tenant)
        if left:
            raise QueryError(
                f"Refused before execution: it is not clear that only rows of the tenant are read ({', '.join(left[:5])}); "
                "write the query in a simpler form.",
                kind="tenant",
            )

    def _filter(self, refs: Sequence[str]) -> Filter:
        """The filter with the facts of the tables that a statement names, by those names and by the full ones."""
        found: dict[str, TableFacts] = {}
        for ref in refs:
            facts = (
                self._wildcard(ref)
                if self._is_wildcard(ref)
                else self._facts.get(ref) or self._looked_up(ref)
            )
            if facts is not None:
                found[ref] = found[make_ref(facts.schema, facts.name, catalog=facts.catalog)] = facts
        return Filter(
            value=self._settings.value,
            facts=found,
            catalog=self._settings.catalog,
            datasource_id=self.datasource_id,
        )

    def _looked_up(self, ref: str) -> TableFacts | None:
        try:
            table = self._inner_describe([ref])[0]
        except QueryError as error:
            if error.kind != "unknown_table":
                raise
            return None
        facts = self._facts[table.ref]
        # One of the tables that are listed under a name for all of them.
        return replace(facts, name=parts_of(ref)[-1]) if self._is_wildcard(table.ref) else facts

    def _is_wildcard(self, ref: str) -> bool:
        return self._language.dots_split_names and parts_of(ref)[-1].endswith("*")

    def _wildcard(self, ref: str) -> TableFacts | None:
        """A name that ends in `*` stands for the tables that start so: all must be the tenant's by the same column."""
        catalog, schema, name = self._split(ref)
        if not self._listed:
            self.tables()
        before = name[:-1]
        parts = [
            facts
            for facts in self._facts.values()
            if before and (facts.catalog, facts.schema) == (catalog, schema) and _overlap(before, facts.name)
        ]
        columns = {(facts.column, facts.kind) for facts in parts}
        if len(columns) != 1 or any(facts.shared for facts in parts):
            return None
        column, kind = columns.pop()
        return TableFacts(catalog=catalog, schema=schema, name=name, column=column, kind=kind, wildcard=True)

    def _split(self, ref: str) -> tuple[str | None, str | None, str]:
        """Catalogue, where it is not the datasource's own and tells tables apart; schema; table."""
        *before, name = parts_of(ref)
        catalog = before[-2] if len(before) > 1 and self._language.catalogs_differ else None
        own = catalog == self._settings.catalog
        return (None if own else catalog), (before[-1] if before else None), name

    def _sample_statement(self, facts: TableFacts, rows: int) -> str:
        """The first rows of a table; of one that stands for several, the tenant's own, as it must say itself."""
        parts = {"catalog": facts.catalog, "db": facts.schema}
        table = exp.Table(
            this=exp.to_identifier(facts.name, quoted=True),
            **{key: exp.to_identifier(part, quoted=True) for key, part in parts.items() if part},
        )
        query = exp.select("*").from_(table).limit(rows)
        if self._is_wildcard(facts.name) and facts.column:
            query = query.where(own_rows(facts, value=self._settings.value, datasource_id=self.datasource_id))
        return query.sql(dialect=self.dialect)

    def _inner_describe(self, refs: Sequence[str]) -> Sequence[TableSchema]:
        described = self._inner.describe(refs)
        for table in described:
            if table.ref not in self._facts:
                self._facts[table.ref] = self._facts_of(table)
        return described

    def _facts_of(self, table: TableSchema) -> TableFacts:
        catalog, schema, name = self._split(table.ref)
        named = self._settings.columns.get(table.ref) or self._settings.columns.get(name)
        wanted = named or self._settings.column
        exact = [column for column in table.columns if column.name == wanted]
        alike = exact or [column for column in table.columns if column.name.lower() == wanted.lower()]
        if named and len(alike) != 1:
            raise ConfigError(
                f"datasource {self.datasource_id}: tenant_columns names {named!r} for {table.ref}, which has no such column"
            )
        column = alike[0] if len(alike) == 1 else None
        return TableFacts(
            catalog=catalog,
            schema=schema,
            name=name,
            column=column.name if column else None,
            kind=column.kind if column else "STRING",
            shared=bool(self._settings.shared & {table.ref, name}),
        )

    @staticmethod
    def _is_open(facts: TableFacts) -> bool:
        return facts.shared or facts.column is not None


def _overlap(before: str, name: str) -> bool:
    """Whether `before*` reads the table, or some of those that a listed name of the same form stands for."""
    return name.startswith(before) or (name.endswith("*") and before.startswith(name[:-1]))
