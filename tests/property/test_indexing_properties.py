"""Any tables, any cache, any order of dying: every table is planned once, and what was done is not done again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from assay_agent.indexing.plan import Plan, Wanted, failures_allowed, key_of, what_is_left
from assay_agent.indexing.rules import describe_by_rules
from assay_agent.indexing.structure import structure_of
from assay_core.model.table import ColumnSchema, TableSchema
from assay_core.store.schema import KnownTable, TableKey
from tests.builders import NOON

_NAME = st.text(max_size=6)
_COLUMN = st.builds(
    ColumnSchema,
    name=_NAME,
    type=_NAME,
    nullable=st.booleans(),
    comment=_NAME,
    category=st.sampled_from(["primary_key", "time", "metric", "dimension"]),
)
_TABLES = st.lists(
    st.builds(
        TableSchema,
        ref=st.sampled_from("abcdefgh"),
        datasource_id=st.sampled_from(["one", "two"]),
        columns=st.lists(_COLUMN, max_size=4),
        comment=_NAME,
        row_count=st.none() | st.integers(0, 10),
    ),
    max_size=12,
    unique_by=key_of,
)
_WANTED = st.builds(
    Wanted,
    described_by=st.sampled_from(["rules", "openai/m1"]),
    embedded_by=st.sampled_from(["m", "n"]),
    index_id=st.sampled_from(["i1", "i2"]),
    refresh=st.booleans(),
)
_KNOWN = st.builds(
    KnownTable,
    structure=st.sampled_from(["", "other"]),
    described_by=st.sampled_from(["rules", "openai/m1", "openai/m2"]),
    index_id=st.sampled_from(["i0", "i1", "i2"]),
    embedded_by=st.sampled_from(["", "m", "n"]),
    problem=st.none() | st.just("locked"),
    row_count=st.none() | st.integers(0, 10),
    cached_at=st.just(NOON),
)


def _done(table: TableSchema, wanted: Wanted) -> KnownTable:
    """What the cache knows of a table that this index has done."""
    return KnownTable(
        structure=structure_of(table),
        described_by=wanted.described_by,
        index_id=wanted.index_id,
        embedded_by=wanted.embedded_by,
        problem=None,
        row_count=table.row_count,
        cached_at=NOON,
    )


def _all(plan: Plan) -> list[TableKey]:
    return sorted(map(key_of, (*plan.describe, *plan.embed, *plan.unchanged)))


@given(tables=_TABLES, wanted=_WANTED, data=st.data())
def test_every_table_is_planned_exactly_once_and_never_described_twice(
    tables: list[TableSchema], wanted: Wanted, data: st.DataObject
) -> None:
    known: dict[TableKey, KnownTable] = {}
    for table in tables:
        found = data.draw(st.none() | _KNOWN)
        if found is not None:
            same = data.draw(st.booleans())
            known[key_of(table)] = replace(found, structure=structure_of(table)) if same else found
    plan = what_is_left(tables, known, wanted)
    assert _all(plan) == sorted(map(key_of, tables))
    # The index dies after any number of tables, whole or described alone; the next start of it does only the rest.
    died_after = data.draw(st.integers(0, len(plan.describe)))
    for table in plan.describe[:died_after]:
        done = _done(table, wanted)
        known[key_of(table)] = done if data.draw(st.booleans()) else replace(done, embedded_by="")
    again = what_is_left(tables, known, wanted)
    assert again.describe == plan.describe[died_after:]
    finished = {key_of(table): _done(table, wanted) for table in tables}
    assert what_is_left(tables, finished, wanted) == Plan(unchanged=tuple(tables))


@given(total=st.integers(0, 10**6), share=st.floats(0, 1))
def test_never_all_tables_may_fail(total: int, share: float) -> None:
    allowed = failures_allowed(total, share)
    assert 0 <= allowed <= max(total - 1, 0)
    assert allowed <= max(share * total, 1)


@given(table=st.builds(TableSchema, ref=st.text(), columns=st.lists(_COLUMN, max_size=60), comment=st.text()))
def test_rules_describe_any_table_on_one_line(table: TableSchema) -> None:
    assert len(describe_by_rules(table).splitlines()) == 1
