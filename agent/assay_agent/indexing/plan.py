"""What is left to do for tables that were just read, given what the cache knows of them; how many may fail. Pure.

Resuming is nothing else: what an index that died had done is known, and unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay_agent.indexing.rules import BY_RULES
from assay_agent.indexing.structure import structure_of
from assay_core.model.table import TableSchema
from assay_core.store.schema import KnownTable, TableKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What an index wants of every table. With `refresh` a table is described again unless `index_id` did it."""

    described_by: str
    embedded_by: str
    index_id: str
    refresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every table is in exactly one of them; `embed` has its description already."""

    describe: tuple[TableSchema, ...] = ()
    embed: tuple[TableSchema, ...] = ()
    unchanged: tuple[TableSchema, ...] = ()


def key_of(table: TableSchema) -> TableKey:
    return table.datasource_id, table.ref


def what_is_left(tables: Sequence[TableSchema], known: Mapping[TableKey, KnownTable], wanted: Wanted) -> Plan:
    """Sort tables, in their order, by what must still be done for them."""
    describe: list[TableSchema] = []
    embed: list[TableSchema] = []
    unchanged: list[TableSchema] = []
    for table in tables:
        found = known.get(key_of(table))
        if found is None or _described_again(found, table, wanted):
            describe.append(table)
        elif found.embedded_by != wanted.embedded_by:
            embed.append(table)
        else:
            unchanged.append(table)
    return Plan(describe=tuple(describe), embed=tuple(embed), unchanged=tuple(unchanged))


def _described_again(found: KnownTable, table: TableSchema, wanted: Wanted) -> bool:
    """A model's description takes the place of one by rules, never the other way; another model is no reason."""
    if found.problem is not None or found.structure != structure_of(table):
        return True
    if found.described_by == BY_RULES and wanted.described_by != BY_RULES:
        return True
    return wanted.refresh and found.index_id != wanted.index_id


def failures_allowed(total: int, share: float) -> int:
    """How many of `total` tables may fail: their share, at least one, but never all of them."""
    return max(min(max(int(share * total), 1), total - 1), 0)
