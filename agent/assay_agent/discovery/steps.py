"""One step of exploration: ask for an action, carry it out, say what came of it. Used live and in a replay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from assay_agent.context import RunContext
from assay_agent.discovery.ask import Asked, ask_action
from assay_agent.discovery.desk import SchemaDesk
from assay_agent.discovery.querying import run_step_query
from assay_agent.exploration.actions import Finish, Lookup, Query, Search, action_json
from assay_agent.exploration.conversation import Conversation, Turn
from assay_agent.exploration.messages import brief, result_message, too_early
from assay_agent.exploration.stopping import may_finish
from assay_core import clock
from assay_core.model.step import ExplorationStep, StepAction


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayArguments:
    """What was asked, where the step itself only records what came back."""

    datasource_id: str | None = None
    lookup_schema: list[str] | None = None
    search_tables: str | None = None
    search_top_k: int | None = None
    reject_reason: str | None = None
    completion_msg: str | None = None

    def fields(self) -> dict[str, Any]:
        """By the names a checkpoint has for them."""
        return {
            "datasource_id": self.datasource_id,
            "lookup_schema": self.lookup_schema,
            "search_tables": self.search_tables,
            "search_top_k": self.search_top_k,
            "reject_reason": self.reject_reason,
            "completion_msg": self.completion_msg,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One step taken: its record, both turns of the conversation, tables it showed, and what a replay needs."""

    step: ExplorationStep
    assistant: str
    reply: str
    detail: str = ""
    tables: tuple[str, ...] = ()
    arguments: ReplayArguments = ReplayArguments()
    finished: bool = False

    def turn(self) -> Turn:
        return Turn(
            step=self.step.step,
            assistant=self.assistant,
            user=self.reply,
            brief=brief(self.step, detail=self.detail),
            tables=self.tables,
        )


def take(ctx: RunContext, desk: SchemaDesk, conversation: Conversation, number: int) -> Taken:
    """Ask for an action and carry it out; the step carries the tokens of every try and repair."""
    asked = ask_action(ctx, conversation.messages(), step=number)
    if isinstance(asked.action, Query):
        step = run_step_query(ctx, desk, asked.action, number=number)
        return queried(ctx, asked.action, _with_tokens(step, asked))
    taken = without_query(ctx, desk, conversation, asked.action, number=number)
    return replace(taken, step=_with_tokens(taken.step, asked))


def _with_tokens(step: ExplorationStep, asked: Asked) -> ExplorationStep:
    return step.model_copy(
        update={
            "tokens_in": asked.tokens_in + (step.tokens_in or 0),
            "tokens_out": asked.tokens_out + (step.tokens_out or 0),
        }
    )


def queried(ctx: RunContext, action: Query, step: ExplorationStep) -> Taken:
    """A query that has run, now or in a former attempt."""
    return Taken(
        step=step,
        assistant=action_json(action),
        reply=result_message(step, policy=ctx.policy.exploration),
        arguments=ReplayArguments(datasource_id=action.datasource_id),
    )


def without_query(
    ctx: RunContext,
    desk: SchemaDesk,
    conversation: Conversation,
    action: Lookup | Search | Finish,
    *,
    number: int,
) -> Taken:
    """Lookups, searches and the end: cheap, and done again by a replay to restore budgets."""
    match action:
        case Lookup():
            return _look_up(desk, conversation, action, number=number)
        case Search():
            answer = desk.search(action.text, action.top_k)
            return Taken(
                step=_plain(number, StepAction.SEARCH_TABLES, action.rationale, row_count=answer.count),
                assistant=action_json(action),
                reply=answer.text,
                detail=action.text,
                arguments=ReplayArguments(search_tables=action.text, search_top_k=action.top_k),
            )
        case Finish():
            return _finish(ctx, action, number=number)


def _look_up(desk: SchemaDesk, conversation: Conversation, action: Lookup, *, number: int) -> Taken:
    answer = desk.lookup(
        action.refs, visible=conversation.visible_tables(), datasource_id=action.datasource_id
    )
    return Taken(
        step=_plain(number, StepAction.LOOKUP_SCHEMA, action.rationale, row_count=answer.count),
        assistant=action_json(action),
        reply=answer.text,
        detail=", ".join(action.refs),
        tables=answer.tables,
        arguments=ReplayArguments(lookup_schema=list(action.refs), datasource_id=action.datasource_id),
    )


def _finish(ctx: RunContext, action: Finish, *, number: int) -> Taken:
    arguments = ReplayArguments(completion_msg=action.summary)
    if may_finish(step=number, min_steps=ctx.min_steps):
        return Taken(
            step=_plain(number, StepAction.COMPLETE, action.rationale, purpose=action.summary),
            assistant=action_json(action),
            reply="",
            finished=True,
            arguments=arguments,
        )
    return Taken(
        step=_plain(number, StepAction.COMPLETE_REJECTED, action.rationale),
        assistant=action_json(action),
        reply=too_early(step=number, min_steps=ctx.min_steps, max_steps=ctx.max_steps),
        detail=f"refused, the floor is {ctx.min_steps} steps",
        arguments=replace(arguments, reject_reason="floor"),
    )


def _plain(
    number: int, action: StepAction, thinking: str, *, row_count: int = 0, purpose: str = ""
) -> ExplorationStep:
    return ExplorationStep(
        step=number,
        timestamp=clock.now(),
        action=action,
        thinking=thinking,
        query_purpose=purpose,
        row_count=row_count,
    )
