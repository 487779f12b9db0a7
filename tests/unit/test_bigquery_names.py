"""Names at BigQuery: which tables are one table cut by day, and which dataset of which project is meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_agent.adapters.bigquery_names import (
    Place,
    Shards,
    called,
    group_of,
    grouped,
    known_as,
    place_of,
    ref_of,
)
from assay_core.errors import ConfigError

DAYS = st.dates().filter(lambda day: 1900 <= day.year <= 2099).map(lambda day: f"{day:%Y%m%d}")


def test_tables_that_differ_by_their_day_are_one() -> None:
    names = [
        "events_20260102",
        "orders",
        "events_20260101",
        "events_intraday_20260103",
        "ga20260101",
        "ga20260102",
    ]
    cut, rest = grouped(names)
    assert [(group.name, group.days) for group in cut] == [
        ("events_*", ("20260101", "20260102")),
        ("ga*", ("20260101", "20260102")),
    ]
    assert rest == ["events_intraday_20260103", "orders"]


@pytest.mark.parametrize(
    "names",
    [
        ["events_20261301", "events_20260230"],
        ["20260101", "20260102"],
        ["order_12345678", "order_87654321"],
        ["events_2026010112", "events_2026010113"],
        ["events_20260101"],
    ],
)
def test_what_is_no_day_or_stands_alone_stays_a_table(names: list[str]) -> None:
    assert grouped(names) == ([], sorted(names))


@given(
    st.lists(st.from_regex(r"[a-z_]{1,6}([0-9]{8})?", fullmatch=True), unique=True),
    st.lists(DAYS, unique=True),
)
def test_every_table_is_listed_once_whatever_they_are_called(names: list[str], days: list[str]) -> None:
    given_names = list(dict.fromkeys([*names, *(f"events_{day}" for day in days)]))
    cut, rest = grouped(given_names)
    assert sorted([*rest, *(name for group in cut for name in group.members)]) == sorted(given_names)


def test_a_group_says_its_days_its_gaps_and_how_to_read_few() -> None:
    group = Shards(before="events_", days=("20260101", "20260102", "20260105"))
    told = group.told(2)
    assert told.startswith("3 tables, 20260101 to 20260105, 2 days missing.")
    assert "WHERE _TABLE_SUFFIX BETWEEN '20260105' AND '20260105'" in told
    assert told.endswith("It also catches 2 other tables.")
    whole = Shards(before="e_", days=tuple(f"202601{day:02d}" for day in range(1, 32))).told(0)
    assert "missing" not in whole
    assert "also catches" not in whole


@given(st.lists(DAYS, min_size=2, max_size=400, unique=True), st.integers(0, 10_000))
def test_what_a_group_says_fits_a_line_of_the_prompt(days: list[str], others: int) -> None:
    assert len(Shards(before="x_", days=tuple(sorted(days))).told(others)) < 200


def test_a_dataset_is_called_without_the_own_project() -> None:
    assert place_of("sales", home="shop-1") == Place(project="shop-1", dataset="sales")
    assert place_of("other-2.sales", home="shop-1") == Place(project="other-2", dataset="sales")
    assert [known_as(name, home="shop-1") for name in ("sales", "shop-1.sales", "other-2.sales")] == [
        "sales",
        "sales",
        "other-2.sales",
    ]
    assert [called(before, home="shop-1") for before in (["shop-1", "d"], ["o", "d"], ["d"])] == [
        "d",
        "o.d",
        "d",
    ]
    assert [ref_of(dataset, "t") for dataset in ("sales", "other-2.sales")] == ["sales.t", "other-2.sales.t"]


@pytest.mark.parametrize("name", ["a.b.c", "", "pro ject.d", "d."])
def test_what_is_no_dataset_is_refused_on_one_line(name: str) -> None:
    with pytest.raises(ConfigError, match=r"is no dataset; write dataset or project\.dataset"):
        place_of(name, home="shop-1")


@pytest.mark.parametrize(
    ("ref", "listed"),
    [
        ("d.events_20260101", "d.events_*"),
        ("shop-1.d.events_20260101", "d.events_*"),
        ("`shop-1.d.events_20260101`", "d.events_*"),
        ("events_20260101", "d.events_*"),
        ("other-2.d.events_20260101", "other-2.d.events_*"),
        ("d.events_20260103", None),
        ("e.events_20260101", None),
        ("d.orders", None),
    ],
)
def test_one_day_s_table_is_found_under_the_name_of_all(ref: str, listed: str | None) -> None:
    group = Shards(before="events_", days=("20260101", "20260102"))
    shards = {("d", "events_*"): group, ("other-2.d", "events_*"): group}
    assert group_of(ref, shards, datasets=["d", "other-2.d"], home="shop-1") == listed
