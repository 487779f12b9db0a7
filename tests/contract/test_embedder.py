"""The contract of an embedder, on the shipped fake and on the real model; and what only a model knows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from assay_agent.adapters import hashing, litellm_embedder, minilm
from assay_agent.ports import Embedder, EmbedderSettings
from assay_core.errors import ConfigError
from tests.openai_server import DIMENSIONS, serving

TEXTS = ["flight delays by airport", "late departures of planes", "the price of tea in London"]


def over_http(url: str, **config: Any) -> Embedder:
    return litellm_embedder.open_embedder(
        EmbedderSettings(
            provider="openai-compatible",
            model="embed-test",
            config={"base_url": url, **config},
            secret="sk-test",
            backoff_s=0.01,
        )
    )


@pytest.fixture(scope="module", params=["hashing", "minilm", "litellm"])
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    if request.param == "litellm":
        with serving([]) as server:
            yield over_http(server.url)
    else:
        yield hashing.open_embedder() if request.param == "hashing" else minilm.open_embedder()


def near(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_vectors_have_the_said_length_and_unit_norm(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert len(vectors) == len(TEXTS)
    for vector in vectors:
        assert len(vector) == embedder.dimensions
        assert math.sqrt(near(vector, vector)) == pytest.approx(1.0, abs=1e-4)
    assert embedder.model


def test_the_same_text_is_the_same_vector_in_any_company(embedder: Embedder) -> None:
    alone = embedder.embed([TEXTS[0]])[0]
    crowd = embedder.embed(["x " * 300, *TEXTS, *[f"text {n}" for n in range(80)]])
    assert near(alone, crowd[1]) == pytest.approx(1.0, abs=0.01)


def test_order_is_kept_over_many_batches(embedder: Embedder) -> None:
    texts = [f"table number {n} " + "word " * (n % 7) for n in range(100)]
    vectors = embedder.embed(texts)
    for place in (0, 41, 99):
        assert near(vectors[place], embedder.embed([texts[place]])[0]) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("text", ["", " ", "\n", "\x00", "\ud800", "🛩" * 50, "word " * 5_000, "?!."])
def test_any_text_has_a_vector(embedder: Embedder, text: str) -> None:
    (vector,) = embedder.embed([text])
    assert near(vector, vector) == pytest.approx(1.0, abs=1e-4)


def test_nothing_is_nothing(embedder: Embedder) -> None:
    assert embedder.embed([]) == []


def test_shared_words_are_nearer_than_none(embedder: Embedder) -> None:
    same, other, far = embedder.embed(["delays per airport", "airport delays", "tea price"])
    assert near(same, other) > near(same, far)


def test_threads_may_share_it(embedder: Embedder) -> None:
    expected = embedder.embed(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(lambda _: embedder.embed(TEXTS), range(8)):
            assert all(near(a, b) > 0.999 for a, b in zip(vectors, expected, strict=True))


def test_the_model_knows_that_words_mean_the_same() -> None:
    delays, late, tea = minilm.open_embedder().embed(TEXTS)
    assert near(delays, late) > 0.4
    assert near(delays, tea) < 0.2


def test_dimensions_are_asked_for_once_and_another_length_is_said() -> None:
    with serving([]) as server:
        assert over_http(server.url).dimensions == DIMENSIONS
        with pytest.raises(ConfigError, match=f"gave {DIMENSIONS} dimensions instead of 1536") as caught:
            over_http(server.url, dimensions=1536).embed(["ready"])
    assert "embedding.config.dimensions" in str(caught.value)


def test_embedder_without_address_or_key_says_which_setting_is_missing() -> None:
    with pytest.raises(ConfigError, match=r"embedding\.config\.base_url is missing"):
        litellm_embedder.open_embedder(EmbedderSettings(provider="openai-compatible", model="m"))
    with pytest.raises(ConfigError, match="embedding-api-key"):
        litellm_embedder.open_embedder(EmbedderSettings(provider="openai", model="m"))
