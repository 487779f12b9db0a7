"""Embeddings of an OpenAI-compatible server or a provider, through litellm; implements the `Embedder` port.

The number of dimensions is asked for once, with one short text, unless the project says it; vectors of another length are an
error, since a collection holds one length only.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from assay_agent.adapters.litellm_calls import Caller, Connection, NoAnswer
from assay_agent.adapters.litellm_providers import call_arguments, positive
from assay_agent.ports import EmbedderSettings
from assay_core.errors import ConfigError

_BATCH = 64
"""Texts of one request; most servers take more, some no more."""
_TEXT_CHARS = 24_000
"""Characters of one text, about the 8,000 tokens that the common models take."""


class LitellmEmbedder:
    """One embedding model of one connection. Safe to call from several threads."""

    def __init__(
        self,
        settings: EmbedderSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        spread: Callable[[], float] = random.random,
    ) -> None:
        config = dict(settings.config)
        self._dimensions = positive(config, "dimensions", where="embedding.config")
        config.pop("dimensions", None)
        self._arguments = call_arguments(
            settings.provider, settings.model, config, secret=settings.secret, where="embedding"
        )
        self.model = settings.model
        self._provider = settings.provider
        self._timeout_s = settings.timeout_s
        self._lock = threading.Lock()
        self._caller = Caller(
            Connection(
                provider=settings.provider,
                model=settings.model,
                secret_key=settings.secret_key,
                tries=settings.tries,
                backoff_s=settings.backoff_s,
            ),
            sleep=sleep,
            spread=spread,
        )

    @property
    def dimensions(self) -> int:
        with self._lock:
            if self._dimensions is None:
                self._dimensions = len(self._asked(["dimensions"])[0])
            return self._dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        wanted = self.dimensions
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            vectors += self._asked(texts[start : start + _BATCH])
        for vector in vectors:
            if len(vector) != wanted:
                raise ConfigError(
                    f"embedding.model {self.model} gave {len(vector)} dimensions instead of {wanted}: "
                    "set embedding.config.dimensions to what it gives, and index again"
                )
        return vectors

    def _asked(self, texts: Sequence[str]) -> list[list[float]]:
        given = [_plain(text) for text in texts]

        def read(response: Any) -> list[list[float]]:
            items = getattr(response, "data", None) or []
            if len(items) != len(given):
                raise NoAnswer(f"{len(items)} vectors came for {len(given)} texts")
            ordered = sorted(items, key=lambda item: int(_of(item, "index") or 0))
            return [_unit(_of(item, "embedding")) for item in ordered]

        arguments = {
            **self._arguments,
            "input": given,
            "timeout": self._timeout_s,
            "encoding_format": "float",
        }
        found: list[list[float]] = self._caller.call("embedding", arguments, read)
        return found


def _plain(text: str) -> str:
    """A text that any server takes: no lone surrogates or NUL, not empty, not too long."""
    clean = text.encode("utf-8", "replace").decode().replace("\x00", " ")[:_TEXT_CHARS]
    return clean if clean.strip() else "."


def _of(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _unit(vector: Any) -> list[float]:
    if not isinstance(vector, list) or not vector:
        raise NoAnswer("a vector is empty")
    numbers = [float(value) for value in vector]
    norm = math.sqrt(sum(value * value for value in numbers))
    if not math.isfinite(norm) or norm == 0.0:
        raise NoAnswer("a vector is not finite, or all zero")
    return [value / norm for value in numbers]


def open_embedder(settings: EmbedderSettings) -> LitellmEmbedder:
    """Entry point."""
    return LitellmEmbedder(settings)
