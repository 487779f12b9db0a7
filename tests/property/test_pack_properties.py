"""Whatever a pack's document, an exported file or a profile holds, the answer is problems or a pack, never an exception."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay_agent.packs import Shelf, merged_schema, packed, profile_problems, unpacked
from assay_agent.packs.checking import problems_of
from assay_agent.packs.profiles import merge
from assay_core.model.pack import DomainPack

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=12,
)
_PACK: dict[str, Any] = json.loads(packed(Shelf().load("gaming")))["pack"]
_SCHEMA = merged_schema(Shelf().load("gaming"), "match3")
_PLACES = st.lists(st.integers(0, 5), min_size=1, max_size=5)


def replaced(value: Any, path: list[int], other: Any) -> Any:
    """The document with the part at a path of positions replaced."""
    if not path or not isinstance(value, dict | list) or not value:
        return other
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = replaced(value[key], path[1:], other)
    return copy


@given(_PLACES, _JSON)
def test_document_without_problems_is_a_pack(path: list[int], other: Any) -> None:
    document = replaced(_PACK, path, other)
    problems = problems_of(document)
    assert all("\n" not in str(problem) for problem in problems)
    if not problems:
        DomainPack.model_validate(document)


@given(st.text(max_size=200) | _JSON.map(json.dumps))
def test_file_gives_problems_or_a_pack(text: str) -> None:
    examined = unpacked(text, name="x.json")
    assert (examined.pack is None) == bool(examined.problems)


@given(st.dictionaries(st.sampled_from([*_SCHEMA["properties"], "other"]), _JSON, max_size=4))
def test_profile_gives_lines_that_name_a_field(profile: dict[str, Any]) -> None:
    for line in profile_problems(_SCHEMA, profile):
        assert line.startswith("profile")
        assert "\n" not in line


_OBJECT = st.dictionaries(st.sampled_from("abc"), _JSON, max_size=3)


@given(_OBJECT, _OBJECT)
def test_merging_keeps_every_key_and_is_idempotent(base: dict[str, Any], own: dict[str, Any]) -> None:
    merged = merge(base, own)
    assert set(merged) == set(base) | set(own)
    assert merge(merged, own) == merged
    assert merge(base, {}) == base
