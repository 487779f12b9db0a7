"""Whatever comes in, what goes out is storable, stable and within the limit."""

from __future__ import annotations

import json
from typing import Any

import bson
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_core.encoding import canonical, json_value
from assay_core.store.size import bson_size, fit

_text = st.text(st.characters(exclude_categories=[]), max_size=20)
_leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), _text, st.binary(max_size=600), st.decimals(),
    st.datetimes(), st.datetimes(timezones=st.timezones()), st.dates(), st.times(), st.timedeltas(), st.uuids(),
    st.complex_numbers(), st.fractions(),
)  # fmt: skip
_keys = st.one_of(_text, st.integers(), st.none(), st.booleans(), st.sampled_from(["$set", "a.b", "", "_id"]))
_values: st.SearchStrategy[Any] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.tuples(inner, inner),
        st.dictionaries(_keys, inner, max_size=5),
        st.frozensets(st.integers(), max_size=5),
    ),
    max_leaves=25,
)
_PLENTY = settings(max_examples=300, deadline=None)


@_PLENTY
@given(_values)
def test_every_value_can_be_stored_and_comes_back_equal(value: Any) -> None:
    stored, _ = canonical({"value": value})
    assert bson.decode(bson.encode(stored), bson.CodecOptions(tz_aware=True)) == stored


@_PLENTY
@given(_values)
def test_a_storable_value_is_not_changed_again(value: Any) -> None:
    stored, _ = canonical(value)
    assert canonical(stored) == (stored, [])


@_PLENTY
@given(_values)
def test_every_value_is_strict_json(value: Any) -> None:
    shown = json_value(value)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert json_value(shown) == shown


@_PLENTY
@given(_values)
def test_the_size_is_exact(value: Any) -> None:
    stored, _ = canonical({"value": value})
    assert bson_size(stored) == len(bson.encode(stored))


@_PLENTY
@given(st.dictionaries(st.text(max_size=5), _values, max_size=6), st.integers(3_000, 20_000))
def test_a_fitted_document_fits_or_is_whole(document: dict[str, Any], limit: int) -> None:
    stored, _ = canonical(document)
    smaller = fit(stored, limit_bytes=limit)
    assert bson_size(smaller) <= limit or smaller is stored
