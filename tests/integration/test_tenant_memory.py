"""Runs of one project for two tenants: nothing that one found, and nothing said of it, reaches a run for the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_agent.context import StopSignal
from assay_core.model.discovery import DiscoveryResult
from assay_core.model.feedback import Feedback
from assay_core.model.project import tenant_of
from assay_core.store.client import Store
from tests.builders import NOON
from tests.integration.discovery import DONE, Bench, an_insight, insights, open_bench, recommendations, whole

QUALITY = ("--areas", "data_quality")
ADVICE = {"description": "d", "priority": 1, "actions": ["a"], "related_insight_ids": ["data_quality-1"]}


@pytest.fixture
def bench(store: Store, tmp_path: Path) -> Iterator[Bench]:
    opened = open_bench(store, tmp_path / "home")
    with opened.resources:
        yield opened


def see(bench: Bench, customer: str | None) -> None:
    """The project is edited to show one customer, or all."""
    [source] = bench.project.datasources
    fields = {"filter_field": customer and "customer_id", "filter_value": customer}
    bench.project = bench.project.model_copy(update={"datasources": [source.model_copy(update=fields)]})
    bench.store.projects.upsert(bench.project)


def explored(bench: Bench, customer: str | None, *, finding: str) -> tuple[DiscoveryResult, str]:
    """One run that finds `finding` and is disliked and liked for it; the result, and every prompt that it sent."""
    see(bench, customer)
    said = an_insight(name=f"{finding}: {{{{f1}}}} of orders", description=f"**{{{{f1}}}}** {finding}")
    model = bench.script(
        whole(
            analysis=[insights(said)],
            recommendations=[recommendations({**ADVICE, "title": f"Act {finding}"})],
        )
    )
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 0
    result = bench.result(run)
    for number, (rating, target) in enumerate((("dislike", "insight"), ("like", "recommendation"))):
        bench.store.feedback.put(
            Feedback.model_validate(
                {
                    "id": f"{run.id}-{number}",
                    "project_id": bench.project.id,
                    "discovery_id": result.id,
                    "tenant": result.tenant,
                    "target_type": target,
                    "target_id": f"{finding}-{number}",
                    "target_title": f"judged {finding}",
                    "rating": rating,
                    "comment": f"comment {finding}",
                    "created_at": NOON,
                }
            )
        )
    prompts = "\n".join(message.content for request in model.requests for message in request.messages)
    # What the script itself says of this run is no memory.
    return result, prompts.split("Found before", 1)[-1] if "Found before" in prompts else ""


def test_memory_of_one_tenant_never_reaches_another(bench: Bench) -> None:
    _, first = explored(bench, "3", finding="ALPHA")
    _, second = explored(bench, "4", finding="BETA")
    _, third = explored(bench, None, finding="GAMMA")
    assert first == second == third == ""
    _, again = explored(bench, "3", finding="ALPHA")
    assert "ALPHA" in again
    assert "comment ALPHA" in again
    assert "BETA" not in again
    assert "GAMMA" not in again
    _, whole_again = explored(bench, None, finding="GAMMA")
    assert "GAMMA" in whole_again
    assert "ALPHA" not in whole_again
    assert "BETA" not in whole_again


def test_each_tenant_has_a_memory_of_its_own_and_its_statements(bench: Bench) -> None:
    results = [explored(bench, customer, finding="X")[0] for customer in ("3", "4", "3")]
    keys = [result.tenant for result in results]
    assert (
        keys[0]
        == keys[2]
        == tenant_of(
            [
                bench.project.datasources[0].model_copy(
                    update={"filter_field": "customer_id", "filter_value": "3"}
                )
            ]
        )
    )
    memory = bench.store.memory
    assert [memory.get(bench.project.id, key).total_discoveries for key in keys[:2]] == [2, 1]
    assert memory.get(bench.project.id).total_discoveries == 0
    assert all("= 3" in text for text in memory.get(bench.project.id, keys[0]).successful_queries)
    assert all("= 4" in text for text in memory.get(bench.project.id, keys[1]).successful_queries)


def test_a_finding_repeats_only_one_of_the_same_tenant(bench: Bench) -> None:
    first, _ = explored(bench, "3", finding="SAME")
    other, _ = explored(bench, "4", finding="SAME")
    again, _ = explored(bench, "3", finding="SAME")
    repeats = [
        bench.store.discoveries.insights(result.id)[0].duplicate_of for result in (first, other, again)
    ]
    assert repeats == [None, None, first.insights[0].id]


def test_resume_under_another_filter_is_refused(bench: Bench) -> None:
    see(bench, "3")
    bench.progress.on_step = lambda row: bench.stop.request(143) if row.step_num == 2 else None
    bench.script(whole())
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 143
    bench.stop = StopSignal()
    assert bench.store.runs.resume(run.id, attempt=1) is not None
    see(bench, "4")
    model = bench.script(whole(exploration=[DONE]))
    assert bench.go(run, *QUALITY, "--attempt", "2", "--resume") == 10
    assert "began with another tenant filter" in str(bench.read(run).error)
    assert model.requests == []
    see(bench, "3")
    assert bench.store.runs.resume(run.id, attempt=2) is not None
    assert bench.go(run, *QUALITY, "--attempt", "3", "--resume") == 0


def test_deleting_the_project_takes_every_tenants_memory(bench: Bench) -> None:
    for customer in ("3", None):
        explored(bench, customer, finding="X")
    bench.store.projects.delete(bench.project.id)
    left = bench.store.database["project_context"].count_documents({"project_id": bench.project.id})
    assert left == 0
