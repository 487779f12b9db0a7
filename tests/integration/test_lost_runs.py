"""What an attempt does that has lost its run, and what a run does without its vector store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_agent.adapters.hashing import HashEmbedder
from assay_core.errors import TransientError
from assay_core.model.run import DiscoveryRun, RunStatus
from assay_core.model.step import StepAction
from assay_core.store import names
from assay_core.store.client import Store
from assay_core.store.control import cancel_run, resume_run
from assay_core.vectors import names as vector_names
from tests.integration.discovery import DONE, LOOKUP, SHARE, Bench, an_insight, insights, open_bench, whole

QUALITY = ("--areas", "data_quality")


@pytest.fixture
def bench(store: Store, tmp_path: Path) -> Iterator[Bench]:
    opened = open_bench(store, tmp_path / "home")
    with opened.resources:
        yield opened


class Gone:
    """A vector store that nobody answers for."""

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any, **__: Any) -> None:
            raise TransientError("the vector store does not answer", dependency="vectors")

        return fail


def rows_left(bench: Bench, run: DiscoveryRun) -> dict[str, int]:
    database = bench.store.database
    watched = (names.DISCOVERIES, *names.LOGS, names.CHECKPOINTS, names.AREA_CHECKPOINTS, *names.STANDALONE)
    counted = {name: database[name].count_documents({"run_id": run.id}) for name in watched}
    return {name: count for name, count in counted.items() if count}


def test_cancel_while_the_result_is_indexed_leaves_nothing_of_it(bench: Bench) -> None:
    bench.script(whole())
    run = bench.new_run()
    findings = vector_names.findings(HashEmbedder().dimensions)

    def cancel() -> None:
        cancel_run(bench.store, run.id, drop_vectors=lambda _: None)

    inner = bench.vectors

    class CancelsAtTheEnd:
        """Cancels once the findings are being written, which is after the save."""

        def __getattr__(self, name: str) -> Any:
            if name == "upsert":

                def upsert(collection: str, points: Any) -> None:
                    inner.upsert(collection, points)
                    if collection == findings:
                        cancel()

                return upsert
            return getattr(inner, name)

    bench.vectors = CancelsAtTheEnd()
    assert bench.go(run, *QUALITY) == 13
    assert bench.read(run).status is RunStatus.CANCELLED
    assert rows_left(bench, run) == {}
    assert inner.count(findings) == 0
    assert vector_names.run(run.id) not in inner.collections()


def test_run_that_was_only_marked_failed_keeps_the_result_its_agent_saved(bench: Bench) -> None:
    bench.script(whole())
    run = bench.new_run()

    def mark_failed() -> None:
        owner = bench.read(run).owner
        assert bench.store.runs.fail_unowned(run.id, attempt=1, owner=owner, reason="swept")

    inner = bench.vectors

    class FailsAtTheEnd:
        def __getattr__(self, name: str) -> Any:
            if name == "drop" and bench.store.discoveries.of_run(run.id):
                mark_failed()
            return getattr(inner, name)

    bench.vectors = FailsAtTheEnd()
    assert bench.go(run, *QUALITY) == 13
    assert bench.read(run).status is RunStatus.FAILED
    assert len(bench.store.discoveries.of_run(run.id)) == 1
    assert len(bench.store.checkpoints.steps(run.id)) == 4


def test_stale_attempt_that_saves_late_retires_its_own_result(bench: Bench, tmp_path: Path) -> None:
    """The old agent saves after the new one has completed: one result survives, the new one's."""
    run = bench.new_run()
    other = open_second(bench)

    def overtaken() -> None:
        owner = bench.read(run).owner
        bench.store.runs.fail_unowned(run.id, attempt=1, owner=owner, reason="swept")
        resumed = resume_run(bench.store, run.id)
        other.script(whole(exploration=[], analysis=[insights(an_insight())]))
        assert other.go(resumed, *QUALITY, "--attempt", "2", "--resume") == 0

    save = bench.store.discoveries.save

    def save_late(*args: Any, **named: Any) -> None:
        bench.store.discoveries.save = save  # type: ignore[method-assign]  # only the first save is late
        overtaken()
        save(*args, **named)

    bench.script(whole())
    bench.store.discoveries.save = save_late  # type: ignore[method-assign]  # a pause between the mark and the write
    assert bench.go(run, *QUALITY) == 13
    [survivor] = bench.store.database[names.DISCOVERIES].find({"run_id": run.id})
    assert survivor["attempt"] == 2
    assert bench.read(run).discovery_id == str(survivor["_id"])
    assert bench.read(run).status is RunStatus.COMPLETED


def open_second(bench: Bench) -> Bench:
    """The same project and stores, as another process would see them."""
    return Bench(
        store=bench.store,
        home=bench.home,
        project=bench.project,
        resources=bench.resources,
        vectors=bench.vectors,
    )


def test_without_a_vector_store_the_run_completes_with_the_same_findings(bench: Bench) -> None:
    bench.script(whole())
    calm = bench.new_run()
    assert bench.go(calm, *QUALITY) == 0
    bench.store.database[names.SCHEMA_CACHE].delete_many({"project_id": bench.project.id})
    bench.vectors = Gone()
    bench.script(whole())
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 0
    [one], [other] = bench.result(calm).insights, bench.result(run).insights
    assert (one.name, one.source_steps) == (other.name, other.source_steps)
    steps = [bench.store.discoveries.logs(bench.result(it).id).analysis[0].picked_steps for it in (calm, run)]
    assert steps[0] == steps[1]
    assert any("vector store" in note for note in bench.progress.notes)


def test_search_without_a_vector_store_is_told_to_the_model(bench: Bench) -> None:
    search = '{"search_tables": "orders of customers"}'
    model = bench.script(whole(exploration=[search, LOOKUP, SHARE, DONE]))
    bench.vectors = Gone()
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 0
    told = model.requests[1].messages[-1].content
    assert "not available now" in told
    actions = [step.action for step in bench.store.discoveries.logs(bench.result(run).id).exploration]
    assert actions[0] is StepAction.SEARCH_TABLES
