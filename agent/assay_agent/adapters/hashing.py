"""An embedder without a model: hashed words and letter triples. Deterministic, instant, good enough for
tests.

Texts that share words are near, others are not; it knows no synonyms. Passes the contract suite of the port.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence

from assay_agent.ports import EmbedderSettings

_DIMENSIONS = 256
_WORD = re.compile(r"\w+", re.UNICODE)


class HashEmbedder:
    """Signed feature hashing into `dimensions` places, unit norm."""

    def __init__(self, dimensions: int = _DIMENSIONS) -> None:
        self._dimensions = dimensions

    @property
    def model(self) -> str:
        return f"hashing-{self._dimensions}"

    @property
    def dimensions(self) -> int:
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> list[float]:
        places = [0.0] * self._dimensions
        for feature, weight in _features(text):
            digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest()
            number = int.from_bytes(digest, "big")
            places[number % self._dimensions] += weight if number >> 63 else -weight
        norm = math.sqrt(sum(place * place for place in places))
        if norm == 0.0:  # no words, or words that cancel out
            return [1.0, *places[1:]]
        return [place / norm for place in places]


def _features(text: str) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for word in _WORD.findall(text.lower()):
        found.append((word, 1.0))
        padded = f"<{word}>"
        found += [(padded[i : i + 3], 0.25) for i in range(len(padded) - 2)]
    return found


def open_embedder(_settings: EmbedderSettings | None = None) -> HashEmbedder:
    """Entry point."""
    return HashEmbedder()
