"""Any rows in: a digest that can be stored and written as JSON, with the same numbers a slow count gives."""

from __future__ import annotations

import json
import math
from datetime import UTC, timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assay_agent.evidence.digest import digest
from assay_agent.policy import DigestPolicy
from assay_core.encoding import canonical, json_value
from assay_core.model.step import ResultColumn

_ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30))])
_SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.dates(),
    st.datetimes(timezones=_ZONES),
    st.times(),
    st.timedeltas(),
    st.uuids(),
)
_VALUE = _SCALAR | st.lists(_SCALAR, max_size=3) | st.dictionaries(st.text(max_size=4), _SCALAR, max_size=3)
_COLUMN = st.one_of(
    *(
        st.lists(st.none() | kind, min_size=25, max_size=60)
        for kind in (
            st.integers(-5, 5),
            st.integers(),
            st.floats(),
            st.decimals(allow_nan=False),
            st.text(max_size=3),
            st.dates(),
            st.datetimes(timezones=_ZONES),
            _VALUE,
        )
    )
)


@settings(max_examples=200, deadline=None)
@given(values=_COLUMN)
def test_a_column_is_digested_as_a_slow_count_would(values: list[Any]) -> None:
    made, _, stored = digest(
        [ResultColumn(name="v")], [(value,) for value in values], policy=DigestPolicy(), truncated=False
    )
    expected = [canonical(value)[0] for value in values]
    assert _same([row["v"] for row in stored], expected)
    (column,) = made.columns
    assert column.null_count == sum(value is None for value in expected)
    if column.kind == "number":
        finite = sorted(number for value in values if (number := _number(value)) is not None)
        if finite:
            assert column.p25 is not None
            assert column.median is not None
            assert column.p75 is not None
            assert finite[0] <= column.p25 <= column.median <= column.p75 <= finite[-1]
    if column.top:
        assert sum(value.count for value in column.top) <= len(values)
    json.dumps(json_value(made.stored()), allow_nan=False)


@settings(max_examples=100, deadline=None)
@given(
    names=st.lists(st.text(max_size=5), max_size=4, unique=True),
    data=st.data(),
)
def test_any_rows_are_digested(names: list[str], data: st.DataObject) -> None:
    row = st.tuples(*(_VALUE for _ in names))
    rows = data.draw(st.lists(row, max_size=30))
    made, _, stored = digest(
        [ResultColumn(name=name) for name in names], rows, policy=DigestPolicy(), truncated=True
    )
    assert made.row_count == len(stored) == len(rows)
    assert all(len(one) == len(names) for one in stored)
    json.dumps(json_value(made.stored()), allow_nan=False)


def _number(value: Any) -> float | None:
    if value is None or not isinstance(value, (int, float, Decimal)):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right and repr(left) == repr(right)
