"""Phase 3: the model asks, the warehouse answers, every step is written down before the next one.

Steps that a former attempt left are taken first, through the same functions, without model or warehouse; then the loop asks on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay_agent.context import RunContext
from assay_agent.discovery.desk import SchemaDesk
from assay_agent.discovery.recall import Previous
from assay_agent.discovery.records import feed_row, record_replay, record_step, write_summary
from assay_agent.discovery.schema import Schema
from assay_agent.discovery.steps import Taken, queried, take, without_query
from assay_agent.discovery.templates import exploration_system
from assay_agent.exploration.actions import Action, Query
from assay_agent.exploration.conversation import Conversation
from assay_agent.exploration.messages import action_format
from assay_agent.exploration.replay import action_of
from assay_agent.prompts import render
from assay_core.errors import CheckpointUnusable
from assay_core.model.run import RunStep
from assay_core.model.step import ExplorationCheckpoint, ExplorationStep, StepAction
from assay_core.resume import replayable


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """All steps in order; `attempt` is the one that wrote the summary, which areas are tied to."""

    steps: tuple[ExplorationStep, ...]
    attempt: int
    completed: bool
    message: str
    duration_ms: int
    restored: bool = False
    limitations: tuple[str, ...] = ()


def explore(ctx: RunContext, previous: Previous, schema: Schema) -> Exploration:
    """Explore until the model is done or the steps are used up."""
    started = time.monotonic()
    desk = SchemaDesk(ctx, schema)
    conversation = Conversation(
        system=exploration_system(ctx, previous, schema),
        opening=_opening(ctx),
        budget_tokens=ctx.policy.exploration.conversation_tokens,
    )
    steps, summary = _replay(ctx, desk, conversation)
    if summary is not None:
        return Exploration(
            steps=tuple(steps),
            attempt=summary.attempt,
            completed=bool(summary.completed),
            message=summary.completion_msg or "",
            duration_ms=summary.exploration_duration_ms or 0,
            restored=True,
            limitations=_limitations(desk),
        )
    # The last attempt may have died between the model's last word and the summary.
    completed = bool(steps) and steps[-1].action is StepAction.COMPLETE
    message = steps[-1].query_purpose if completed else ""
    for number in () if completed else range(len(steps) + 1, ctx.max_steps + 1):
        ctx.check()
        used = ctx.ledger.nearly_used(
            kept_share=ctx.policy.run.kept_for_analysis, elapsed_s=ctx.deadline.elapsed_ms() / 1000
        )
        if used is not None:
            message = f"the part of the budget for exploring is used up ({used})"
            ctx.progress.note(f"{message}; going on to the analysis")
            break
        taken = take(ctx, desk, conversation, number)
        record_step(ctx, desk, taken)
        steps.append(taken.step)
        conversation.append(taken.turn())
        if taken.finished:
            message, completed = taken.step.query_purpose, True
            break
    exploration = Exploration(
        steps=tuple(steps),
        attempt=ctx.attempt,
        completed=completed,
        message=message,
        duration_ms=int((time.monotonic() - started) * 1000),
        limitations=_limitations(desk),
    )
    write_summary(
        ctx,
        steps=len(steps),
        completed=completed,
        message=message,
        duration_ms=exploration.duration_ms,
    )
    return exploration


def _limitations(desk: SchemaDesk) -> tuple[str, ...]:
    said = desk.limitation()
    return () if said is None else (said,)


def _opening(ctx: RunContext) -> str:
    policy = ctx.policy.exploration
    dialects = dict.fromkeys(warehouse.dialect for warehouse in ctx.warehouses.values())
    return render(
        "exploration_opening",
        MAX_STEPS=str(ctx.max_steps),
        LOOKUP_CALLS=str(policy.lookup_calls),
        LOOKUP_TABLES=str(policy.lookup_tables_per_call),
        SEARCH_CALLS=str(policy.search_calls),
        DIALECT=", ".join(dialects),
        ROWS_SHOWN=str(policy.result_rows_shown),
        ACTION_FORMAT=action_format(ctx.datasources),
    )


def _replay(
    ctx: RunContext, desk: SchemaDesk, conversation: Conversation
) -> tuple[list[ExplorationStep], ExplorationCheckpoint | None]:
    """Take the steps a former attempt left. Queries are not run again; lookups and searches are."""
    if not ctx.resume:
        return [], None
    prefix = replayable(ctx.store.checkpoints.steps(ctx.run.id))
    summary = ctx.store.checkpoints.summary(ctx.run.id)
    if not prefix:
        why = "its steps have expired" if summary else "it left no steps"
        raise CheckpointUnusable(f"run {ctx.run.id} cannot be resumed: {why}; start a new run")
    steps: list[ExplorationStep] = []
    feed: list[RunStep] = []
    for row in prefix:
        action = action_of(row)
        if action is None:
            break
        taken = _retake(ctx, desk, conversation, row, action)
        steps.append(taken.step)
        feed.append(feed_row(taken))
        conversation.append(taken.turn())
    record_replay(ctx, desk, steps, feed)
    return steps, summary if _covers(summary, prefix, steps) else None


def _covers(
    summary: ExplorationCheckpoint | None,
    prefix: Sequence[ExplorationCheckpoint],
    steps: Sequence[ExplorationStep],
) -> bool:
    """Whether a summary ends this very exploration: of as many steps, and written by the attempt that took the last one."""
    return summary is not None and summary.total_steps == len(steps) and summary.attempt >= prefix[-1].attempt


def _retake(
    ctx: RunContext, desk: SchemaDesk, conversation: Conversation, row: ExplorationCheckpoint, action: Action
) -> Taken:
    step = ExplorationStep.model_validate({name: getattr(row, name) for name in ExplorationStep.model_fields})
    step = step.model_copy(update={"step": row.step_number})
    if isinstance(action, Query):
        return queried(ctx, action, step)
    return replace(without_query(ctx, desk, conversation, action, number=row.step_number), step=step)
