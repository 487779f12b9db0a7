"""The contract of an embedder, on the shipped fake and on the real model; and what only a model knows."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay_agent.adapters import hashing, minilm
from assay_agent.ports import Embedder

TEXTS = ["flight delays by airport", "late departures of planes", "the price of tea in London"]


@pytest.fixture(scope="module", params=["hashing", "minilm"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return hashing.open_embedder() if request.param == "hashing" else minilm.open_embedder()


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
