"""Which steps are near an analysis area: the run's own vector collection, or the same vectors in memory where it cannot be used.

Made once at the start of the analysis. A vector store that is gone costs nothing but its help: no area is lost by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from assay_agent.context import RunContext
from assay_agent.discovery.explore import Exploration
from assay_agent.ports import Point
from assay_core import log
from assay_core.errors import AssayError
from assay_core.model.step import ExplorationStep, StepAction
from assay_core.vectors import names

_logger = log.logger(__name__)


@dataclass(slots=True)
class StepIndex:
    """The steps by number, and vectors of the query steps that returned rows. Searched from several threads."""

    ctx: RunContext
    steps: Mapping[int, ExplorationStep] = field(default_factory=dict)
    vectors: dict[int, list[float]] = field(default_factory=dict)
    in_store: bool = False

    def near(self, text: str, *, top_k: int, min_score: float) -> dict[int, float]:
        """Step number → cosine, for at most `top_k` steps of at least `min_score`."""
        vector = self.ctx.embedder.embed([text])[0]
        if self.in_store:
            try:
                hits = self.ctx.vectors.search(
                    names.run(self.ctx.run.id), vector, top_k=top_k, min_score=min_score
                )
                return {int(hit.payload[names.STEP]): hit.score for hit in hits}
            except AssayError as error:
                _logger.warning("steps ranked in memory", error=str(error))
        return _nearest(self.vectors, vector, top_k=top_k, min_score=min_score)


def index_steps(ctx: RunContext, exploration: Exploration) -> StepIndex:
    """One vector per query step of this run, in batches; kept in memory, and in the run's own collection if it can be."""
    queries = [
        step for step in exploration.steps if step.action is StepAction.QUERY_DATA and step.error is None
    ]
    index = StepIndex(ctx, {step.step: step for step in exploration.steps})
    size = ctx.policy.index.embed_batch
    for start in range(0, len(queries), size):
        batch = queries[start : start + size]
        texts = [_embedded_text(step)[: ctx.policy.analysis.step_text_chars] for step in batch]
        index.vectors |= {
            step.step: vector for step, vector in zip(batch, ctx.embedder.embed(texts), strict=True)
        }
    try:
        _store(ctx, queries, index.vectors)
        index.in_store = True
    except AssayError as error:
        _logger.warning("step vectors not stored", error=str(error))
        ctx.progress.note(f"the vector store is not used for this analysis: {error}")
    return index


def _store(ctx: RunContext, queries: Sequence[ExplorationStep], vectors: dict[int, list[float]]) -> None:
    collection = names.run(ctx.run.id)
    ctx.vectors.drop(collection)
    ctx.vectors.ensure_collection(collection, ctx.embedder.dimensions)
    points = [
        Point(
            id=names.run_point_id(ctx.run.id, step.step),
            vector=vectors[step.step],
            payload={
                names.STEP: step.step,
                names.PURPOSE: step.query_purpose,
                names.ROW_COUNT: step.row_count,
                names.DATASOURCE: step.datasource_id or "",
            },
        )
        for step in queries
    ]
    ctx.vectors.upsert(collection, points)


def _embedded_text(step: ExplorationStep) -> str:
    return f"{step.query_purpose}\n[SQL]: {step.query}"


def _nearest(
    vectors: dict[int, list[float]], vector: Sequence[float], *, top_k: int, min_score: float
) -> dict[int, float]:
    if not vectors:
        return {}
    numbers = sorted(vectors)
    matrix = np.asarray([vectors[number] for number in numbers], dtype=np.float64)
    asked = np.asarray(vector, dtype=np.float64)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(asked)
    scores = np.divide(matrix @ asked, lengths, out=np.zeros(len(numbers)), where=lengths > 0)
    best = sorted(zip(numbers, scores.tolist(), strict=True), key=lambda item: (-item[1], item[0]))[:top_k]
    return {number: score for number, score in best if score >= min_score}
