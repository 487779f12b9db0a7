"""What is gone for a while, and what the run does: it waits, or ends so that it can go on, and loses nothing that was written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay_agent import plugins
from assay_agent.ports import MiddlewareContext, QueryLimits, QueryResult, Warehouse
from assay_agent.settings import AgentSettings
from assay_agent.sql import query as query_module
from assay_core.errors import TransientError
from assay_core.model.run import RunStatus
from assay_core.store.client import Store
from assay_core.store.control import resume_run
from tests.integration.discovery import DONE, LOOKUP, SHARE, Bench, an_insight, insights, open_bench, whole
from tests.relay import Relay, over, relay_to

QUALITY = ("--areas", "data_quality")
_drops: dict[str, int] = {}


class DroppingWarehouse:
    """A connection that drops at the next so many statements."""

    def __init__(self, inner: Warehouse, context: MiddlewareContext) -> None:
        self._inner, self._project = inner, context.project_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def execute(self, sql: str, *, limits: QueryLimits) -> QueryResult:
        if _drops.get(self._project, 0) > 0:
            _drops[self._project] -= 1
            raise TransientError("the connection was closed by the server", dependency="warehouse")
        return self._inner.execute(sql, limits=limits)


if ("warehouse_middleware", "dropping") not in plugins._registered:
    plugins.register("warehouse_middleware", "dropping", DroppingWarehouse)


@pytest.fixture
def line(mongo_uri: str) -> Iterator[Relay]:
    relay = relay_to(mongo_uri)
    yield relay
    relay.close()


@contextmanager
def opened(store: Store, home: Path) -> Iterator[Bench]:
    bench = open_bench(store, home)
    with bench.resources:
        yield bench


def dropping() -> AgentSettings:
    return AgentSettings.load().model_copy(update={"assay_warehouse_middleware": "dropping"})


@pytest.mark.parametrize(("step", "outage_s"), [(1, 3.0), (3, 30.0)])
def test_run_waits_for_a_document_store_that_comes_back(
    store: Store, line: Relay, tmp_path: Path, step: int, outage_s: float
) -> None:
    with over(line, store) as far, opened(far, tmp_path / "home") as bench:
        bench.script(whole())
        run = bench.new_run()

        def cut(row: Any) -> None:
            if row.step_num == step and row.phase == "exploration":
                line.cut()
                threading.Timer(outage_s, line.mend).start()

        bench.progress.on_step = cut
        assert bench.go(run, *QUALITY) == 0
        result = bench.result(run)
        logs = far.discoveries.logs(result.id)
        assert [entry.step for entry in logs.exploration] == [1, 2, 3, 4]
        assert [row.step_num for row in far.feed.rows(run.id, attempt=1) if row.step_num] == [1, 2, 3, 4]
        assert bench.read(run).total_queries == 2
        assert [insight.name for insight in result.insights] == ["20.0% of orders have no amount"]


def test_dropped_warehouse_connection_is_tried_again_and_costs_no_repair(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_module, "BACKOFF_S", 0.01)
    with opened(store, tmp_path / "home") as bench:
        model = bench.script(whole())
        _drops[bench.project.id] = query_module.WAREHOUSE_TRIES - 1
        run = bench.new_run()
        assert bench.go(run, *QUALITY, settings=dropping()) == 0
        steps = store.discoveries.logs(bench.result(run).id).exploration
        assert [step.error for step in steps] == [None] * 4
        assert {request.layer for request in model.requests} == {"exploration", "analysis", "recommendations"}


def test_warehouse_that_stays_away_is_infrastructure_and_the_run_goes_on_later(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_module, "BACKOFF_S", 0.01)
    with opened(store, tmp_path / "home") as bench:
        bench.script(whole())
        _drops[bench.project.id] = 100
        run = bench.new_run()
        assert bench.go(run, *QUALITY, settings=dropping()) == 11
        [outcome] = store.outcomes.of_run(run.id)
        assert (outcome.class_, outcome.resumable) == ("Infrastructure", True)
        assert "warehouse" in outcome.reason.lower() or "connection was closed" in outcome.message
        assert bench.read(run).status is RunStatus.FAILED
        _drops[bench.project.id] = 0
        bench.script(whole(exploration=[SHARE, DONE]))
        resumed = resume_run(store, run.id)
        assert bench.go(resumed, *QUALITY, "--attempt", "2", "--resume", settings=dropping()) == 0
        assert [insight.name for insight in bench.result(run).insights] == ["20.0% of orders have no amount"]


def test_model_that_is_busy_for_minutes_ends_the_run_as_infrastructure_and_nothing_is_lost(
    store: Store, tmp_path: Path
) -> None:
    busy = TransientError("the model answers 429, too many requests", dependency="model", retry_after_s=60)
    with opened(store, tmp_path / "home") as bench:
        bench.script(whole(exploration=[LOOKUP, SHARE, busy]))
        run = bench.new_run()
        assert bench.go(run, *QUALITY) == 11
        [outcome] = store.outcomes.of_run(run.id)
        assert (outcome.class_, outcome.resumable) == ("Infrastructure", True)
        assert [row.step_number for row in store.checkpoints.steps(run.id)] == [1, 2]
        model = bench.script(whole(exploration=[DONE]))
        resumed = resume_run(store, run.id)
        assert bench.go(resumed, *QUALITY, "--attempt", "2", "--resume") == 0
        assert [request.layer for request in model.requests].count("exploration") == 1
        assert bench.read(run).active_ms > 0


def test_deadline_in_the_analysis_leaves_the_areas_left_unmarked_and_a_resume_finishes_them(
    store: Store, tmp_path: Path
) -> None:
    """One area is done when the time is over: it is restored with fresh ids, and the other is analysed."""
    areas = ("--areas", "data_quality,trends")
    settings = AgentSettings.load().model_copy(update={"assay_area_threads": 1})
    with opened(store, tmp_path / "home") as bench:

        def late(request: Any) -> str:
            if "Area: trends" in request.messages[-1].content:
                bench.stop.request(143)
            return insights(an_insight())

        bench.script(whole(analysis=[late, late]))
        run = bench.new_run()
        assert bench.go(run, *areas, settings=settings) in (12, 143)
        [kept] = [row for row in store.checkpoints.areas(run.id) if row.area_id == "data_quality"]
        bench.stop = replace(bench.stop, exit_code=None, _event=threading.Event())
        model = bench.script(whole(exploration=[], analysis=[insights(an_insight(name="orders grow"))]))
        resumed = resume_run(store, run.id)
        assert bench.go(resumed, *areas, "--attempt", "2", "--resume", settings=settings) == 0
        asked = [request.layer for request in model.requests]
        assert "exploration" not in asked
        result = bench.result(run)
        restored = next(insight for insight in result.insights if insight.analysis_area == "data_quality")
        assert restored.id != kept.insights[0].id
        advice = next(request for request in model.requests if request.layer == "recommendations")
        assert restored.id in advice.messages[-1].content
        assert kept.insights[0].id not in advice.messages[-1].content
        assert any("already complete" in note for note in bench.progress.notes)
