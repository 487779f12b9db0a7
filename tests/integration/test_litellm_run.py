"""A whole run through real litellm over real HTTP: sums, layers, secrets, and what a wrong connection says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_agent.ports import Message
from assay_agent.scout.model import answer
from assay_core.model.project import LayerModel, LLMProviderEntry
from assay_core.model.run import RunStatus
from assay_core.store.client import Store
from tests.integration.discovery import Bench, open_bench
from tests.openai_server import OpenAiServer, Said, serving

AREAS = ("--areas", "data_quality,trends", "--max-steps", "12")
KEY = "sk-marked-5f2c9a7be1d04c63"
TOKENS_IN, TOKENS_OUT = 1_000, 100


def as_scout(request: dict[str, Any]) -> Said:
    """The scout's answer, with a usage that can be counted."""
    messages = [Message(item["role"], item["content"]) for item in request["messages"]]
    return Said(text=answer(messages), usage=(TOKENS_IN, TOKENS_OUT))


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with serving(as_scout) as opened:
        yield opened


def layers(url: str, **models: str) -> dict[str, Any]:
    entry = LLMProviderEntry(id="main", provider="openai-compatible", config={"base_url": url})
    rows = {layer: LayerModel(provider_id="main", model=model) for layer, model in models.items()}
    return {"llm": None, "llm_providers": [entry], "layer_models": rows, "llm_config_version": 1}


def opened(store: Store, home: Path, **project: Any) -> Bench:
    return open_bench(store, home, **project)


def test_run_over_http_counts_every_call_by_layer_and_model(
    store: Store, tmp_path: Path, server: OpenAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY_MAIN", KEY)
    models = {"default": "gpt-4o-mini", "analysis": "gpt-4o"}
    bench = opened(store, tmp_path / "home", **layers(server.url, **models))
    with bench.resources:
        run = bench.new_run()
        assert bench.go(run, *AREAS) == 0
        stored = bench.read(run)
        result = bench.result(run)
    by_layer = {(usage.phase, usage.model): usage for usage in stored.usage}
    assert set(by_layer) == {
        ("exploration", "openai-compatible/gpt-4o-mini"),
        ("analysis", "openai-compatible/gpt-4o"),
        ("recommendations", "openai-compatible/gpt-4o-mini"),
    }
    assert sum(usage.calls for usage in stored.usage) == len(server.requests)
    for (layer, _), usage in by_layer.items():
        assert (usage.input_tokens, usage.output_tokens) == (
            TOKENS_IN * usage.calls,
            TOKENS_OUT * usage.calls,
        )
        price_in, price_out = (2.5e-6, 1e-5) if layer == "analysis" else (1.5e-7, 6e-7)
        assert usage.cost_usd == pytest.approx(usage.calls * (TOKENS_IN * price_in + TOKENS_OUT * price_out))
    assert result.insights
    assert {request["model"] for request in server.requests} == {"gpt-4o-mini", "gpt-4o"}
    assert set(server.keys) == {KEY}


def test_same_findings_as_with_the_scout_itself(store: Store, tmp_path: Path, server: OpenAiServer) -> None:
    told: list[list[str]] = []
    for name, project in (("http", layers(server.url, default="gpt-4o-mini")), ("here", {"llm": None})):
        bench = opened(store, tmp_path / name, **project)
        with bench.resources:
            run = bench.new_run()
            assert bench.go(run, *AREAS) == 0
            told.append([insight.name for insight in bench.result(run).insights])
    assert told[0] == told[1]


def test_key_is_written_nowhere(
    store: Store,
    tmp_path: Path,
    server: OpenAiServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The key goes to the model's server and to no document, log, prompt or file, whether the run ends well or not."""
    monkeypatch.setenv("LLM_API_KEY_MAIN", KEY)
    bench = opened(store, tmp_path / "home", **layers(server.url, default="gpt-4o-mini"))
    with bench.resources:
        assert bench.go(bench.new_run(), *AREAS, "--enable-debug-logs") == 0
    with serving([Said(status=401, error=f"Incorrect API key provided: {KEY}.")]) as refusing:
        other = opened(store, tmp_path / "other", **layers(refusing.url, default="gpt-4o-mini"))
        with other.resources:
            failed = other.new_run()
            assert other.go(failed, *AREAS) == 10
            assert other.read(failed).status is RunStatus.FAILED
            assert "secret llm-api-key-main" in str(other.read(failed).error)
    said = capfd.readouterr()
    assert KEY not in said.out + said.err
    for collection in store.database.list_collection_names():
        for document in store.database[collection].find():
            assert KEY not in str(document), collection
    assert KEY not in str(server.requests)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("project", "words"),
    [
        (
            {"layer_models": {"default": LayerModel(provider_id="nowhere", model="m")}},
            "must be one of llm_providers: main",
        ),
        ({"layer_models": {"analysis": LayerModel(provider_id="main", model="m")}}, "no row 'default'"),
        (
            {"layer_models": {"default": LayerModel(provider_id="main")}},
            "layer_models.default.model is empty",
        ),
        (
            {
                "layer_models": {
                    "dreaming": LayerModel(),
                    "default": LayerModel(provider_id="main", model="m"),
                }
            },
            "is not a layer",
        ),
        ({"layer_models": {}}, "add layer_models.default"),
        ({"llm_config_version": 0}, "llm_config_version is 0"),
    ],
)
def test_wrong_layers_fail_the_run_with_one_line(
    store: Store, tmp_path: Path, server: OpenAiServer, project: dict[str, Any], words: str
) -> None:
    bench = opened(store, tmp_path / "home", **{**layers(server.url, default="m"), **project})
    with bench.resources:
        run = bench.new_run()
        assert bench.go(run, *AREAS) == 10
        error = str(bench.read(run).error)
    assert words in error
    assert "\n" not in error
    assert server.requests == []


def test_model_that_does_not_exist_fails_the_run_with_one_line(store: Store, tmp_path: Path) -> None:
    with serving([Said(status=404, error="The model `gpt-9` does not exist")]) as refusing:
        bench = opened(store, tmp_path / "home", **layers(refusing.url, default="gpt-9"))
        with bench.resources:
            run = bench.new_run()
            assert bench.go(run, *AREAS) == 10
            error = str(bench.read(run).error)
    assert "no model 'gpt-9'" in error
    assert "\n" not in error
    assert len(refusing.requests) == 1
