"""Ask the model for one action, with nudges when a reply cannot be used. Used by the explore phase.

A truncated reply raises the output budget once; a refusal ends the step at once, since the same conversation would be
refused again. The tokens of all tries count.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay_agent.context import RunContext
from assay_agent.exploration.actions import Action, Lookup, Query, parse_action
from assay_agent.exploration.messages import nudge
from assay_agent.ports import CompletionRequest, Message
from assay_core import log
from assay_core.errors import ModelOutputError

_logger = log.logger(__name__)
_REPLY_KEPT_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    action: Action
    tokens_in: int
    tokens_out: int


def ask_action(ctx: RunContext, messages: tuple[Message, ...], *, step: int) -> Asked:
    """The model's next action. After `parse_retries` nudges in vain: ModelOutputError, which fails the run."""
    policy = ctx.policy.exploration
    tail: tuple[Message, ...] = ()
    output_tokens = policy.output_tokens
    tokens_in = tokens_out = 0
    reason = ""
    for _ in range(policy.parse_retries + 1):
        ctx.check()
        completion = ctx.model.complete(
            CompletionRequest(
                layer="exploration", messages=(*messages, *tail), max_output_tokens=output_tokens
            )
        )
        tokens_in += completion.usage.input_tokens or 0
        tokens_out += completion.usage.output_tokens or 0
        try:
            action = _checked(ctx, parse_action(completion))
        except ModelOutputError as error:
            reason = error.reason
            _logger.warning("reply not usable", step=step, reason=reason)
            if reason == "truncated":
                output_tokens = policy.output_tokens_ceiling
            tail = _nudged(ctx, completion.text, reason)
            continue
        return Asked(action=action, tokens_in=tokens_in, tokens_out=tokens_out)
    raise ModelOutputError(
        f"{ctx.model.provider}/{ctx.model.model} gave no usable action at step {step} in "
        f"{policy.parse_retries + 1} tries (last: {reason}); choose a model that can answer in JSON",
        reason=reason,
    )


def _nudged(ctx: RunContext, reply: str, reason: str) -> tuple[Message, ...]:
    """The unusable reply and the nudge; an empty reply is not sent back, some providers refuse it."""
    ask = Message("user", nudge(reason, datasources=ctx.datasources))
    return (Message("assistant", reply[:_REPLY_KEPT_CHARS]), ask) if reply.strip() else (ask,)


def _checked(ctx: RunContext, action: Action) -> Action:
    """On a run with several datasources every query and lookup names one that exists."""
    if (
        isinstance(action, Query | Lookup)
        and len(ctx.warehouses) > 1
        and action.datasource_id not in ctx.warehouses
    ):
        raise ModelOutputError(f"datasource_id {action.datasource_id!r} is not known", reason="datasource")
    return action
