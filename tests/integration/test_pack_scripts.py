"""A scripted model through real litellm over HTTP, on each pack's sample on each engine: it ends as its script says.

The script asks for every planted fact in the engine's own SQL and says it; tokens and money are counted to the last call.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from assay_agent.adapters.samples import SAMPLES
from assay_agent.llm.scripted import Reply
from assay_agent.ports import CompletionRequest, Message
from assay_agent.settings import AgentSettings
from assay_core.store.client import Store
from tests.integration.discovery import open_bench
from tests.integration.test_litellm_run import layers
from tests.integration.test_pack_samples import script
from tests.openai_server import Said, serving
from tests.warehouses.engines import ENGINES, UNSAID, in_dialect, stored
from tests.warehouses.facts import asked

USAGE = {"exploration": (3_000, 150), "analysis": (9_000, 900), "recommendations": (2_000, 400)}
PRICES = {"gpt-4o": (2.5e-6, 1e-5), "gpt-4o-mini": (1.5e-7, 6e-7)}
"""Of a token in and out."""
MODELS = {"default": "gpt-4o-mini", "analysis": "gpt-4o"}
_TASK = re.compile(r"^Task: (\w+)$", re.MULTILINE)
CASES = [
    (engine, pack)
    for engine in ENGINES
    for pack in SAMPLES
    if (engine, pack) != ("bigquery", "system-test")  # its emulator knows no table name with a blank
]


@dataclass(slots=True)
class Following:
    """A server's script that follows one of a run: by layer in order, its last reply repeated."""

    replies: Mapping[str, list[Reply]]
    given: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: dict[str, Any]) -> Said:
        messages = tuple(Message(item["role"], item["content"]) for item in request["messages"])
        task = next(found for message in messages if (found := _TASK.search(message.content)))
        layer = task.group(1)
        with self._lock:
            number = self.given[layer] = self.given.get(layer, 0) + 1
        script = self.replies[layer]
        reply = script[min(number, len(script)) - 1]
        asking = CompletionRequest(layer=layer, messages=messages, max_output_tokens=1)
        said = reply(asking) if callable(reply) else reply
        assert isinstance(said, str)
        return Said(text=said, usage=USAGE[layer])


@pytest.mark.parametrize(("engine", "pack"), CASES)
def test_scripted_model_over_http_ends_as_its_script_says(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, pack: str
) -> None:
    category = SAMPLES[pack].category
    replies, said = script(pack, category, without=UNSAID.get(engine, ()))
    with stored(engine, pack) as sample:
        for fact in [fact for facts in said.values() for fact in facts]:
            fact_sql = json.dumps(" ".join(fact.sql.split()))
            spoken = json.dumps(in_dialect(fact.sql, sample.dialect))
            replies["exploration"] = [
                step.replace(fact_sql, spoken) if isinstance(step, str) else step
                for step in replies["exploration"]
            ]
        for name, value in sample.environment.items():
            monkeypatch.setenv(name, value)
        following = Following(replies)
        with serving(following) as model:
            bench = open_bench(
                store,
                tmp_path,
                datasources=[sample.source],
                domain=pack,
                category=category,
                profile=SAMPLES[pack].profile,
                **layers(model.url, **MODELS),
            )
            with bench.resources:
                run = bench.new_run()
                settings = AgentSettings.load().model_copy(update={"assay_enable_system_test": True})
                assert bench.go(run, "--max-steps", "40", settings=settings) == 0, bench.read(run).error
                result, told = bench.result(run), bench.read(run)
    expected: dict[str, str] = {}
    for area, facts in said.items():
        for fact in facts:  # what two areas tell stands in the first of them
            expected.setdefault(fact.told(asked(pack, fact.sql)), area)
    assert {insight.name: insight.analysis_area for insight in result.insights} == expected
    assert all(figure.checked for insight in result.insights for figure in insight.figures)
    assert [item.title for item in result.recommendations] == ["Act on the first finding"]
    assert (told.failed_queries, told.total_queries) == (0, len(replies["exploration"]) - 1)
    assert following.given == {
        "exploration": len(replies["exploration"]),
        "analysis": len(said),
        "recommendations": 1,
    }
    for usage in told.usage:
        calls, model_name = following.given[usage.phase], usage.model.rpartition("/")[2]
        tokens_in, tokens_out = (calls * tokens for tokens in USAGE[usage.phase])
        price_in, price_out = PRICES[model_name]
        assert model_name == MODELS.get(usage.phase, MODELS["default"])
        assert (usage.calls, usage.input_tokens, usage.output_tokens) == (calls, tokens_in, tokens_out)
        assert usage.cost_usd == pytest.approx(tokens_in * price_in + tokens_out * price_out, abs=1e-12)
    assert sum(usage.calls for usage in told.usage) == len(model.requests)
