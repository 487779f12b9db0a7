"""Phase 5: actions that answer eligible insights, each linked to them by id. One call, one corrective re-prompt."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence

from assay_agent.context import RunContext
from assay_agent.discovery.analyze import Analysis
from assay_agent.discovery.insights import Read, read_recommendation
from assay_agent.discovery.recall import Previous
from assay_agent.discovery.templates import base_context, recommendations_prompt
from assay_agent.evidence.wording import counted
from assay_agent.llm.replies import read_items
from assay_agent.ports import Completion, CompletionRequest, Message
from assay_agent.prompts import render
from assay_core import clock, log
from assay_core.errors import BudgetExhausted, ModelOutputError, ModelRefusal, TransientError
from assay_core.model.insight import Insight, Recommendation
from assay_core.model.run import RunStep, StepType, StoredPhase
from assay_core.model.step import RecommendationStep
from assay_core.model.verdict import CombinedVerdict

_logger = log.logger(__name__)
_TOLD = (
    "id", "slug", "analysis_area", "name", "description", "severity", "affected_count", "risk_score", "confidence",
    "metrics", "indicators", "target_segment", "evidence_quality",
)  # fmt: skip


def recommend(ctx: RunContext, previous: Previous, analysis: Analysis) -> RecommendationStep:
    """The phase's record, recommendations included. A failing model is recorded; the run still saves its insights."""
    started = time.monotonic()
    eligible = eligible_insights(ctx, analysis.insights)
    record = RecommendationStep(run_at=clock.now(), insight_count=len(eligible))
    if not eligible:
        return record.model_copy(update={"status": "skipped_no_eligible_insights"})
    prompt = _prompt(ctx, previous, eligible)
    record = record.model_copy(update={"prompt": prompt})
    try:
        record = _ask(ctx, record, eligible)
    except BudgetExhausted:
        raise
    except (TransientError, ModelRefusal) as error:
        record = record.model_copy(update={"error": str(error)})
    record = record.model_copy(update={"duration_ms": int((time.monotonic() - started) * 1000)})
    _tell(ctx, record)
    return record


def eligible_insights(ctx: RunContext, insights: Sequence[Insight]) -> list[Insight]:
    """Insights that may be acted on, most severe first: the accepted verdicts, and those no validation ran on."""
    accepted = {*ctx.project.recommendation_verdicts, CombinedVerdict.VALIDATION_DISABLED}
    eligible = [
        insight
        for insight in insights
        if insight.validation is None
        or insight.validation.combined is None
        or insight.validation.combined in accepted
    ]
    ranked = sorted(eligible, key=lambda insight: (insight.severity.rank, -insight.risk_score))
    return ranked[: ctx.policy.recommendation.insights]


def _prompt(ctx: RunContext, previous: Previous, eligible: Sequence[Insight]) -> str:
    areas = Counter(insight.analysis_area for insight in eligible)
    summary = (
        f"Total: {len(eligible)} insights ({', '.join(f'{area}: {count}' for area, count in areas.items())})"
    )
    told = [
        {
            **insight.model_dump(mode="json", include=set(_TOLD), exclude_none=True),
            "figures": _figure_list(insight),
        }
        for insight in eligible
    ]
    body = recommendations_prompt(
        ctx,
        date=f"{clock.now():%Y-%m-%d}",
        summary=summary,
        insights=json.dumps(told, ensure_ascii=False, indent=1, default=str),
    )
    rules = render("recommendation_rules", LANGUAGE=ctx.project.language)
    return f"{base_context(ctx, previous)}\n\n{body}\n\n{rules}"


def _figure_list(insight: Insight) -> dict[str, str]:
    return {figure.id: figure.text for figure in insight.figures if figure.text is not None}


def _ask(ctx: RunContext, record: RecommendationStep, eligible: Sequence[Insight]) -> RecommendationStep:
    policy = ctx.policy.recommendation
    messages: tuple[Message, ...] = (Message("user", record.prompt),)
    tokens_in = tokens_out = 0
    for again in range(policy.parse_retries + 1):
        ctx.check()
        completion = ctx.model.complete(
            CompletionRequest(
                layer="recommendations", messages=messages, max_output_tokens=policy.output_tokens
            )
        )
        tokens_in += completion.usage.input_tokens or 0
        tokens_out += completion.usage.output_tokens or 0
        record = record.model_copy(
            update={
                "response": completion.text,
                "tokens_in": tokens_in,
                "tokens_out": tokens_out,
                "recommendation_parse_retries": again,
            }
        )
        try:
            items = read_items(completion, key="recommendations")
        except ModelOutputError as error:
            messages = _reasked(messages, completion, error)
            failure = {"status": "recommendation_parse_error", "error": str(error)}
            continue
        return _counted(
            record, items.dropped, [read_recommendation(item, eligible=eligible) for item in items.objects]
        )
    return record.model_copy(update=failure)


def _reasked(
    messages: tuple[Message, ...], completion: Completion, error: ModelOutputError
) -> tuple[Message, ...]:
    answer = (Message("assistant", completion.text),) if completion.text.strip() else ()
    return (*messages, *answer, Message("user", render("reparse", REASON=error.reason)))


def _counted(record: RecommendationStep, not_objects: int, read: Sequence[Read]) -> RecommendationStep:
    """The kept recommendations by priority, and a counter for each reason one was dropped."""
    dropped = Counter(item.dropped for item in read if item.dropped)
    dropped["parse"] += not_objects
    kept: list[Recommendation] = [item.recommendation for item in read if item.recommendation is not None]
    kept.sort(key=lambda recommendation: recommendation.priority)
    status = ""
    if not kept and dropped["unresolved_figures"]:
        status = "recommendation_figures_unresolved"
    elif not kept and dropped["parse"]:
        status = "recommendation_parse_error"
    return record.model_copy(
        update={
            "recommendations": kept,
            "status": status,
            "recommendations_dropped": sum(dropped.values()),
            "recommendations_dropped_parse": dropped["parse"],
            "recommendations_dropped_missing_ids": dropped["missing_ids"],
            "recommendations_dropped_unknown_id": dropped["unknown_id"],
            "recommendations_dropped_unresolved_figures": dropped["unresolved_figures"],
            "recommendations_resolved_slugs": sum(item.resolved_slugs for item in read),
        }
    )


def _tell(ctx: RunContext, record: RecommendationStep) -> None:
    dropped = record.recommendations_dropped
    suffix = f" ({dropped} dropped)" if dropped else ""
    row = RunStep(
        phase=StoredPhase.RECOMMENDATIONS,
        timestamp=clock.now(),
        type=StepType.ERROR if record.error else StepType.RECOMMENDATION,
        message=f"Generated {counted(len(record.recommendations), 'recommendation')}{suffix}",
        error=record.error,
    )
    try:
        ctx.store.feed.append(ctx.fenced, row)
    except TransientError as error:
        _logger.warning("feed row not written", error=str(error))
    ctx.progress.step(row, percent=90)
