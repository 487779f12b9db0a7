"""Packs load whole, say what is wrong with them, and are overridden by the project."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from assay_agent.packs import Shelf, examine, selected_areas, templates
from assay_agent.prompts import fill, render
from assay_core.errors import ConfigError
from assay_core.model.project import AreaOverride, Project, ProjectPrompts


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The generic pack under another name, to be broken."""
    target = tmp_path / "packs" / "mine"
    shutil.copytree(Shelf().folders()["generic"], target)
    head = json.loads((target / "pack.json").read_text())
    (target / "pack.json").write_text(json.dumps({**head, "slug": "mine"}))
    return target


def a_project(**fields: object) -> Project:
    return Project.model_validate({"id": "p", "domain": "generic", "category": "tabular", **fields})


def test_every_shipped_pack_is_sound() -> None:
    for name, folder in Shelf(system_test=True).folders().items():
        assert examine(folder).problems == (), name


def test_areas_come_by_priority_and_can_be_chosen() -> None:
    pack = Shelf().load("generic")
    ids = [area.id for area in selected_areas(pack, a_project(), ())]
    assert ids == ["data_quality", "trends", "concentration", "anomalies", "relationships"]
    assert [area.id for area in selected_areas(pack, a_project(), ("trends",))] == ["trends"]


def test_project_overrides_win() -> None:
    pack = Shelf().load("generic")
    prompts = ProjectPrompts(
        exploration="mine {{SCHEMA_INFO}}",
        analysis_areas={
            "trends": AreaOverride(enabled=False),
            "churn": AreaOverride(name="Churn", keywords=["churn"], prompt="{{QUERY_RESULTS}}", priority=0),
            "anomalies": AreaOverride(name="Odd things", priority=1),
        },
    )
    project = a_project(prompts=prompts)
    areas = selected_areas(pack, project, ())
    assert [area.id for area in areas] == [
        "churn",
        "anomalies",
        "data_quality",
        "concentration",
        "relationships",
    ]
    assert areas[1].name == "Odd things"
    assert "QUERY_RESULTS" in areas[1].prompt
    assert templates(pack, project).exploration == "mine {{SCHEMA_INFO}}"


def test_pack_folder_given_from_outside_is_found_by_name(copy: Path) -> None:
    assert Shelf(extra=copy.parent).load("mine").slug == "mine"


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (
            lambda pack: (pack / "prompts/base/exploration.md").unlink(),
            "prompts/base/exploration.md: is missing",
        ),
        (
            lambda pack: (pack / "prompts/base/exploration.md").write_text(
                "hi {{DATASET}} {{ANALYSIS_AREAS}}"
            ),
            "prompts/base/exploration.md: must contain {{SCHEMA_INFO}}",
        ),
        (lambda pack: (pack / "prompts/base/areas.json").write_text("[]"), "must hold a JSON object"),
        (lambda pack: (pack / "prompts/base/areas.json").write_text('{"areas": []}'), "at least one area"),
        (lambda pack: (pack / "pack.json").write_text("{not json"), "is not JSON"),
        (
            lambda pack: (pack / "pack.json").write_text(
                '{"slug": "Bad Slug", "name": "x", "categories": []}'
            ),
            "slug",
        ),
        (
            lambda pack: (pack / "prompts/base/analysis_trends.md").write_text("no results here"),
            "prompts/base/analysis_trends.md: must contain {{QUERY_RESULTS}}",
        ),
        (lambda pack: (pack / "prompts/base/base_context.md").write_bytes(b"\xff\xfe\x00"), "cannot be read"),
    ],
)
def test_broken_pack_is_named_with_its_file(copy: Path, break_it: object, says: str) -> None:
    break_it(copy)  # type: ignore[operator]  # a lambda of the table above
    with pytest.raises(ConfigError, match="domain pack") as caught:
        Shelf(extra=copy.parent).load("mine")
    assert says in str(caught.value)
    assert str(copy.parent) not in str(caught.value)


def test_unknown_pack_area_and_category_name_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"available: .*generic"):
        Shelf().load("gamming")
    with pytest.raises(ConfigError, match="one of pack generic's: tabular"):
        selected_areas(Shelf().load("generic"), a_project(category="x"), ())


def test_values_are_never_substituted_twice_and_figures_pass() -> None:
    assert fill("{{A}} {{f1}} {{B}}", {"A": "{{B}}", "B": "b"}, origin="t") == "{{B}} {{f1}} b"
    with pytest.raises(ConfigError, match="unknown variable C"):
        fill("{{C}}", {"A": ""}, origin="t")
    assert fill("{{REF:main.t}}", {}, origin="t", quote_ref=lambda ref: f'"{ref}"') == '"main.t"'


def test_engine_prompts_refuse_unused_values() -> None:
    with pytest.raises(ConfigError, match="does not use X"):
        render("nudge", REASON="r", ACTION_FORMAT="f", X="x")
