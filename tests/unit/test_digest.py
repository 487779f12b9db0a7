"""The digest of a result: kinds, quartiles, tops, ends, and rows that can be stored whatever came in."""

from __future__ import annotations

import json
import statistics
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from assay_agent.evidence.digest import digest
from assay_agent.policy import DigestPolicy
from assay_core.encoding import canonical, json_value
from assay_core.model.step import CaveatKind, ColumnDigest, Digest, ResultColumn

POLICY = DigestPolicy()


def of(values: list[Any], *, pad: bool = True) -> ColumnDigest:
    """The digest of one column; repeated until it is long enough for statistics."""
    if pad:
        values = values * (21 // max(len(values), 1) + 1)
    made, _, _ = digest(
        [ResultColumn(name="v")], [(value,) for value in values], policy=POLICY, truncated=False
    )
    return made.columns[0]


def test_up_to_twenty_rows_are_kept_whole_without_statistics() -> None:
    rows = [(n, f"r{n}") for n in range(20)]
    made, caveats, stored = digest(
        [ResultColumn(name="n"), ResultColumn(name="t")], rows, policy=POLICY, truncated=False
    )
    assert made == Digest(row_count=20, rows=[{"n": n, "t": f"r{n}"} for n in range(20)])
    assert stored == made.rows
    assert caveats == []


def test_more_rows_become_statistics_head_and_tail() -> None:
    rows = [(n,) for n in range(100)]
    made, _, stored = digest([ResultColumn(name="n")], rows, policy=POLICY, truncated=True)
    assert made.rows == []
    assert [row["n"] for row in made.head] == [0, 1, 2, 3, 4]
    assert [row["n"] for row in made.tail] == [95, 96, 97, 98, 99]
    assert made.row_count == len(stored) == 100
    assert made.truncated
    (column,) = made.columns
    assert (column.kind, column.min, column.max, column.distinct, column.null_count) == (
        "number",
        0,
        99,
        100,
        0,
    )


@pytest.mark.parametrize("count", [21, 22, 23, 24, 101, 1_000])
@pytest.mark.parametrize("cast", [int, float, Decimal, np.int64, np.float32])
def test_quartiles_interpolate_linearly(count: int, cast: type) -> None:
    values = [cast((n * 37) % 101) for n in range(count)]
    plain = [float(value) for value in values]
    column = of(values, pad=False)
    expected = statistics.quantiles(plain, n=4, method="inclusive")
    assert [column.p25, column.median, column.p75] == pytest.approx(expected)
    assert (column.min, column.max) == (min(plain), max(plain))
    assert column.distinct == len(set(plain))
    assert column.kind == "number"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], "number"),
        ([1, 2.5, Decimal("3")], "number"),
        ([Decimal("1.5")], "number"),
        ([float("nan")], "null"),
        ([10**30, 1], "number"),
        (["a", None], "string"),
        ([UUID(int=1)], "string"),
        ([b"x"], "string"),
        ([timedelta(1)], "string"),
        ([True, False, None], "boolean"),
        ([date(2020, 1, 1)], "timestamp"),
        ([datetime(2020, 1, 1), date(2020, 1, 2)], "timestamp"),
        ([None], "null"),
        ([1, "a"], "mixed"),
        ([True, 1], "mixed"),
        ([[1], [2]], "mixed"),
        ([{"a": 1}], "mixed"),
        ([date(2020, 1, 1), "infinity"], "mixed"),
    ],
)
def test_the_kind_of_a_column(values: list[Any], kind: str) -> None:
    assert of(values).kind == kind


def test_nan_and_infinity_count_as_null_and_are_said() -> None:
    rows = [(1.0,), (float("nan"),), (None,), (float("-inf"),)] * 6
    made, caveats, stored = digest([ResultColumn(name="x")], rows, policy=POLICY, truncated=False)
    (column,) = made.columns
    assert (column.null_count, column.distinct, column.min, column.max) == (18, 1, 1.0, 1.0)
    assert [row["x"] for row in stored[:4]] == [1.0, None, None, None]
    assert [caveat.kind for caveat in caveats] == [CaveatKind.CONVERTED]
    assert caveats[0].text.startswith("column x: 12 values were not finite")


def test_wide_and_exact_numbers_keep_their_ends_exact() -> None:
    column = of([10**30, Decimal("0.1"), 5])
    assert column.min == "0.1" or column.min == pytest.approx(0.1)
    assert column.max == str(10**30)
    assert column.median == 5.0


