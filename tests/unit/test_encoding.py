"""What drivers and models hand over becomes storable, exactly where it can and with a caveat where it cannot."""

from __future__ import annotations

import enum
import json
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import bson
import numpy as np
import pytest
from bson import Decimal128, Int64, ObjectId

from assay_core.encoding import BYTES_KEPT, MAX_DEPTH, canonical, iso_span, json_value, safe_key
from assay_core.model.step import CaveatKind
from assay_core.store.size import bson_size, fit
from tests.builders import NOON, ROW, a_step


class Colour(enum.Enum):
    RED = "red"


def value_of(given: Any) -> Any:
    return canonical(given)[0]


def kinds_of(given: Any) -> list[CaveatKind]:
    return [caveat.kind for caveat in canonical(given)[1]]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (Decimal("12.00"), 12),
        (Decimal("9223372036854775807"), 2**63 - 1),
        (Decimal("0.1"), 0.1),
        (Decimal("1E+3"), 1000),
        (Decimal("-0"), 0),
        (date(2013, 1, 5), "2013-01-05"),
        (time(4, 5, 6), "04:05:06"),
        (timedelta(days=1, hours=2, minutes=3, seconds=4.5), "P1DT2H3M4.5S"),
        (timedelta(seconds=-90), "-PT1M30S"),
        (timedelta(0), "PT0S"),
        (datetime(2013, 1, 5, 12, 0, 0, 123_456), datetime(2013, 1, 5, 12, 0, 0, 123_000, tzinfo=UTC)),
        (
            datetime(2013, 1, 5, 1, 0, tzinfo=timezone(timedelta(hours=2))),
            datetime(2013, 1, 4, 23, 0, tzinfo=UTC),
        ),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (b"\x00\xff", "0x00ff"),
        (Colour.RED, "red"),
        ((1, 2), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        (OrderedDict(a=1), {"a": 1}),
        (ObjectId("0123456789abcdef01234567"), "0123456789abcdef01234567"),
        (Int64(7), 7),
        (Decimal128("0.5"), 0.5),
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.datetime64("2013-01-05T12:00:00.5"), datetime(2013, 1, 5, 12, 0, 0, 500_000, tzinfo=UTC)),
        (np.datetime64("2013-01-05"), datetime(2013, 1, 5, tzinfo=UTC)),
        (np.timedelta64(90, "s"), "PT1M30S"),
        (np.str_("text"), "text"),
    ],
)
def test_known_types_are_stored_without_a_caveat(given: Any, stored: Any) -> None:
    assert canonical(given) == (stored, [])
    assert type(value_of(given)) is type(stored)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (Decimal("NaN"), None),
        (Decimal("sNaN"), None),
        (Decimal("-Infinity"), None),
        (np.float64("nan"), None),
        (np.datetime64("NaT"), None),
        (2**63, "9223372036854775808"),
        (-(2**63) - 1, "-9223372036854775809"),
        (Decimal("9223372036854775808"), "9223372036854775808"),
        (Decimal("0.12345678901234567890123"), "0.12345678901234567890123"),
        (Decimal("1E+400"), "1E+400"),
        (Decimal("1E-400"), "1E-400"),
        ("a\x00b", "a␀b"),
        ("a\ud800b", "a\ufffdb"),
        (1 + 2j, "(1+2j)"),
        (range, "<class 'range'>"),
    ],
)
def test_what_had_to_change_is_said_once(given: Any, stored: Any) -> None:
    assert value_of(given) == stored
    assert kinds_of(given) == [CaveatKind.CONVERTED]


def test_a_split_surrogate_pair_is_one_character_again() -> None:
    assert value_of("\ud83d\ude00") == "😀"


def test_long_binary_values_are_cut_and_say_their_length() -> None:
    value, caveats = canonical({"blob": b"x" * 10_000})
    assert value["blob"].endswith("… (10000 bytes)")
    assert len(value["blob"]) < 2 * BYTES_KEPT + 40
    assert [caveat.kind for caveat in caveats] == [CaveatKind.TRUNCATED]


