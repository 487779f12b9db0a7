"""Phases 7 and 6: the result is saved whole, then an earlier attempt's result is retired, then the project remembers."""

from __future__ import annotations

from assay_agent.context import RunContext
from assay_agent.discovery.analyze import Analysis
from assay_agent.discovery.explore import Exploration
from assay_agent.discovery.source_files import changed_files
from assay_core import clock, log
from assay_core.errors import AssayError
from assay_core.model.discovery import DiscoveryResult, RunType, Summary
from assay_core.model.project import HistoricalPattern
from assay_core.model.step import RecommendationStep, StepAction
from assay_core.store.memory import Lesson
from assay_core.vectors import names

_logger = log.logger(__name__)


def save(
    ctx: RunContext,
    exploration: Exploration,
    analysis: Analysis,
    advice: RecommendationStep | None,
    *,
    ended_early: bool = False,
) -> DiscoveryResult:
    """Write the discovery and its logs, then retire what a former attempt of this run had saved."""
    discovery = compose(ctx, exploration, analysis, advice)
    if ended_early and discovery.run_type == "full":
        discovery = discovery.model_copy(update={"run_type": "partial"})
    ctx.store.discoveries.save(
        ctx.fenced,
        discovery,
        exploration=exploration.steps,
        analysis=analysis.steps,
        validation=[result for step in analysis.steps for result in step.validation_results],
        recommendation=advice,
    )
    # Looked for only now: what a stale attempt saved a moment ago is seen here, or it sees this one and retires itself.
    for earlier in ctx.store.discoveries.ids_of_run(ctx.run.id, before_attempt=ctx.attempt):
        retire(ctx, earlier)
    return discovery


def saved_by_newer(ctx: RunContext) -> bool:
    """Whether a newer attempt of this run has saved its result."""
    return bool(ctx.store.discoveries.ids_of_run(ctx.run.id, after_attempt=ctx.attempt))


def retire(ctx: RunContext, discovery_id: str) -> None:
    """All or nothing: the vectors go first, and if they cannot, the old result stays whole beside the new one."""
    rows = [
        *(row.id for row in ctx.store.discoveries.insights(discovery_id)),
        *(row.id for row in ctx.store.discoveries.recommendations(discovery_id)),
    ]
    try:
        if rows:
            ctx.vectors.delete(names.findings(ctx.embedder.dimensions), rows)
    except AssayError as error:
        _logger.warning(
            "earlier result kept, its vectors cannot be removed", discovery_id=discovery_id, error=str(error)
        )
        return
    ctx.store.discoveries.retire(ctx.fenced, discovery_id)


def compose(
    ctx: RunContext, exploration: Exploration, analysis: Analysis, advice: RecommendationStep | None
) -> DiscoveryResult:
    """The discovery document of what there is."""
    at = clock.now()
    insights = analysis.insights
    recommendations = advice.recommendations if advice else []
    errors = list(analysis.errors)
    if advice is not None and advice.error:
        errors.append(f"recommendations: {advice.error}")
    return DiscoveryResult(
        id=ctx.store.discoveries.new_id(),
        project_id=ctx.project.id,
        run_id=ctx.run.id,
        tenant=ctx.tenant,
        domain=ctx.project.domain,
        category=ctx.project.category,
        run_type=_run_type(ctx, analysis),
        areas_requested=ctx.run.areas,
        discovery_date=ctx.run.started_at,
        total_steps=len(exploration.steps),
        duration=ctx.deadline.elapsed_ms() * 1_000_000,
        insights=insights,
        recommendations=recommendations,
        summary=Summary(
            total_insights=len(insights),
            total_recommendations=len(recommendations),
            queries_executed=sum(step.action is StepAction.QUERY_DATA for step in exploration.steps),
            errors=errors,
            limitations=[*changed_files(ctx.run, ctx.project), *exploration.limitations] or None,
        ),
        analyst=f"{ctx.model.provider}/{ctx.model.model}",
        created_at=at,
        updated_at=at,
    )


def _run_type(ctx: RunContext, analysis: Analysis) -> RunType:
    """failed: no area succeeded; partial: some failed, some are missing, or only some were asked for."""
    succeeded = [step for step in analysis.steps if step.error is None]
    if not succeeded:
        return "failed"
    return "partial" if ctx.run.areas or len(succeeded) < len(ctx.areas) else "full"


def remember(ctx: RunContext, discovery: DiscoveryResult, exploration: Exploration) -> None:
    """Merge this run into the project's memory. Comes after ownership is proven, since nothing takes it back."""
    queries = [step for step in exploration.steps if step.action is StepAction.QUERY_DATA]
    lesson = Lesson(
        at=discovery.discovery_date,
        known_schemas=sorted({name for warehouse in ctx.warehouses.values() for name in warehouse.datasets}),
        successful_queries=[step.query_executed or step.query for step in queries if step.error is None],
        failed_queries=[step.query for step in queries if step.error is not None],
        patterns=[
            HistoricalPattern(
                id=f"{insight.analysis_area}:{insight.name}",
                area=insight.analysis_area,
                name=insight.name,
                severity=insight.severity,
                first_seen=discovery.discovery_date,
                last_seen=discovery.discovery_date,
            )
            for insight in discovery.insights
        ],
    )
    ctx.store.memory.remember(ctx.fenced, ctx.project.id, lesson, ctx.tenant)
