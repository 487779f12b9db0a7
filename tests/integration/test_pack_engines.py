"""Each pack's sample on PostgreSQL and on BigQuery's emulator, explored over HTTP by real litellm: found is what DuckDB shows.

The scout is served over the OpenAI protocol; every call is counted, in tokens and in money, to the last one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from assay_core.model.discovery import DiscoveryResult
from assay_core.store.client import Store
from tests.integration.discovery import open_bench
from tests.integration.test_litellm_run import TOKENS_IN, TOKENS_OUT, as_scout, layers
from tests.openai_server import serving
from tests.unit.test_samples import FACTS
from tests.warehouses.engines import stored
from tests.warehouses.facts import Fact, asked

STEPS = {"gaming": 40, "social": 36, "ecommerce": 28, "system-test": 16}
"""The fewest, in fours, in which the scout comes to all of them."""
CASES = [*(("postgres", pack) for pack in FACTS), ("bigquery", "ecommerce")]
PRICE_IN, PRICE_OUT = 1.5e-7, 6e-7
"""Of gpt-4o-mini, a token."""


def numbers_of(result: DiscoveryResult, fact: Fact) -> list[float]:
    """The numbers that the finding of a fact computes; none where there is no such finding."""
    found = [insight for insight in result.insights if re.search(str(fact.scout), insight.name)]
    if not found:
        return []
    shown: list[Any] = [figure.computed for figure in found[0].figures] + [found[0].affected_count]
    return [float(value) for value in shown if isinstance(value, int | float)]


@pytest.mark.parametrize(("engine", "pack"), CASES)
def test_the_scout_over_http_finds_what_was_planted(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, pack: str
) -> None:
    with stored(engine, pack) as sample, serving(as_scout) as model:
        for name, value in sample.environment.items():
            monkeypatch.setenv(name, value)
        bench = open_bench(
            store, tmp_path, datasources=[sample.source], **layers(model.url, default="gpt-4o-mini")
        )
        with bench.resources:
            run = bench.new_run()
            assert bench.go(run, "--max-steps", str(STEPS[pack])) == 0, bench.read(run).error
            result, told = bench.result(run), bench.read(run)
    missing = {}
    for fact in FACTS[pack]:
        if fact.scout is None:
            continue
        row, numbers = asked(pack, fact.sql), numbers_of(result, fact)
        wanted = {column: float(row[column]) for column in fact.scout_shows}
        lost = {
            column: value
            for column, value in wanted.items()
            if not any(number == pytest.approx(value, rel=1e-6) for number in numbers)
        }
        if not numbers or lost:
            missing[fact.id] = lost
    assert missing == {}, [insight.name for insight in result.insights]
    assert [insight.unchecked_numbers for insight in result.insights if insight.unchecked_numbers] == []
    calls = len(model.requests)
    assert sum(usage.calls for usage in told.usage) == calls
    assert sum(usage.input_tokens or 0 for usage in told.usage) == calls * TOKENS_IN
    assert sum(usage.output_tokens or 0 for usage in told.usage) == calls * TOKENS_OUT
    cost = sum(usage.cost_usd or 0.0 for usage in told.usage)
    assert cost == pytest.approx(calls * (TOKENS_IN * PRICE_IN + TOKENS_OUT * PRICE_OUT), abs=1e-12)
