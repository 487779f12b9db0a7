"""The Level-0 catalogue: a line per table, inside its budget, archived tables first to go."""

from __future__ import annotations

from assay_agent.evidence.catalog import guess_joins, render_catalog, render_rows
from assay_agent.policy import estimate_tokens
from assay_core.model.table import ColumnSchema, TableSchema


def a_table(ref: str, *columns: str, rows: int | None = 100, key: str | None = None) -> TableSchema:
    made = [
        ColumnSchema(name=name, type="INTEGER", category="primary_key" if name == key else "dimension")
        for name in columns
    ]
    return TableSchema(ref=ref, columns=made, row_count=rows)


def test_rows_read_short() -> None:
    assert [render_rows(count) for count in (542, 14_300, 2_100_000, None)] == [
        "542",
        "14.3K",
        "2.1M",
        "unknown",
    ]


def test_line_names_columns_rows_keywords_and_joins() -> None:
    flights = a_table("main.flights", "tailnum", "delay", rows=336_776)
    planes = a_table("main.planes", "tailnum", "year", rows=3_322, key="tailnum")
    catalog = render_catalog(
        [planes, flights], keywords=["light", "delay"], budget_tokens=1_000, max_keywords=3
    )
    assert catalog.text.splitlines() == [
        "main.flights | 2c | 336.8K rows | light | -> main.planes",
        "main.planes | 2c | 3.3K rows | -",
    ]
    assert catalog.table_count == 2


def test_budget_drops_archives_then_the_smallest_and_says_so() -> None:
    tables = [
        a_table(
            f"main.orders_{number:04d}_log" if number % 2 else f"main.table{number:04d}", "a", rows=number
        )
        for number in range(400)
    ]
    catalog = render_catalog(tables, keywords=[], budget_tokens=1_000, max_keywords=3)
    assert estimate_tokens(catalog.text) <= 1_000
    assert "_log" not in catalog.text
    assert "table0398" in catalog.text
    assert f"{catalog.omitted} smaller or archived tables are not listed" in catalog.text


def test_two_thousand_tables_fit_the_budget() -> None:
    tables = [
        a_table(f"warehouse.some_longer_table_name_{number:04d}", *"abcdefgh", rows=number * 1000)
        for number in range(2_000)
    ]
    catalog = render_catalog(tables, keywords=["table"], budget_tokens=20_000, max_keywords=3)
    assert catalog.tokens <= 20_000


def test_hostile_names_stay_on_their_line() -> None:
    catalog = render_catalog(
        [a_table("main.a\nb | 9c | c", "x")], keywords=[], budget_tokens=500, max_keywords=3
    )
    assert len(catalog.text.splitlines()) == 1


def test_joins_are_guessed_from_key_columns_only() -> None:
    joins = guess_joins(
        [a_table("m.a", "id", "b_id"), a_table("m.b", "b_id", "id", key="b_id"), a_table("m.c", "name")]
    )
    assert joins == {"m.a": ("m.b",)}
