"""Phase 4: one call per area over the steps that bear on it; each insight's numbers computed from the rows it cites.

Areas run side by side in a bounded thread map and are merged in priority order, so that the documents do not depend on which one
finished first. A failing area is recorded and left without a checkpoint, so that a resume tries it again.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from assay_agent.context import RunContext
from assay_agent.discovery.explore import Exploration
from assay_agent.discovery.insights import read_insight, without_repeats
from assay_agent.discovery.recall import Previous
from assay_agent.discovery.restore import restored_areas
from assay_agent.discovery.step_index import StepIndex, index_steps
from assay_agent.discovery.templates import area_prompt, base_context
from assay_agent.evidence.picker import Picked, pick, rank
from assay_agent.evidence.wording import counted
from assay_agent.llm.replies import read_items
from assay_agent.policy import estimate_tokens
from assay_agent.ports import Completion, CompletionRequest, Message
from assay_agent.prompts import render, template
from assay_core import clock, log
from assay_core.errors import AllAreasFailed, AssayError, BudgetExhausted, ModelOutputError, TransientError
from assay_core.model.insight import Insight
from assay_core.model.pack import Area
from assay_core.model.run import RunStep, StepType, StoredPhase
from assay_core.model.step import AnalysisAreaCheckpoint, AnalysisStep, ExplorationStep

_logger = log.logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Area steps and insights in priority order; `errors` name the areas that failed."""

    steps: tuple[AnalysisStep, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def insights(self) -> list[Insight]:
        return [insight for step in self.steps for insight in step.insights]


@dataclass(slots=True)
class AnalysisSoFar:
    """Areas finished, kept outside the phase so that a run that ends early can still save them."""

    steps: dict[str, AnalysisStep] = field(default_factory=dict)

    def in_order(self, areas: tuple[Area, ...]) -> Analysis:
        done = without_repeats([self.steps[area.id] for area in areas if area.id in self.steps])
        return Analysis(
            steps=done, errors=tuple(f"{step.area_id}: {step.error}" for step in done if step.error)
        )


def analyze(ctx: RunContext, previous: Previous, exploration: Exploration, so_far: AnalysisSoFar) -> Analysis:
    """Analyse every area that has no restored result. All areas failing raises AllAreasFailed."""
    so_far.steps |= restored_areas(ctx, exploration)
    todo = [area for area in ctx.areas if area.id not in so_far.steps]
    if so_far.steps:
        already = f"{len(so_far.steps)} of {len(ctx.areas)} areas were already complete"
        ctx.fenced.mark(set={"phase_detail": f"Analysing; {already}"})
        ctx.progress.note(already)
        for step in so_far.in_order(ctx.areas).steps:
            _tell(ctx, step)
    index = index_steps(ctx, exploration) if todo else StepIndex(ctx)
    with ThreadPoolExecutor(max_workers=ctx.policy.analysis.threads, thread_name_prefix="area") as pool:
        futures = [
            pool.submit(_analyze_area, ctx, previous, area, index, exploration.attempt) for area in todo
        ]
        try:
            for area, future in zip(todo, futures, strict=True):
                so_far.steps[area.id] = future.result()
                _tell(ctx, so_far.steps[area.id])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    analysis = so_far.in_order(ctx.areas)
    ctx.fenced.mark(set={"insights_found": len(analysis.insights)})
    if len(analysis.errors) == len(ctx.areas):
        raise AllAreasFailed(f"every analysis area failed; the first: {analysis.errors[0]}")
    return analysis


def _analyze_area(
    ctx: RunContext,
    previous: Previous,
    area: Area,
    index: StepIndex,
    exploration_attempt: int,
) -> AnalysisStep:
    """One area from picking to checkpoint. Its failure is its own: recorded, not raised."""
    ctx.check()
    ctx.fenced.is_mine()
    started = time.monotonic()
    step = AnalysisStep(area_id=area.id, area_name=area.name, run_at=clock.now())
    with log.bound(area=area.id):
        try:
            step = _ask_area(ctx, previous, area, index, step)
        except BudgetExhausted:
            raise
        except AssayError as error:
            _logger.warning("area failed", error=str(error))
            step = step.model_copy(update={"error": str(error)})
        step = step.model_copy(update={"duration_ms": int((time.monotonic() - started) * 1000)})
        if step.error is None:
            _write_checkpoint(ctx, step, exploration_attempt)
    return step


def _ask_area(
    ctx: RunContext,
    previous: Previous,
    area: Area,
    index: StepIndex,
    step: AnalysisStep,
) -> AnalysisStep:
    picked, prompt = _prompt(ctx, previous, area, index)
    fields: dict[str, object] = {
        "relevant_queries": len(picked.steps),
        "picked_steps": list(picked.steps),
        "dropped_steps": list(picked.dropped),
    }
    if not picked.steps:
        # Nothing bears on this area: that is an answer, and costs no call.
        return step.model_copy(update=fields)
    fields["prompt"] = prompt
    messages: tuple[Message, ...] = (Message("user", prompt),)
    tokens_in = tokens_out = 0
    for again in range(ctx.policy.analysis.parse_retries + 1):
        completion = _complete(ctx, messages)
        tokens_in += completion.usage.input_tokens or 0
        tokens_out += completion.usage.output_tokens or 0
        try:
            items = read_items(completion, key="insights")
        except ModelOutputError as error:
            if again == ctx.policy.analysis.parse_retries:
                raise
            messages = _reasked(messages, completion, error)
            continue
        found = [
            read_insight(item, area_id=area.id, number=number, steps=index.steps, at=clock.now())
            for number, item in enumerate(items.objects[: ctx.policy.analysis.insights_per_area], start=1)
        ]
        insights = [insight for insight in found if insight is not None]
        return step.model_copy(
            update={
                **fields,
                "response": completion.text,
                "tokens_in": tokens_in,
                "tokens_out": tokens_out,
                "insights": insights,
                "insight_count": len(insights),
                "insights_dropped_parse": items.dropped + len(found) - len(insights),
                "parse_retries": again,
            }
        )
    raise AssertionError("unreachable: the last try returns or raises")


def _prompt(ctx: RunContext, previous: Previous, area: Area, index: StepIndex) -> tuple[Picked, str]:
    """The area's prompt, its digests fitted into what the rest leaves of the budget."""
    policy = ctx.policy.analysis
    rules = render(
        "analysis_rules",
        AREA_ID=area.id,
        MAX_INSIGHTS=str(policy.insights_per_area),
        LANGUAGE=ctx.project.language,
        FIGURE_RULES=template("figure_rules"),
    )
    context = base_context(ctx, previous)
    fixed = estimate_tokens(context + area.prompt + rules)
    window = ctx.model.context_tokens - policy.output_tokens
    room = max(min(policy.area_tokens, window) - fixed, 0)
    picked = pick(_ranked(ctx, area, index), room_tokens=room, policy=policy, digest=ctx.policy.digest)
    body = area_prompt(ctx, area, entries=picked.entries, count=len(picked.steps))
    crumbs = (
        "\n\nAlso run, left out for length:\n" + "\n".join(picked.breadcrumbs) if picked.breadcrumbs else ""
    )
    return picked, f"{context}\n\n{body}{crumbs}\n\n{rules}"


def _ranked(ctx: RunContext, area: Area, index: StepIndex) -> list[tuple[float, ExplorationStep]]:
    policy = ctx.policy.analysis
    text = f"{area.name}. {area.description} {' '.join(area.keywords)}"
    scores = index.near(text, top_k=policy.top_k, min_score=policy.min_score)
    return rank(list(index.steps.values()), scores, keywords=area.keywords, policy=policy)


def _complete(ctx: RunContext, messages: tuple[Message, ...]) -> Completion:
    ctx.check()
    return ctx.model.complete(
        CompletionRequest(
            layer="analysis", messages=messages, max_output_tokens=ctx.policy.analysis.output_tokens
        )
    )


def _reasked(
    messages: tuple[Message, ...], completion: Completion, error: ModelOutputError
) -> tuple[Message, ...]:
    again = Message("user", render("reparse", REASON=error.reason))
    answer = (Message("assistant", completion.text),) if completion.text.strip() else ()
    return (*messages, *answer, again)


def _write_checkpoint(ctx: RunContext, step: AnalysisStep, exploration_attempt: int) -> None:
    row = AnalysisAreaCheckpoint(
        **{name: getattr(step, name) for name in AnalysisStep.model_fields},
        run_id=ctx.run.id,
        project_id=ctx.project.id,
        attempt=ctx.attempt,
        exploration_attempt=exploration_attempt,
        created_at=clock.now(),
    )
    try:
        ctx.store.checkpoints.write_area(ctx.fenced, row)
    except TransientError as error:
        _logger.warning("area checkpoint not written", error=str(error))


def _tell(ctx: RunContext, step: AnalysisStep) -> None:
    """Feed rows of a finished area: one for the area, one per insight."""
    rows = [
        RunStep(
            phase=StoredPhase.ANALYSIS,
            timestamp=clock.now(),
            type=StepType.ERROR if step.error else StepType.ANALYSIS,
            message=f"{step.area_name}: {counted(step.insight_count, 'insight')} from {counted(step.relevant_queries, 'result')}",
            error=step.error,
        )
    ]
    rows += [
        RunStep(
            phase=StoredPhase.ANALYSIS,
            timestamp=clock.now(),
            type=StepType.INSIGHT,
            message=insight.name,
            insight_name=insight.name,
            insight_severity=insight.severity,
        )
        for insight in step.insights
    ]
    for row in rows:
        try:
            ctx.store.feed.append(ctx.fenced, row)
        except TransientError as error:
            _logger.warning("feed row not written", error=str(error))
        ctx.progress.step(row, percent=75)