def test_caveats_count_instead_of_repeating() -> None:
    _, caveats = canonical([float("nan")] * 1000 + [2**70])
    assert [caveat.text.split(" ")[0] for caveat in caveats] == ["1000", "1"]


def test_keys_stay_unless_they_cannot_be_stored() -> None:
    value, caveats = canonical({"avg(dep.delay)": 1, "$sum": 2, "": 3, "a\x00": 4, 5: 6, None: 7})
    assert value == {"avg(dep.delay)": 1, "＄sum": 2, "_": 3, "a␀": 4, "5": 6, "None": 7}
    assert [caveat.kind for caveat in caveats] == [CaveatKind.CONVERTED]
    assert safe_key("$x") == "＄x"


def test_keys_that_fall_together_are_told_apart() -> None:
    assert value_of({1: "a", "1": "b", "1_2": "c"}) == {"1": "a", "1_2": "b", "1_2_2": "c"}


def test_depth_is_limited_below_what_the_server_takes() -> None:
    nested: Any = 1
    for _ in range(500):
        nested = {"down": nested}
    value, caveats = canonical(nested)
    depth = 0
    while isinstance(value, dict):
        value, depth = value["down"], depth + 1
    assert (value, depth) == ("…", MAX_DEPTH)
    assert [caveat.kind for caveat in caveats] == [CaveatKind.TRUNCATED]


def test_models_keep_empty_cells_and_drop_absent_fields() -> None:
    stored = value_of(a_step(query_result=[{"a": None}]))
    assert stored["query_result"] == [{"a": None}]
    assert "error" not in stored


def test_json_value_writes_times_as_z_text() -> None:
    given = {"id": ObjectId("0123456789abcdef01234567"), "at": NOON, "rows": [{"day": date(2013, 1, 5)}]}
    assert json.loads(json.dumps(json_value(given), allow_nan=False)) == {
        "id": "0123456789abcdef01234567",
        "at": "2026-01-02T12:00:00.000Z",
        "rows": [{"day": "2013-01-05"}],
    }


def test_the_ends_of_the_calendar_do_not_overflow() -> None:
    east = timezone(timedelta(hours=14))
    assert value_of(datetime(1, 1, 1, tzinfo=east)) == "0001-01-01T00:00:00+14:00"
    assert value_of(datetime.max.replace(tzinfo=UTC)).year == 9999


def test_a_span_of_days_has_no_clock_part() -> None:
    assert iso_span(timedelta(days=2)) == "P2D"


# -------------------------------------------------------------------------------------------------------- size


def test_a_document_that_fits_is_the_same_object() -> None:
    document = {"query_result": [ROW]}
    assert fit(document) is document


@pytest.mark.parametrize("limit", [200_000, 60_000, 20_000, 5_000, 2_000])
def test_a_step_too_large_keeps_its_short_fields_and_says_what_went(limit: int) -> None:
    row = {f"column_{n}": "x" * 100 for n in range(20)}
    step = value_of(a_step(query_result=[row] * 5_000, thinking="t" * 100_000))
    step["digest"] = {"row_count": 5_000, "columns": [], "rows": [], "head": [row] * 5, "tail": [row] * 5}
    smaller = fit(step, limit_bytes=limit)
    assert len(bson.encode(smaller)) <= limit
    assert smaller["step"] == 1
    assert smaller["query"] == "SELECT 1"
    assert smaller["row_count"] == 1
    assert smaller["digest"]["row_count"] == 5_000
    assert smaller["caveats"][-1]["kind"] == "truncated"


def test_rows_are_given_up_before_words() -> None:
    step = value_of(a_step(query_result=[{"cell": "x" * 1_000}] * 300, thinking="t" * 5_000))
    smaller = fit(step, limit_bytes=100_000)
    assert len(smaller["query_result"]) == 50
    assert smaller["thinking"] == step["thinking"]
    assert "50 of 300" in smaller["caveats"][-1]["text"]


def test_the_size_is_the_size_on_the_wire() -> None:
    document = value_of({"a": [1, 2**40, None, True, 0.5, NOON, "tätowiert"], "ü": {"b": []}})
    assert bson_size(document) == len(bson.encode(document))
