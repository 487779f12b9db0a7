"""One query step: guard, run and repair the statement, then make its result small. Used by the explore phase."""

from __future__ import annotations

from dataclasses import replace

from assay_agent.budgets import Budget
from assay_agent.context import RunContext
from assay_agent.discovery.desk import SchemaDesk
from assay_agent.evidence.digest import digest
from assay_agent.exploration.actions import Query
from assay_agent.policy import QueryPolicy
from assay_agent.ports import Completion, CompletionRequest, Message, QueryLimits
from assay_agent.sql.confined import is_confined
from assay_agent.sql.query import run_query
from assay_core import clock
from assay_core.model.step import ExplorationStep, StepAction

_FIX_OUTPUT_TOKENS = 4_000


def query_limits(policy: QueryPolicy) -> QueryLimits:
    return QueryLimits(
        rows=policy.rows,
        cell_chars=policy.cell_chars,
        result_bytes=policy.result_bytes,
        timeout_s=policy.timeout_s,
    )


def run_step_query(ctx: RunContext, desk: SchemaDesk, action: Query, *, number: int) -> ExplorationStep:
    """The step of a query. A statement that cannot be repaired gives a step with `error`, never an exception."""
    warehouse = ctx.warehouses.get(action.datasource_id or next(iter(ctx.warehouses)))
    if warehouse is None:
        return ExplorationStep(
            step=number,
            timestamp=clock.now(),
            action=StepAction.QUERY_DATA,
            thinking=action.rationale,
            query_purpose=action.purpose,
            query=action.sql,
            datasource_id=action.datasource_id,
            error=f"there is no datasource {str(action.datasource_id)[:60]!r}; known: {', '.join(ctx.warehouses)}",
        )

    def complete(messages: tuple[Message, ...]) -> Completion:
        ctx.check()
        return ctx.model.complete(
            CompletionRequest(layer="sql_fix", messages=messages, max_output_tokens=_FIX_OUTPUT_TOKENS)
        )

    limits = query_limits(ctx.policy.query)
    room = ctx.ledger.left(Budget.ROWS)
    if room is not None:
        limits = replace(limits, rows=max(min(limits.rows, int(room)), 1))
    bytes_left = ctx.ledger.left(Budget.BYTES)
    if bytes_left is not None:
        limits = replace(limits, scan_bytes=int(bytes_left))
    reserved = ctx.ledger.reserve(
        {Budget.ROWS: 0 if room is None else limits.rows, Budget.BYTES: limits.scan_bytes or 0}
    )
    ran = run_query(
        warehouse=warehouse,
        sql=action.sql,
        limits=limits,
        repairs=ctx.policy.query.repairs,
        complete=complete,
        clock=clock.now,
        step=number,
        schema_hint=desk.hint,
        rationale=action.rationale,
    )
    ctx.ledger.settle(
        reserved,
        {
            Budget.ROWS: len(ran.result.rows) if ran.result else 0,
            Budget.BYTES: ran.result.bytes_scanned if ran.result else 0,
        },
    )
    step = ExplorationStep(
        step=number,
        timestamp=clock.now(),
        action=StepAction.QUERY_DATA,
        thinking=action.rationale,
        query_purpose=action.purpose,
        query=action.sql,
        query_executed=ran.executed_sql if ran.fix_attempts or is_confined(warehouse) else None,
        datasource_id=action.datasource_id,
        error=ran.error,
        fix_attempts=ran.fix_attempts,
        fixed=bool(ran.fix_attempts and ran.error is None),
        fix_history=list(ran.fix_history),
        tokens_in=ran.tokens_in,
        tokens_out=ran.tokens_out,
    )
    if ran.result is None:
        return step
    small, caveats, rows = digest(
        ran.result.columns, ran.result.rows, policy=ctx.policy.digest, truncated=ran.result.truncated
    )
    return step.model_copy(
        update={
            "columns": list(ran.result.columns),
            "query_result": rows,
            "digest": small,
            "caveats": [*ran.result.caveats, *caveats],
            "row_count": len(ran.result.rows),
            "execution_time_ms": ran.result.duration_ms,
        }
    )
