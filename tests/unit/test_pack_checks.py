"""Everything wrong with a pack is named at once, each thing with its file and its place there."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay_agent.discovery import templates as rendering
from assay_agent.packs import Shelf, examine, packed, unpacked, write_skeleton
from assay_agent.packs.checking import EVERYWHERE, OWN
from assay_core.errors import ConfigError

SHELF = Shelf(system_test=True)


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    target = tmp_path / "mine"
    shutil.copytree(SHELF.folders()["gaming"], target)
    return target


def edited(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def said(folder: Path) -> list[str]:
    return [str(problem) for problem in examine(folder).problems]


def set_area(position: int, **fields: Any) -> Callable[[Any], None]:
    return lambda document: document["areas"][position].update(fields)


AREAS = "prompts/base/areas.json"


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        (AREAS, set_area(2, priority="high"), r"prompts/base/areas.json: areas\[2\].priority: .*'high'"),
        (
            AREAS,
            set_area(1, priority=0),
            r"areas.json: areas\[1\].priority: must be a whole number from 1 \(first\) to 1000, not 0",
        ),
        (AREAS, set_area(1, id="churn"), r"areas\[1\].id: area 'churn' is in the base areas already"),
        (
            "prompts/categories/match3/areas.json",
            set_area(0, id="churn"),
            r"prompts/categories/match3/areas.json: areas\[0\].id: area 'churn' is in the base areas already",
        ),
        (AREAS, set_area(0, id="Churn Rate"), r"areas\[0\].id: must match .* not 'Churn Rate'"),
        (AREAS, set_area(0, keywords=[]), r"areas\[0\].keywords: at least one is needed"),
        (
            AREAS,
            set_area(0, keywords=["ok", "Cohort"]),
            r"areas\[0\].keywords\[1\]: must be a lower-case fragment of text, not 'Cohort'",
        ),
        (AREAS, set_area(0, prompt_file="nowhere.md"), r"prompts/base/nowhere.md: is missing"),
        (
            AREAS,
            set_area(0, prompt_file="../../../../etc/passwd"),
            r"areas\[0\].prompt_file: must lie in the pack's own folder",
        ),
        (AREAS, set_area(0, colour="red"), r"areas\[0\].colour: unknown key; known: "),
        (AREAS, lambda document: document["areas"][0].pop("prompt_file"), r"areas\[0\].prompt: is missing"),
        (AREAS, lambda document: document.update(areas={}), r"areas.json: areas: must be a list of areas"),
        (
            "pack.json",
            lambda document: document.update(format_version=2),
            r"pack.json: format_version 2 is newer than this program reads \(1\); update assay",
        ),
        ("pack.json", lambda document: document.update(slug="No Slug"), r"pack.json: slug: must match"),
        ("pack.json", lambda document: document.pop("name"), r"pack.json: name: is missing"),
        ("pack.json", lambda document: document.update(colour="red"), r"pack.json: colour: unknown key"),
        (
            "pack.json",
            lambda document: document["categories"].append({"id": "idle", "name": "Again"}),
            r"pack.json: categories\[1\].id: 'idle' is used 2 times",
        ),
        (
            "pack.json",
            lambda document: document["categories"][0].update(id="../x"),
            r"pack.json: categories\[0\].id: must be lower-case letters",
        ),
        (
            "profiles/schema.json",
            lambda document: document["properties"].update(kpis={"type": "objekt"}),
            r"profiles/schema.json: properties.kpis.type: is no JSON Schema 2020-12",
        ),
        (
            "profiles/categories/idle.json",
            lambda document: document.update(required="kpis"),
            r"profiles/categories/idle.json: required: is no JSON Schema 2020-12",
        ),
        (
            "profiles/schema.json",
            lambda document: document.update({"$schema": "http://json-schema.org/draft-07/schema#"}),
            r"profiles/schema.json: \$schema: must be https://json-schema.org/draft/2020-12/schema",
        ),
    ],
)
def test_problem_names_file_and_place(
    pack: Path, file: str, change: Callable[[Any], None], says: str
) -> None:
    edited(pack / file, change)
    problems = said(pack)
    assert any(re.search(says, problem) for problem in problems), problems
    assert all("\n" not in problem and str(pack.parent) not in problem for problem in problems)


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        (
            "prompts/base/analysis_churn.md",
            "{{QUERY_RESULTS}} {{PROFILE}}",
            "unknown template variable {{PROFILE}}; known here: DATASET,",
        ),
        ("prompts/base/analysis_churn.md", "{{QUERY_RESULTS}} {{dataset}}", "{{dataset}} is no variable"),
        ("prompts/base/base_context.md", "", "must contain {{PROFILE}}"),
        ("prompts/categories/idle/exploration_context.md", "{{QUERY_RESULTS}}", "unknown template variable"),
        ("prompts/base/analysis_spare.md", "x", "no area names this file"),
        ("prompts/base/recommendations.md", "{{INSIGHTS_DATA}}" * 4_000, "is longer than 60000 characters"),
    ],
)
def test_template_problem_names_its_file(pack: Path, file: str, text: str, says: str) -> None:
    (pack / file).write_text(text, encoding="utf-8")
    assert any(problem.startswith(f"{file}: ") and says in problem for problem in said(pack)), said(pack)


def test_every_problem_is_told_in_one_look(pack: Path) -> None:
    (pack / "prompts/base/analysis_churn.md").write_text("{{NOPE}}", encoding="utf-8")
    edited(pack / AREAS, set_area(1, priority=0))
    edited(pack / "profiles/schema.json", lambda document: document.update(type="array"))
    assert len(said(pack)) == 4


def test_figures_and_references_are_no_variables(pack: Path) -> None:
    path = pack / "prompts/base/analysis_churn.md"
    path.write_text("{{QUERY_RESULTS}} write {{f1}} and {{r12}} of {{REF:main.players}}", encoding="utf-8")
    assert said(pack) == []


@pytest.mark.parametrize("name", sorted(SHELF.folders()))
def test_pack_survives_export_and_import(name: str) -> None:
    shipped = SHELF.load(name)
    again = unpacked(packed(shipped), name="file.json")
    assert again.problems == ()
    assert again.pack == shipped


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "x.json: is not JSON"),
        ("[]", "x.json: format: must be 'assay-domain-pack', not None"),
        ('{"format": "other"}', "not 'other'"),
        (
            '{"format": "assay-domain-pack", "format_version": 9, "pack": {"new": 1}}',
            "format_version 9 is newer",
        ),
        ('{"format": "assay-domain-pack", "format_version": 1}', "x.json: pack: must be the pack"),
        (
            '{"format": "assay-domain-pack", "format_version": 1, "pack": {"slug": "ab"}}',
            "x.json: pack.name: is missing",
        ),
    ],
)
def test_file_that_is_no_pack_says_why(text: str, says: str) -> None:
    examined = unpacked(text, name="x.json")
    assert examined.pack is None
    assert any(says in str(problem) for problem in examined.problems), examined.problems


def test_skeleton_is_sound_and_never_overwrites(tmp_path: Path) -> None:
    folder = write_skeleton("my-field", tmp_path)
    assert said(folder) == []
    with pytest.raises(ConfigError, match="is there already"):
        write_skeleton("my-field", tmp_path)
    with pytest.raises(ConfigError, match="not 'My Field'"):
        write_skeleton("My Field", tmp_path)


def test_pack_that_tests_a_system_is_there_only_when_asked_for() -> None:
    assert "system-test" not in Shelf().folders()
    with pytest.raises(ConfigError, match="only with ASSAY_ENABLE_SYSTEM_TEST=true"):
        Shelf().load("system-test")
    assert SHELF.load("system-test").slug == "system-test"


def test_folder_is_looked_at_before_imported_packs(pack: Path) -> None:
    edited(pack / "pack.json", lambda document: document.update(slug="mine"))
    stored = SHELF.load("generic").model_copy(update={"slug": "mine"})
    asked: list[str] = []

    def imported(slug: str) -> Any:
        asked.append(slug)
        return stored if slug in ("mine", "other") else None

    shelf = Shelf(extra=pack.parent, imported=imported, all_imported=lambda: [stored])
    assert shelf.load("mine").name == "Mobile and online games"
    assert asked == []
    assert shelf.load("other") is stored
    assert {item.pack.slug: item.source for item in shelf.all()}["mine"] == "folder"


def test_imported_pack_of_a_newer_format_is_refused_on_one_line() -> None:
    newer = SHELF.load("generic").model_copy(update={"slug": "mine", "format_version": 2})
    with pytest.raises(ConfigError, match=r"^domain pack mine: format_version 2 is newer"):
        Shelf(imported=lambda _slug: newer).load("mine")


def test_known_variables_are_those_that_rendering_gives() -> None:
    source = Path(str(rendering.__file__)).read_text(encoding="utf-8")
    given = set(re.findall(r'"([A-Z][A-Z_]+)":', source))
    assert given == EVERYWHERE.union(*OWN.values())
