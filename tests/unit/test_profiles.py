"""A project's profile against its pack's schema: one line that names the field and what would be right."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from assay_agent.packs import Shelf, check_profile, merged_schema, profile_problems
from assay_agent.packs.profiles import merge
from assay_core.errors import ConfigError
from assay_core.model.project import Project

SHELF = Shelf(system_test=True)
CASES = [(name, category.id) for name in SHELF.folders() for category in SHELF.load(name).categories]


@pytest.mark.parametrize(("name", "category"), CASES)
def test_merged_schemas_are_schemas_and_take_an_empty_profile(name: str, category: str) -> None:
    schema = merged_schema(SHELF.load(name), category)
    Draft202012Validator.check_schema(schema)
    assert profile_problems(schema, {}) == []


def test_category_adds_its_fields_to_the_base() -> None:
    pack = SHELF.load("gaming")
    fields = merged_schema(pack, "match3")["properties"]
    assert {"basic_info", "kpis", "progression", "boosters"} <= set(fields)
    assert "ads" not in fields
    assert profile_problems(merged_schema(pack, "match3"), {"boosters": ["hammer"], "kpis": {"dau": 5}}) == []


def test_merging_joins_required_and_replaces_the_rest() -> None:
    base = {"required": ["a"], "properties": {"a": {"type": "string", "minLength": 1}}, "title": "base"}
    own = {"required": ["b", "a"], "properties": {"a": {"minLength": 2}, "b": {}}, "title": "own"}
    assert merge(base, own) == {
        "required": ["a", "b"],
        "properties": {"a": {"type": "string", "minLength": 2}, "b": {}},
        "title": "own",
    }


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        (
            {"kpis": {"retention_d1": 40}},
            "profile.kpis.retention_d1 must be at least 0 and at most 1, not 40 (Target share, from 0 to 1)",
        ),
        (
            {"kpis": {"retention_d": 0.4}},
            "profile.kpis.retention_d is unknown; did you mean retention_d7? known: arpu, dau,",
        ),
        ({"kpis": "high"}, "profile.kpis must be an object, not 'high'"),
        (
            {"monetization": {"model": "free"}},
            "profile.monetization.model must be one of iap, ads, hybrid, subscription, premium, not 'free'",
        ),
        (
            {"monetization": {"reporting_currency": "usd"}},
            "profile.monetization.reporting_currency must match ^[A-Z]{3}$, not 'usd'",
        ),
        (
            {"basic_info": {"platforms": ["ios", "palm"]}},
            "profile.basic_info.platforms.1 must be one of ios, android,",
        ),
        (
            {"basic_info": {"launched_on": "spring"}},
            "profile.basic_info.launched_on must be a date, not 'spring'",
        ),
        ({"live_ops": {"releases": [{"version": "2.0"}]}}, "profile.live_ops.releases.0.on is missing"),
        ({"gameplay": {"round_length_s": 0}}, "profile.gameplay.round_length_s must be above 0, not 0"),
        ({"lootboxes": "no"}, "profile.lootboxes must be a boolean, not 'no' (Whether chance is sold)"),
    ],
)
def test_wrong_field_is_named_with_what_would_be_right(profile: dict[str, Any], says: str) -> None:
    problems = profile_problems(merged_schema(SHELF.load("gaming"), "match3"), profile)
    assert len(problems) == 1
    assert problems[0].startswith(says), problems
    assert "\n" not in problems[0]


def test_many_problems_are_still_one_line() -> None:
    project = Project(id="p", domain="gaming", category="idle", profile=dict.fromkeys("abcdef", 1))
    with pytest.raises(ConfigError) as caught:
        check_profile(SHELF.load("gaming"), "idle", project)
    assert str(caught.value).startswith("profile.a is unknown; known: ")
    assert str(caught.value).endswith("(and 3 more); see `assay packs show gaming`")
    assert "\n" not in str(caught.value)


def test_pack_without_schema_takes_any_profile() -> None:
    assert profile_problems({}, {"anything": [1]}) == []