def test_timestamps_have_ends_and_no_quartiles() -> None:
    early = datetime(1883, 11, 18, 12, tzinfo=timezone(timedelta(hours=-5)))
    late = datetime(2020, 1, 1)
    column = of([late, early, None])
    assert column.kind == "timestamp"
    assert column.min == datetime(1883, 11, 18, 17, tzinfo=UTC)
    assert column.max == datetime(2020, 1, 1, tzinfo=UTC)
    assert column.median is None
    assert of([date(2020, 1, 2), date(1900, 1, 1)]).min == "1900-01-01"


def test_the_three_most_frequent_values_stand_when_there_are_few() -> None:
    column = of(["a"] * 10 + ["b"] * 5 + ["c"] * 4 + ["d"] * 2 + [None] * 3, pad=False)
    assert [(value.value, value.count) for value in column.top] == [("a", 10), ("b", 5), ("c", 4)]
    assert (column.distinct, column.null_count) == (4, 3)
    assert of([str(n) for n in range(21)], pad=False).top == []
    assert len(of([str(n) for n in range(20)]).top) == 3


def test_nested_values_are_counted_by_what_they_hold() -> None:
    column = of([[1, 2], [1, 2], {"b": 1, "a": 2}, {"a": 2, "b": 1}], pad=True)
    assert column.distinct == 2
    assert len(column.top) == 2


def test_long_cells_are_cut_in_the_digest_and_whole_in_the_rows() -> None:
    long = "x" * 5_000
    made, _, stored = digest([ResultColumn(name="v")], [(long,), ([long],)], policy=POLICY, truncated=False)
    assert made.rows[0]["v"] == "x" * 200 + "… [5,000 characters]"
    assert made.rows[1]["v"].endswith("… [5,004 characters]")
    assert stored[0]["v"] == long
    assert len(str(of([long]).top[0].value)) < 240


def test_the_rows_are_what_the_encoder_makes_of_each_value() -> None:
    values = [
        *(
            1,
            2.5,
            True,
            None,
            "t",
            "ü\x00",
            "\ud800",
            b"\xff",
            date(1500, 1, 1),
            datetime(2020, 1, 1, 1, 1, 1, 999999),
        ),
        *(
            Decimal("1.10"),
            Decimal(7),
            float("inf"),
            2**63,
            [1, {"a": float("nan")}],
            {1: 2},
            {"a.b": 1},
            UUID(int=5),
        ),
        *(timedelta(days=1), np.int64(5), np.float64(1.5), np.bool_(True), {3, 1}, (1, 2), 1 + 2j),
    ]
    for value in values:
        for repeat in (1, 30):
            _, _, stored = digest(
                [ResultColumn(name="v")], [(value,)] * repeat, policy=POLICY, truncated=False
            )
            assert stored == [{"v": canonical(value)[0]}] * repeat
    _, _, mixed = digest(
        [ResultColumn(name="v")], [(value,) for value in values], policy=POLICY, truncated=False
    )
    assert mixed == [{"v": canonical(value)[0]} for value in values]
    json.dumps(json_value(mixed), allow_nan=False)


def test_any_mix_of_types_is_digested() -> None:
    values = [
        None,
        1,
        "a",
        2.5,
        True,
        b"x",
        date(2020, 1, 1),
        [1],
        {"a": 1},
        Decimal("NaN"),
        10**400,
        float("nan"),
    ]
    column = of(values)
    assert column.kind == "mixed"
    assert column.distinct is not None
    assert column.distinct >= 8
    assert of([Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal(1)]).min == 1
    assert of([10**400, 1]).max == 1


def test_names_that_cannot_be_stored_are_changed_and_stay_unique() -> None:
    columns = [ResultColumn(name=name) for name in ("", "_", "$a", "a.b", "ü")]
    made, _, stored = digest(columns, [(1, 2, 3, 4, 5)], policy=POLICY, truncated=False)
    assert list(stored[0].values()) == [1, 2, 3, 4, 5]
    assert len(stored[0]) == 5
    assert not any(name.startswith("$") or not name for name in stored[0])
    assert made.rows == stored


@pytest.mark.parametrize("rows", [0, 1, 20, 21])
def test_no_columns_and_no_rows(rows: int) -> None:
    made, caveats, stored = digest([], [()] * rows, policy=POLICY, truncated=False)
    assert made.row_count == rows
    assert stored == [{}] * rows
    assert caveats == []
    none, _, empty = digest([ResultColumn(name="a")], [], policy=POLICY, truncated=False)
    assert (none.row_count, none.rows, empty) == (0, [], [])
