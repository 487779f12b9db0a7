"""What every model must do, and what the one over HTTP makes of everything a provider can answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from assay_agent.adapters.litellm_model import LitellmModel, open_model
from assay_agent.llm.scripted import ScriptedLlm
from assay_agent.ports import CompletionRequest, LanguageModel, Message, ModelSettings
from assay_agent.scout.model import open_model as open_scout
from assay_core.errors import ConfigError, ModelRefusal, TransientError
from tests.openai_server import OpenAiServer, Said, Script, serving

REQUEST = CompletionRequest(
    layer="exploration",
    messages=(Message("system", "You explore."), Message("user", "Answer with: ready")),
    max_output_tokens=64,
)


@pytest.fixture
def resources() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def settings(url: str, **fields: Any) -> ModelSettings:
    config = {"base_url": url, "temperature": 0, **fields.pop("config", {})}
    return ModelSettings(
        **{
            "provider": "openai-compatible",
            "model": "gpt-test",
            "config": config,
            "secret": "sk-test-0123456789",
            "tries": 3,
            "backoff_s": 0.01,
            **fields,
        }
    )


def a_model(
    resources: ExitStack, script: Script, **fields: Any
) -> tuple[LitellmModel, OpenAiServer, list[float]]:
    """The model over HTTP, its server, and the pauses it took."""
    server = resources.enter_context(serving(script))
    pauses: list[float] = []
    return (
        LitellmModel(settings(server.url, **fields), sleep=pauses.append, spread=lambda: 0.5),
        server,
        pauses,
    )


Opened = Callable[[ExitStack], LanguageModel]
MODELS: dict[str, Opened] = {
    "scripted": lambda _: ScriptedLlm({"*": ["ready"]}, repeat_last=True),
    "scout": lambda _: open_scout(ModelSettings(provider="scout", model="")),
    "litellm": lambda resources: a_model(resources, [Said(text="ready")])[0],
}


@pytest.mark.parametrize("name", MODELS)
def test_model_answers_says_who_it_is_and_how_much_fits(resources: ExitStack, name: str) -> None:
    model = MODELS[name](resources)
    answer = model.complete(REQUEST)
    assert answer.text.strip()
    assert answer.finish == "stop"
    assert model.provider
    assert model.model
    assert model.context_tokens >= 8_000


@pytest.mark.parametrize("name", MODELS)
def test_model_answers_from_several_threads_at_once(resources: ExitStack, name: str) -> None:
    model = MODELS[name](resources)
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(model.complete(REQUEST).text)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(answers) == 6
    assert len(set(answers)) == 1


# ------------------------------------------------------------------------------------------------------ over HTTP


def test_request_carries_messages_limit_key_and_settings(resources: ExitStack) -> None:
    model, server, _ = a_model(resources, [Said(text="ready")], config={"max_output_tokens": 32})
    answer = model.complete(REQUEST)
    [sent] = server.requests
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("gpt-test", 32, 0)
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert server.keys == ["sk-test-0123456789"]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (100, 10)
    assert answer.usage.cost_usd is None  # nobody knows what gpt-test costs


def test_money_is_counted_where_the_price_is_known(resources: ExitStack) -> None:
    model, _, _ = a_model(resources, [Said(text="ready", usage=(1_000_000, 100_000))], model="gpt-4o-mini")
    assert model.complete(REQUEST).usage.cost_usd == pytest.approx(0.15 + 0.06)
    assert model.context_tokens == 128_000


def test_usage_that_is_not_said_is_unknown(resources: ExitStack) -> None:
    model, _, _ = a_model(resources, [Said(text="ready", usage=None)])
    usage = model.complete(REQUEST).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (None, None, None)


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        (Said(text="half", finish="length"), "length"),
        (Said(text="", finish="content_filter"), "refusal"),
        (Said(text=None, extra={"refusal": "I cannot help with that."}), "refusal"),
    ],
)
def test_finish_reasons_are_told_apart(resources: ExitStack, said: Said, finish: str) -> None:
    model, _, _ = a_model(resources, [said])
    assert model.complete(REQUEST).finish == finish


def test_reasoning_apart_from_the_answer_is_kept(resources: ExitStack) -> None:
    model, _, _ = a_model(resources, [Said(text="", extra={"reasoning_content": "ready, I think"})])
    answer = model.complete(REQUEST)
    assert (answer.text, answer.reasoning) == ("", "ready, I think")


def test_think_blocks_stay_in_the_text_for_the_parser(resources: ExitStack) -> None:
    model, _, _ = a_model(resources, [Said(text="<think>hm</think>ready")])
    answer = model.complete(REQUEST)
    assert "ready" in answer.text
    assert "hm" in answer.text + answer.reasoning


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_passing_failures_are_tried_again_with_growing_pauses(resources: ExitStack, status: int) -> None:
    busy = Said(status=status, error="busy")
    model, server, pauses = a_model(resources, [busy, busy, Said(text="ready")])
    assert model.complete(REQUEST).text == "ready"
    assert len(server.requests) == 3
    assert pauses == [pytest.approx(0.01), pytest.approx(0.02)]


def test_failures_that_do_not_pass_end_as_infrastructure_after_the_tries(resources: ExitStack) -> None:
    model, server, _ = a_model(resources, [Said(status=503, error="down for repair")])
    with pytest.raises(TransientError, match=r"503.*down for repair") as caught:
        model.complete(REQUEST)
    assert caught.value.dependency == "model"
    assert len(server.requests) == 3


def test_retry_after_in_seconds_is_waited(resources: ExitStack) -> None:
    model, _, pauses = a_model(
        resources, [Said(status=429, error="slow down", headers={"Retry-After": "7"}), Said(text="ready")]
    )
    assert model.complete(REQUEST).text == "ready"
    assert pauses == [7.0]


def test_retry_after_as_a_date_is_waited(resources: ExitStack) -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    model, _, pauses = a_model(
        resources, [Said(status=429, error="slow down", headers={"Retry-After": at}), Said(text="ready")]
    )
    assert model.complete(REQUEST).text == "ready"
    assert 10 < pauses[0] <= 20


def test_retry_after_beyond_the_cap_ends_at_once_and_says_when(resources: ExitStack) -> None:
    model, server, pauses = a_model(
        resources, [Said(status=429, error="quota", headers={"Retry-After": "3600"})]
    )
    with pytest.raises(TransientError) as caught:
        model.complete(REQUEST)
    assert caught.value.retry_after_s == 3600
    assert (len(server.requests), pauses) == (1, [])


@pytest.mark.parametrize(
    "said",
    [
        Said(text="ready", cut=20),
        Said(raw=b"<html>bad gateway</html>"),
        Said(raw=b'{"choices": ['),
        Said(choices=False),
    ],
)
def test_broken_bodies_are_tried_again(resources: ExitStack, said: Said) -> None:
    model, server, _ = a_model(resources, [said, Said(text="ready")])
    assert model.complete(REQUEST).text == "ready"
    assert len(server.requests) == 2


def test_stalled_server_is_given_up_after_the_timeout(resources: ExitStack) -> None:
    model, server, _ = a_model(
        resources, [Said(text="late", stall_s=3), Said(text="ready")], config={"timeout_seconds": 1}
    )
    assert model.complete(REQUEST).text == "ready"
    assert len(server.requests) == 2


def test_nobody_there_is_infrastructure(resources: ExitStack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    model = LitellmModel(settings(f"http://127.0.0.1:{port}/v1"), sleep=lambda _: None)
    with pytest.raises(TransientError) as caught:
        model.complete(REQUEST)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Said(status=401, error="Incorrect API key provided: sk-test-0123456789"), "secret llm-api-key"),
        (Said(status=403, error="no access"), "secret llm-api-key"),
        (Said(status=404, error="The model `gpt-test` does not exist"), "no model 'gpt-test'"),
        (Said(status=400, error="messages: at least one"), "refuses the request"),
        (
            Said(
                status=400,
                error="This model's maximum context length is 8192 tokens. However, your messages resulted in 9000",
            ),
            "8,192 tokens",
        ),
    ],
)
def test_what_a_human_must_change_is_said_on_one_line_without_the_key(
    resources: ExitStack, said: Said, words: str
) -> None:
    model, server, _ = a_model(resources, [said])
    with pytest.raises(ConfigError, match=words) as caught:
        model.complete(REQUEST)
    assert "\n" not in str(caught.value)
    assert "sk-test" not in str(caught.value)
    assert len(server.requests) == 1


def test_content_policy_is_a_refusal(resources: ExitStack) -> None:
    model, server, _ = a_model(
        resources, [Said(status=400, error="The response was filtered due to the content management policy")]
    )
    with pytest.raises(ModelRefusal):
        model.complete(REQUEST)
    assert len(server.requests) == 1


def test_parameter_that_is_not_taken_is_left_out_once_and_for_all(resources: ExitStack) -> None:
    def script(request: dict[str, Any]) -> Said:
        if "temperature" in request:
            return Said(
                status=400, error="Unsupported value: 'temperature' does not support 0 with this model."
            )
        if "max_tokens" in request:
            return Said(
                status=400,
                error="Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            )
        return Said(text=f"limit {request['max_completion_tokens']}")

    model, server, _ = a_model(resources, script)
    assert model.complete(REQUEST).text == "limit 64"
    assert len(server.requests) == 3
    assert model.complete(REQUEST).text == "limit 64"
    assert len(server.requests) == 4


def test_limit_that_is_taken_under_no_name_is_said_not_dropped(resources: ExitStack) -> None:
    def script(request: dict[str, Any]) -> Said:
        name = "max_tokens" if "max_tokens" in request else "max_completion_tokens"
        return Said(status=400, error=f"Unsupported parameter: '{name}'")

    model, _, _ = a_model(resources, script)
    with pytest.raises(ConfigError, match="neither with"):
        model.complete(REQUEST)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"provider": "opnai"}, "must be one of"),
        ({"model": ""}, "llm.model is empty"),
        ({"config": {"base_ulr": "x"}}, "llm.config.base_ulr is not known"),
        ({"config": {}, "provider": "openai", "secret": None}, "needs a key"),
        ({"config": {}}, "llm.config.base_url is missing"),
        ({"config": {"base_url": "http://x", "timeout_seconds": -1}}, "timeout_seconds must be"),
    ],
)
def test_wrong_settings_are_said_before_anything_is_sent(fields: dict[str, Any], words: str) -> None:
    given = {"provider": "openai-compatible", "model": "m", "config": {"base_url": "http://x"}, **fields}
    with pytest.raises(ConfigError, match=words):
        open_model(ModelSettings(**given))
