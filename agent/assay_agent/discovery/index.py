"""Phase 9: findings as standalone rows and vectors, duplicates of earlier runs marked. Never fatal."""

from __future__ import annotations

from collections.abc import Sequence

from assay_agent.context import RunContext
from assay_agent.ports import Point
from assay_core import clock, log
from assay_core.errors import AssayError
from assay_core.model.discovery import DiscoveryResult, StandaloneInsight, StandaloneRecommendation
from assay_core.model.insight import Insight, Recommendation
from assay_core.vectors import names

_logger = log.logger(__name__)


def index(ctx: RunContext, discovery: DiscoveryResult) -> bool:
    """Index the discovery; False (and a warning) where that failed, since the result itself is already saved."""
    try:
        _index(ctx, discovery)
    except AssayError as error:
        _logger.warning("findings not indexed", error=str(error))
        ctx.progress.note(f"findings are saved but not indexed for search: {error}")
        return False
    return True


def _index(ctx: RunContext, discovery: DiscoveryResult) -> None:
    insights = [_standalone_insight(ctx, discovery, insight) for insight in discovery.insights]
    recommendations = [_standalone_recommendation(ctx, discovery, item) for item in discovery.recommendations]
    rows: list[StandaloneInsight | StandaloneRecommendation] = [*insights, *recommendations]
    if not rows:
        return
    vectors = _embedded(ctx, [row.embedding_text for row in rows])
    collection = names.findings(ctx.embedder.dimensions)
    ctx.vectors.ensure_collection(collection, ctx.embedder.dimensions)
    own = [discovery.id, *(result.id for result in ctx.store.discoveries.of_run(ctx.run.id))]
    marked = [_marked(ctx, collection, row, vector, own) for row, vector in zip(rows, vectors, strict=True)]
    ctx.store.discoveries.save_standalone(
        ctx.fenced,
        [row for row in marked if isinstance(row, StandaloneInsight)],
        [row for row in marked if isinstance(row, StandaloneRecommendation)],
    )
    ctx.vectors.upsert(collection, [_point(row, vector) for row, vector in zip(marked, vectors, strict=True)])


def _embedded(ctx: RunContext, texts: Sequence[str]) -> list[list[float]]:
    size = ctx.policy.index.embed_batch
    vectors: list[list[float]] = []
    for start in range(0, len(texts), size):
        vectors += ctx.embedder.embed(texts[start : start + size])
    return vectors


def _marked(
    ctx: RunContext,
    collection: str,
    row: StandaloneInsight | StandaloneRecommendation,
    vector: Sequence[float],
    own: Sequence[str],
) -> StandaloneInsight | StandaloneRecommendation:
    """The row, told which earlier finding of another run it repeats."""
    hits = ctx.vectors.search(
        collection,
        vector,
        top_k=1,
        equals={names.PROJECT_ID: row.project_id, names.TENANT: row.tenant, names.TYPE: _type(row)},
        excluding={names.DISCOVERY_ID: own},
        min_score=ctx.policy.index.duplicate_score,
    )
    if not hits:
        return row
    return row.model_copy(update={"duplicate_of": hits[0].id, "similarity_score": hits[0].score})


def _type(row: StandaloneInsight | StandaloneRecommendation) -> str:
    return names.INSIGHT if isinstance(row, StandaloneInsight) else names.RECOMMENDATION


def _standalone_insight(ctx: RunContext, discovery: DiscoveryResult, insight: Insight) -> StandaloneInsight:
    parts = (
        insight.name,
        insight.description,
        insight.analysis_area,
        insight.severity,
        insight.target_segment,
    )
    return StandaloneInsight(
        **{name: getattr(insight, name) for name in Insight.model_fields},
        project_id=discovery.project_id,
        discovery_id=discovery.id,
        tenant=discovery.tenant,
        domain=discovery.domain,
        category=discovery.category,
        embedding_text="\n".join(part for part in parts if part),
        embedding_model=ctx.embedder.model,
        created_at=clock.now(),
    )


def _standalone_recommendation(
    ctx: RunContext, discovery: DiscoveryResult, item: Recommendation
) -> StandaloneRecommendation:
    parts = (item.title, item.description, item.category, item.target_segment)
    return StandaloneRecommendation(
        **{name: getattr(item, name) for name in Recommendation.model_fields},
        project_id=discovery.project_id,
        discovery_id=discovery.id,
        tenant=discovery.tenant,
        recommendation_category=item.category,
        embedding_text="\n".join(part for part in parts if part),
        embedding_model=ctx.embedder.model,
        created_at=clock.now(),
    )


def _point(row: StandaloneInsight | StandaloneRecommendation, vector: Sequence[float]) -> Point:
    payload = {
        names.TYPE: _type(row),
        names.PROJECT_ID: row.project_id,
        names.TENANT: row.tenant,
        names.DISCOVERY_ID: row.discovery_id,
        names.EMBEDDING_MODEL: row.embedding_model,
        names.CONFIDENCE: row.confidence,
        names.CREATED_AT: clock.iso_z(row.created_at),
    }
    if isinstance(row, StandaloneInsight):
        payload |= {names.SEVERITY: str(row.severity), names.ANALYSIS_AREA: row.analysis_area}
    return Point(id=row.id, vector=vector, payload=payload)
