"""Whole runs: what is stored, how they end, and what bad models do to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_agent.context import StopSignal
from assay_agent.ports import Completion
from assay_agent.settings import AgentSettings
from assay_core.errors import TransientError
from assay_core.model.run import RunStatus
from assay_core.model.step import StepAction
from assay_core.store.client import Store
from tests.integration.discovery import (
    A_RECOMMENDATION,
    DONE,
    LOOKUP,
    SHARE,
    SHARE_SQL,
    Bench,
    Quiet,
    an_insight,
    insights,
    open_bench,
    query,
    recommendations,
    turn,
    whole,
)

QUALITY = ("--areas", "data_quality")


@pytest.fixture
def bench(store: Store, tmp_path: Path) -> Iterator[Bench]:
    opened = open_bench(store, tmp_path / "home")
    with opened.resources:
        yield opened


def outcome(bench: Bench, run: Any) -> Any:
    [found] = bench.store.outcomes.of_run(run.id)
    return found


def test_whole_run_stores_a_discovery_with_checked_figures_and_linked_advice(bench: Bench) -> None:
    bench.script(whole())
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 0
    result = bench.result(run)
    [insight] = result.insights
    assert insight.name == "20.0% of orders have no amount"
    assert insight.description == "20.0% of 100 orders have no amount."
    assert insight.description_md == "**20.0%** of 100 orders have no amount."
    assert insight.slug == "data_quality-1"
    assert all(figure.checked for figure in insight.figures)
    assert insight.validation is not None
    assert insight.validation.combined == "validation_disabled"
    [advice] = result.recommendations
    assert advice.related_insight_ids == [insight.id]
    assert (advice.priority, advice.actions) == (2, ["look", "mend"])
    assert advice.expected_impact.reasoning == "cleaner sums"
    assert (result.run_type, result.total_steps, result.summary.queries_executed) == ("partial", 4, 2)
    stored = bench.read(run)
    assert (stored.status, stored.progress, stored.phase) == (RunStatus.COMPLETED, 100, "complete")
    assert (stored.total_queries, stored.insights_found, stored.last_checkpoint_step) == (2, 1, 0)
    assert stored.lifecycle[-1].llm_model == bench.project.id
    assert outcome(bench, run).discovery_id == result.id


def test_all_areas_make_a_full_run_and_split_logs_hold_every_step(bench: Bench) -> None:
    bench.script(whole(analysis=[insights(an_insight())]), repeat_last=True)
    run = bench.new_run()
    assert bench.go(run) == 0
    result = bench.result(run)
    logs = bench.store.discoveries.logs(result.id)
    assert result.run_type == "full"
    assert [step.step for step in logs.exploration] == [1, 2, 3, 4]
    assert [step.area_id for step in logs.analysis] == [
        "data_quality",
        "trends",
        "concentration",
        "anomalies",
        "relationships",
    ]
    assert logs.recommendation is not None
    assert "insights" not in (bench.store.discoveries.raw(result.id) or {}).get("exploration_log", {})


def test_checkpoints_are_kept_while_running_and_gone_after_completion(bench: Bench) -> None:
    seen: list[int] = []
    run = bench.new_run()
    bench.progress.on_step = lambda row: (
        seen.append(len(bench.store.checkpoints.steps(run.id))) if row.step_num else None
    )
    bench.script(whole())
    bench.go(run, *QUALITY)
    assert seen == [1, 2, 3, 4]
    assert bench.store.checkpoints.steps(run.id) == []
    assert bench.store.checkpoints.summary(run.id) is None
    assert not [name for name in bench.vectors.collections() if run.id[:8] in name]


def test_feed_rows_carry_the_attempt_in_order(bench: Bench) -> None:
    bench.script(whole())
    run = bench.new_run()
    bench.go(run, *QUALITY)
    rows = bench.store.feed.rows(run.id, attempt=1)
    assert [row.type for row in rows] == [
        "lookup_schema",
        "query",
        "query",
        "complete",
        "analysis",
        "insight",
        "recommendation",
    ]
    assert bench.store.feed.rows(run.id, attempt=2) == []


def test_prose_is_nudged_and_then_taken(bench: Bench) -> None:
    model = bench.script(whole(exploration=["I am done.", '{"plan": 1}', LOOKUP, SHARE, DONE]))
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 0
    nudges = [
        request.messages[-1].content
        for request in model.requests
        if "could not be used" in request.messages[-1].content
    ]
    assert len(nudges) == 2
    assert "prose" in nudges[0].lower()
    tokens = bench.store.discoveries.logs(bench.result(run).id).exploration[0].tokens_in or 0
    assert tokens > 0


def test_model_that_only_writes_prose_fails_the_run_as_a_choice_of_model(bench: Bench) -> None:
    bench.script({"exploration": ["I am done."]}, repeat_last=True)
    run = bench.new_run()
    assert bench.go(run) == 10
    assert outcome(bench, run).reason == "ModelUnusable"
    assert bench.read(run).status is RunStatus.FAILED
    assert "4 tries" in str(bench.read(run).error)


def test_refusal_ends_the_run_at_once_without_asking_again(bench: Bench) -> None:
    model = bench.script({"exploration": [Completion(text="", finish="refusal")]})
    run = bench.new_run()
    assert bench.go(run) == 10
    assert outcome(bench, run).reason == "ModelRefused"
    assert len(model.requests) == 1


def test_truncated_reply_raises_the_output_budget_once(bench: Bench) -> None:
    model = bench.script(
        whole(exploration=[Completion(text='{"query": "SEL', finish="length"), LOOKUP, SHARE, DONE])
    )
    assert bench.go(bench.new_run(), *QUALITY) == 0
    assert [request.max_output_tokens for request in model.requests[:2]] == [4096, 16384]


def test_early_done_is_refused_until_the_floor(bench: Bench) -> None:
    bench.script(whole(exploration=[DONE, LOOKUP, SHARE, DONE]))
    run = bench.new_run()
    assert bench.go(run, *QUALITY, "--min-steps", "4") == 0
    steps = bench.store.discoveries.logs(bench.result(run).id).exploration
    assert [step.action for step in steps] == [
        StepAction.COMPLETE_REJECTED,
        StepAction.LOOKUP_SCHEMA,
        StepAction.QUERY_DATA,
        StepAction.COMPLETE,
    ]


def test_steps_run_out_and_the_run_still_completes(bench: Bench) -> None:
    bench.script(whole(exploration=[SHARE]), repeat_last=True)
    run = bench.new_run()
    assert bench.go(run, *QUALITY, "--max-steps", "3") == 0
    assert bench.result(run).total_steps == 3


def test_failing_statement_is_repaired_and_both_statements_are_kept(bench: Bench) -> None:
    good = "SELECT count(*) AS n FROM main.orders"
    bench.script(
        whole(exploration=[query("SELECT nope FROM main.orders"), DONE], sql_fix=[f"```sql\n{good}\n```"])
    )
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 0
    step = bench.store.discoveries.logs(bench.result(run).id).exploration[0]
    assert (step.fixed, step.fix_attempts, step.row_count) == (True, 1, 1)
    assert step.query == "SELECT nope FROM main.orders"
    assert "COUNT(*)" in str(step.query_executed).upper()
    assert step.fix_history[0].error_in


def test_write_statement_is_refused_and_recorded(bench: Bench) -> None:
    bench.script(whole(exploration=[query("DROP TABLE orders"), DONE], sql_fix=["no idea"] * 5))
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 0
    step = bench.store.discoveries.logs(bench.result(run).id).exploration[0]
    assert step.error is not None
    assert step.row_count == 0


def test_failed_area_is_named_and_the_others_survive(bench: Bench) -> None:
    def by_area(request: Any) -> str:
        text = request.messages[0].content
        return "nothing readable" if "Area: trends" in text else insights(an_insight())

    bench.script(whole(analysis=[by_area]), repeat_last=True)
    run = bench.new_run()
    assert bench.go(run, "--areas", "data_quality,trends") == 0
    result = bench.result(run)
    assert result.run_type == "partial"
    assert [error.split(":")[0] for error in result.summary.errors] == ["trends"]
    assert {insight.analysis_area for insight in result.insights} == {"data_quality"}


def test_every_area_failing_is_saved_as_a_failed_result(bench: Bench) -> None:
    bench.script(whole(analysis=["nothing readable"]), repeat_last=True)
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 15
    assert bench.result(run).run_type == "failed"
    assert bench.read(run).status is RunStatus.FAILED
    assert outcome(bench, run).resumable


def test_model_outage_is_infrastructure_and_leaves_the_run_resumable(bench: Bench) -> None:
    outage = TransientError("connection refused", dependency="model")
    bench.script(whole(exploration=[LOOKUP, SHARE, outage]))
    run = bench.new_run()
    assert bench.go(run) == 11
    found = outcome(bench, run)
    assert (found.class_, found.reason, found.resumable) == ("Infrastructure", "ModelUnavailable", True)


def test_outage_during_analysis_fails_the_area_not_the_model(bench: Bench) -> None:
    bench.script(whole(analysis=[TransientError("connection refused", dependency="model")]))
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 15
    assert "connection refused" in bench.result(run).summary.errors[0]


def test_stop_request_ends_with_its_code_and_keeps_the_steps(bench: Bench) -> None:
    bench.progress.on_step = lambda row: bench.stop.request(143) if row.step_num == 2 else None
    bench.script(whole())
    run = bench.new_run()
    assert bench.go(run) == 143
    assert bench.read(run).status is RunStatus.FAILED
    assert [row.step_number for row in bench.store.checkpoints.steps(run.id)] == [1, 2]
    assert (outcome(bench, run).class_, outcome(bench, run).resumable) == ("Interrupted", True)


def test_deadline_saves_what_is_analysed_and_fails_the_run(bench: Bench) -> None:
    settings = AgentSettings.load().model_copy(update={"discovery_max_duration": 1.0})

    def slow(_request: Any) -> str:
        time.sleep(1.2)
        return insights(an_insight())

    bench.script(whole(analysis=[slow]))
    run = bench.new_run()
    assert bench.go(run, *QUALITY, settings=settings) == 12
    assert bench.result(run).run_type == "partial"
    assert len(bench.result(run).insights) == 1
    assert bench.read(run).status is RunStatus.FAILED


def test_second_claim_of_an_attempt_is_refused(bench: Bench) -> None:
    bench.script(whole())
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 0
    assert bench.go(run, *QUALITY) == 13


def test_cancelled_run_stops_at_its_next_step(bench: Bench) -> None:
    run = bench.new_run()
    bench.progress.on_step = lambda row: (
        bench.store.runs.request_cancel(run.id) if row.step_num == 1 else None
    )
    bench.script(whole())
    assert bench.go(run) == 13
    assert bench.read(run).status is RunStatus.CANCELLED
    assert bench.store.discoveries.of_run(run.id) == []


@pytest.mark.parametrize(
    ("item", "counter"),
    [
        ({**A_RECOMMENDATION, "related_insight_ids": []}, "recommendations_dropped_missing_ids"),
        (
            {**A_RECOMMENDATION, "related_insight_ids": ["churn:high:levels"]},
            "recommendations_dropped_unknown_id",
        ),
        ({**A_RECOMMENDATION, "title": ""}, "recommendations_dropped_parse"),
        ({**A_RECOMMENDATION, "title": "Win {{r9}}"}, "recommendations_dropped_unresolved_figures"),
    ],
)
def test_unusable_recommendation_is_dropped_and_counted_by_reason(
    bench: Bench, item: dict[str, Any], counter: str
) -> None:
    bench.script(whole(recommendations=[recommendations(item, A_RECOMMENDATION)]))
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 0
    log = bench.store.discoveries.logs(bench.result(run).id).recommendation
    assert log is not None
    assert (getattr(log, counter), log.recommendations_dropped, log.recommendations_resolved_slugs) == (
        1,
        1,
        1,
    )
    assert len(bench.result(run).recommendations) == 1


def test_without_insights_the_recommender_is_not_asked(bench: Bench) -> None:
    model = bench.script(whole(analysis=[insights()], recommendations=[]))
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 0
    log = bench.store.discoveries.logs(bench.result(run).id).recommendation
    assert log is not None
    assert log.status == "skipped_no_eligible_insights"
    assert all(request.layer != "recommendations" for request in model.requests)


def test_second_run_knows_the_first_and_marks_repeated_findings(bench: Bench) -> None:
    bench.script(whole())
    first = bench.new_run()
    bench.go(first, *QUALITY)
    model = bench.script(whole())
    second = bench.new_run()
    assert bench.go(second, *QUALITY) == 0
    assert "20.0% of orders have no amount" in model.requests[0].messages[0].content
    [standalone] = bench.store.discoveries.insights(bench.result(second).id)
    assert standalone.duplicate_of == bench.result(first).insights[0].id
    memory = bench.store.memory.get(bench.project.id)
    assert memory.historical_patterns[0].times_seen == 2


def test_resumed_run_repeats_no_query_and_continues_at_the_next_step(bench: Bench) -> None:
    bench.progress.on_step = lambda row: bench.stop.request(143) if row.step_num == 2 else None
    bench.script(whole())
    run = bench.new_run()
    assert bench.go(run, *QUALITY) == 143
    bench.stop = StopSignal()
    resumed = bench.store.runs.resume(run.id, attempt=1)
    assert resumed is not None
    model = bench.script(whole(exploration=[DONE]))
    quiet = Quiet()
    assert bench.go(run, *QUALITY, "--attempt", "2", "--resume", progress=quiet) == 0
    assert [row.step_num for row in quiet.rows if row.step_num] == [3]
    first_request = model.requests[0]
    assert "Step 2: ok" in first_request.messages[-1].content
    assert bench.result(run).insights[0].name == "20.0% of orders have no amount"


def test_resume_without_steps_is_refused(bench: Bench) -> None:
    bench.script({"exploration": [TransientError("down", dependency="model")]})
    run = bench.new_run()
    assert bench.go(run) == 11
    assert bench.store.runs.resume(run.id, attempt=1) is not None
    assert bench.go(run, "--attempt", "2", "--resume") == 14


def test_lookups_name_what_is_known_missing_and_left(bench: Bench) -> None:
    lookups = [
        LOOKUP,
        turn(lookup_schema=["ORDERS", "main.customers", "nope"]),
        turn(search_tables="who buys"),
        SHARE,
        DONE,
    ]
    model = bench.script(whole(exploration=lookups))
    assert bench.go(bench.new_run(), *QUALITY) == 0
    second = next(r for r in model.requests if "Already shown above: main.orders" in r.messages[-1].content)
    assert "### main.customers" in second.messages[-1].content
    assert "Not found (search_tables may help): nope" in second.messages[-1].content
    assert "Lookups left: 28." in second.messages[-1].content
    third = next(r for r in model.requests if "Searches left: 29." in r.messages[-1].content)
    assert "1. main." in third.messages[-1].content


def test_wrong_flags_end_with_ten_and_one_line(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    run = bench.new_run()
    assert bench.go(run, "--min-steps", "50") == 10
    assert bench.go(run, "--effort", "heroic") == 10
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("error:")] == [
        "error: --min-steps must be at most --max-steps (20), not 50",
        "error: argument --effort: invalid choice: 'heroic' (choose from 'lower', 'low', 'medium', 'high', 'higher') (see --help)",
    ]


def test_unknown_area_fails_the_run_and_names_the_areas(bench: Bench) -> None:
    bench.script(whole())
    run = bench.new_run()
    assert bench.go(run, "--areas", "churn") == 10
    assert "data_quality" in str(bench.read(run).error)


def test_areas_side_by_side_give_the_same_documents_as_one_after_the_other(bench: Bench) -> None:
    def by_area(request: Any) -> str:
        area = request.messages[0].content.split("Area: ")[1].split()[0]
        time.sleep({"data_quality": 0.3, "trends": 0.1}.get(area, 0.0))
        return insights(an_insight(name=f"{area} {{{{f1}}}}"), an_insight(name=f"{area} second {{{{f2}}}}"))

    told: list[list[tuple[object, ...]]] = []
    for threads in (1, 5):
        steps = [LOOKUP, query(SHARE_SQL, "quality trend share of outlier difference between")]
        bench.script(whole(exploration=[*steps, DONE], analysis=[by_area]), repeat_last=True)
        run = bench.new_run()
        assert (
            bench.go(run, settings=AgentSettings.load().model_copy(update={"assay_area_threads": threads}))
            == 0
        )
        result = bench.result(run)
        rows = bench.store.feed.rows(run.id, attempt=1)
        told.append(
            [(item.slug, item.name, item.description) for item in result.insights]
            + [(row.type, row.message) for row in rows]
            + [
                (step.area_id, step.insight_count)
                for step in bench.store.discoveries.logs(result.id).analysis
            ]
        )
    assert told[0] == told[1]
    assert len(told[0]) > 15
