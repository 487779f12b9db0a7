"""Each pack's sample, explored: by the scout, which finds what generic means can find, and by a model that follows a script."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

import pytest

from assay_agent.adapters.samples import SAMPLES
from assay_agent.llm.scripted import Reply
from assay_agent.packs import Shelf, selected_areas
from assay_agent.ports import CompletionRequest
from assay_agent.settings import AgentSettings
from assay_core.model.discovery import DiscoveryResult
from assay_core.model.project import Datasource, LLMConfig, Project
from assay_core.store.client import Store
from tests.integration.discovery import DONE, Bench, open_bench, query, recommendations
from tests.unit.test_samples import FACTS
from tests.warehouses.facts import Fact, asked, warehouse

SHELF = Shelf(system_test=True)
CASES = [(pack, category.id) for pack in FACTS for category in SHELF.load(pack).categories]
SCOUTED: dict[str, DiscoveryResult] = {}
_AREA = re.compile(r"^Area: (\S+)$", re.MULTILINE)


def opened(store: Store, home: Path, pack: str, **project: object) -> Bench:
    source = Datasource(id="default", provider="duckdb", config={"path": str(warehouse(pack))})
    return open_bench(store, home, name=SAMPLES[pack].name, datasources=[source], **project)


@pytest.fixture
def scouted(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> DiscoveryResult:
    """One discovery of 40 steps with the generic pack, made once for each sample."""
    pack: str = request.param
    if pack not in SCOUTED:
        bench = opened(store, tmp_path, pack, llm=LLMConfig(provider="scout"))
        with bench.resources:
            run = bench.new_run()
            assert bench.go(run, "--max-steps", "40") == 0
            SCOUTED[pack] = bench.result(run)
    return SCOUTED[pack]


@pytest.mark.parametrize(
    ("scouted", "fact"),
    [
        pytest.param(pack, fact, id=f"{pack}-{fact.id}")
        for pack, facts in FACTS.items()
        for fact in facts
        if fact.scout
    ],
    indirect=["scouted"],
)
def test_scout_finds_what_was_planted_with_its_numbers(
    request: pytest.FixtureRequest, scouted: DiscoveryResult, fact: Fact
) -> None:
    pack = request.node.callspec.params["scouted"]
    found = [insight for insight in scouted.insights if re.search(str(fact.scout), insight.name)]
    assert found, [insight.name for insight in scouted.insights]
    shown = [figure.computed for figure in found[0].figures] + [found[0].affected_count]
    numbers = [float(value) for value in shown if isinstance(value, int | float)]
    row = asked(pack, fact.sql)
    for column in fact.scout_shows:
        assert any(number == pytest.approx(float(row[column])) for number in numbers), (column, numbers)


@pytest.mark.parametrize("scouted", list(FACTS), indirect=True)
def test_scout_claims_no_number_that_the_rows_do_not_give(scouted: DiscoveryResult) -> None:
    assert scouted.insights
    assert [insight.unchecked_numbers for insight in scouted.insights if insight.unchecked_numbers] == []


def script(
    pack: str, category: str, *, without: Collection[str] = ()
) -> tuple[dict[str, list[Reply]], dict[str, list[Fact]]]:
    """Every fact's query as a step; then, per area, the facts of that area as insights."""
    project = Project(id="p", domain=pack, category=category)
    areas = [area.id for area in selected_areas(SHELF.load(pack), project, ())]
    facts = [fact for fact in FACTS[pack] if set(fact.areas) & set(areas) and fact.id not in without]
    steps = {fact.id: number for number, fact in enumerate(facts, start=1)}
    said = {area: [fact for fact in facts if area in fact.areas] for area in areas}

    def analyse(request: CompletionRequest) -> str:
        area = _AREA.search(request.messages[0].content)
        assert area is not None
        return json.dumps({"insights": [fact.drafted(steps[fact.id]) for fact in said[area.group(1)]]})

    advice = {
        "title": "Act on the first finding",
        "description": "As scripted.",
        "priority": 1,
        "related_insight_ids": [f"{areas[0]}-1"],
        "actions": ["look", "mend"],
    }
    replies: dict[str, list[Reply]] = {
        "exploration": [*(query(" ".join(fact.sql.split()), fact.purpose) for fact in facts), DONE],
        "analysis": [analyse],
        "recommendations": [recommendations(advice)],
    }
    return replies, said


@pytest.mark.parametrize(("pack", "category"), CASES)
def test_scripted_run_ends_as_its_script_says(store: Store, tmp_path: Path, pack: str, category: str) -> None:
    profile = SAMPLES[pack].profile if category == SAMPLES[pack].category else {}
    bench = opened(store, tmp_path, pack, domain=pack, category=category, profile=profile)
    replies, said = script(pack, category)
    with bench.resources:
        bench.script(replies, repeat_last=True)
        run = bench.new_run()
        settings = AgentSettings.load().model_copy(update={"assay_enable_system_test": True})
        assert bench.go(run, "--max-steps", "40", settings=settings) == 0
        result = bench.result(run)
    expected: dict[str, str] = {}
    for area, facts in said.items():
        for fact in facts:  # what two areas tell stands in the first of them
            expected.setdefault(fact.told(asked(pack, fact.sql)), area)
    assert {insight.name: insight.analysis_area for insight in result.insights} == expected
    assert len(result.insights) == len(expected)
    assert all(figure.checked for insight in result.insights for figure in insight.figures)
    assert [item.title for item in result.recommendations] == ["Act on the first finding"]
    logs = store.discoveries.logs(result.id)
    assert [step.area_id for step in logs.analysis] == list(said)
    steps = {step.query_purpose: step.step for step in logs.exploration}
    for analysis in logs.analysis:
        wanted = {steps[fact.purpose] for fact in said[analysis.area_id]}
        assert wanted <= set(analysis.picked_steps), (analysis.area_id, wanted, analysis.picked_steps)


def test_pack_that_is_not_asked_for_is_refused_by_the_run(store: Store, tmp_path: Path) -> None:
    bench = opened(store, tmp_path, "system-test", domain="system-test", category="quick")
    with bench.resources:
        bench.script({"exploration": [DONE]})
        run = bench.new_run()
        assert bench.go(run) == 10
        error = bench.read(run).error
    assert "ASSAY_ENABLE_SYSTEM_TEST=true" in str(error)


def test_imported_pack_is_used_by_a_run(store: Store, tmp_path: Path) -> None:
    pack = SHELF.load("gaming").model_copy(update={"slug": "our-games"})
    assert store.packs.add(pack)
    assert not store.packs.add(pack)
    replies, said = script("gaming", "match3")
    bench = opened(store, tmp_path, "gaming", domain="our-games", category="match3")
    with bench.resources:
        bench.script(replies, repeat_last=True)
        run = bench.new_run()
        assert bench.go(run, "--max-steps", "40", "--areas", "levels") == 0
        assert len(bench.result(run).insights) == len(said["levels"])
