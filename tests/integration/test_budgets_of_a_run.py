"""A run within its budgets: it explores with a part, analyses what it saw with the rest, and ends so that more can be granted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_core.model.run import RunStatus
from assay_core.store.client import Store
from assay_core.store.control import resume_run
from tests.integration.discovery import Bench, open_bench
from tests.integration.test_litellm_run import TOKENS_IN, TOKENS_OUT, as_scout, layers
from tests.openai_server import OpenAiServer, serving

A_CALL = TOKENS_IN + TOKENS_OUT
QUALITY = ("--areas", "data_quality")


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with serving(as_scout) as opened:
        yield opened


@pytest.fixture
def bench(store: Store, tmp_path: Path, server: OpenAiServer) -> Iterator[Bench]:
    opened = open_bench(store, tmp_path / "home", **layers(server.url, default="gpt-4o-mini"))
    with opened.resources:
        yield opened


def spent(bench: Bench, run: Any) -> int:
    return sum((usage.input_tokens or 0) + (usage.output_tokens or 0) for usage in bench.read(run).usage)


def test_run_stops_exploring_in_time_to_analyse_what_it_saw(bench: Bench, server: OpenAiServer) -> None:
    run = bench.new_run()
    limit = 60_000
    assert bench.go(run, *QUALITY, "--max-tokens", str(limit), "--max-steps", "60") == 0
    result = bench.result(run)
    explored = sum("Task: exploration" in str(request["messages"]) for request in server.requests)
    assert result.insights
    assert result.total_steps == explored
    assert spent(bench, run) == A_CALL * len(server.requests) <= limit
    assert bench.read(run).budget == {"tokens": limit}


def test_budget_that_holds_no_call_ends_before_the_first_and_names_its_flag(
    bench: Bench, server: OpenAiServer
) -> None:
    run = bench.new_run()
    assert bench.go(run, *QUALITY, "--max-cost-usd", "0.0001") == 12
    stored = bench.read(run)
    assert stored.status is RunStatus.FAILED
    assert "--max-cost-usd" in str(stored.error)
    assert server.requests == []


def test_more_is_granted_on_resume_and_what_was_spent_still_counts(
    bench: Bench, server: OpenAiServer
) -> None:
    run = bench.new_run()
    assert bench.go(run, *QUALITY, "--max-tokens", "13000", "--max-steps", "60") == 12
    first = len(server.requests)
    assert bench.read(run).status is RunStatus.FAILED
    assert spent(bench, run) == A_CALL * first
    resumed = resume_run(bench.store, run.id)
    assert (
        bench.go(
            resumed, *QUALITY, "--attempt", "2", "--resume", "--max-tokens", "200000", "--max-steps", "8"
        )
        == 0
    )
    assert spent(bench, run) == A_CALL * len(server.requests)
    assert len(server.requests) > first


def test_rows_are_cut_to_what_is_left(bench: Bench) -> None:
    run = bench.new_run()
    assert bench.go(run, *QUALITY, "--max-rows", "5", "--max-steps", "12") == 0
    assert bench.read(run).rows_read <= 5
    assert bench.result(run).total_steps < 12


@pytest.mark.parametrize("value", ["0", "-5", "many", "nan", "1e30"])
def test_wrong_budget_is_one_line(bench: Bench, capsys: pytest.CaptureFixture[str], value: str) -> None:
    run = bench.new_run()
    assert bench.go(run, f"--max-tokens={value}") == 10
    said = capsys.readouterr().err
    assert "--max-tokens" in said
    assert said.count("\n") == 1
