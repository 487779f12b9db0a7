"""What a step leaves in the store: the marker, the checkpoint, the feed row, and at the end the summary.

Mark first: it proves ownership and vouches for the step before. Rows are best effort, a gap only stops a later replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from assay_agent.budgets import Budget
from assay_agent.context import RunContext
from assay_agent.discovery.desk import SchemaDesk
from assay_agent.discovery.phase import exploring_percent
from assay_agent.discovery.steps import Taken
from assay_agent.llm.roles import RoleModels
from assay_core import clock, log
from assay_core.errors import TransientError
from assay_core.model.run import RunStep, StepType, StoredPhase
from assay_core.model.step import ExplorationCheckpoint, ExplorationStep, StepAction
from assay_core.store import faults

_logger = log.logger(__name__)


def record_step(ctx: RunContext, desk: SchemaDesk, taken: Taken) -> None:
    """Mark first (it proves ownership and vouches for the step before), then the checkpoint and the feed row."""
    step = taken.step
    queried = step.action is StepAction.QUERY_DATA
    percent = exploring_percent(step.step, ctx.max_steps)
    row = feed_row(taken)
    written = ctx.store.checkpoints.mark_step(
        ctx.fenced,
        checkpoint(ctx, taken),
        row,
        set={
            "progress": percent,
            "phase_detail": f"Step {step.step} of {ctx.max_steps}",
            "schema_lookup_calls": desk.lookups,
            "schema_search_calls": desk.searches,
            **spent_so_far(ctx),
        },
        inc={
            "total_queries": int(queried),
            "successful_queries": int(queried and step.error is None),
            "failed_queries": int(queried and step.error is not None),
        },
    )
    if not written:
        _logger.warning("checkpoint not written", step=step.step)
    faults.reach("after:step")
    ctx.progress.step(row, percent=percent)


def spent_so_far(ctx: RunContext) -> dict[str, Any]:
    """What the run has spent, for its document: written with every step, so that a death forgets one call at most."""
    if not isinstance(ctx.model, RoleModels):
        return {}
    return {
        "usage": ctx.model.usage(),
        "rows_read": int(ctx.ledger.spent.get(Budget.ROWS, 0)),
        "bytes_scanned": int(ctx.ledger.spent.get(Budget.BYTES, 0)),
    }


def record_replay(
    ctx: RunContext, desk: SchemaDesk, steps: Sequence[ExplorationStep], feed: Sequence[RunStep]
) -> None:
    """The run document as these steps left it, whatever the last attempt counted after them; and their feed rows, as ours."""
    queries = [step for step in steps if step.action is StepAction.QUERY_DATA]
    failed = sum(step.error is not None for step in queries)
    percent = exploring_percent(len(steps), ctx.max_steps)
    ctx.fenced.mark(
        set={
            "progress": percent,
            "phase_detail": f"Step {len(steps)} of {ctx.max_steps}",
            "schema_lookup_calls": desk.lookups,
            "schema_search_calls": desk.searches,
            "total_queries": len(queries),
            "successful_queries": len(queries) - failed,
            "failed_queries": failed,
        },
        raise_to={"last_checkpoint_step": len(steps)},
    )
    try:
        ctx.store.feed.append_all(ctx.fenced, feed)
    except TransientError as error:
        _logger.warning("replayed feed rows not written", error=str(error))
    ctx.progress.note(f"{len(steps)} steps of the last attempt are taken over, none is paid for again")


def checkpoint(ctx: RunContext, taken: Taken) -> ExplorationCheckpoint:
    """The step as a replay needs it: at most 50 rows, no fix history, the arguments beside it."""
    # Every value has been checked once, on the step; to validate it again for each step would only cost time.
    return _BLANK.model_copy(
        update={
            **vars(taken.step),
            **taken.arguments.fields(),
            "query_result": taken.step.query_result[: ctx.policy.checkpoint.sample_rows],
            "fix_history": [],
            "run_id": ctx.run.id,
            "project_id": ctx.project.id,
            "step_number": taken.step.step,
            "attempt": ctx.attempt,
            "created_at": clock.now(),
        }
    )


_NEVER = datetime.fromtimestamp(0, UTC)
_BLANK = ExplorationCheckpoint(
    timestamp=_NEVER,
    action=StepAction.QUERY_DATA,
    run_id="",
    project_id="",
    step_number=0,
    created_at=_NEVER,
)
"""What `checkpoint` fills in: every field, in the order of the model."""

_FEED_TYPES = {
    StepAction.QUERY_DATA: StepType.QUERY,
    StepAction.LOOKUP_SCHEMA: StepType.LOOKUP_SCHEMA,
    StepAction.SEARCH_TABLES: StepType.SEARCH_TABLES,
    StepAction.COMPLETE: StepType.COMPLETE,
    StepAction.COMPLETE_REJECTED: StepType.COMPLETE_REJECTED,
}


def feed_row(taken: Taken) -> RunStep:
    """One line of the live feed."""
    step = taken.step
    queried = step.action is StepAction.QUERY_DATA
    return RunStep(
        phase=StoredPhase.EXPLORATION,
        step_num=step.step,
        timestamp=step.timestamp,
        type=_FEED_TYPES.get(step.action, StepType.QUERY),
        message=step.query_purpose or taken.detail or step.thinking,
        llm_thinking=step.thinking or None,
        query=(step.query_executed or step.query) or None,
        query_result=f"{step.row_count} rows" if queried and step.error is None else None,
        row_count=step.row_count,
        query_time_ms=step.execution_time_ms if queried else None,
        query_fixed=step.fixed if queried else None,
        error=step.error,
    )


def write_summary(ctx: RunContext, *, steps: int, completed: bool, message: str, duration_ms: int) -> None:
    ctx.fenced.mark(raise_to={"last_checkpoint_step": steps})
    summary = ExplorationCheckpoint(
        run_id=ctx.run.id,
        project_id=ctx.project.id,
        step_number=0,
        attempt=ctx.attempt,
        kind="exploration_summary",
        timestamp=clock.now(),
        action=StepAction.COMPLETE,
        created_at=clock.now(),
        completed=completed,
        completion_msg=message,
        total_steps=steps,
        exploration_duration_ms=duration_ms,
    )
    try:
        ctx.store.checkpoints.write_summary(ctx.fenced, summary)
    except TransientError as error:
        _logger.warning("exploration summary not written", error=str(error))
