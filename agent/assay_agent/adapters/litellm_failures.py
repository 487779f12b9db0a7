"""What a provider's failure means and what to do about it. Pure; the tables are data.

`decide` sorts a failed call: try again after a while, send it once more without a parameter, or end with an error of ours. A
refusal and a context overflow arrive as plain 400s from most providers, so their texts decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from assay_core.errors import AssayError, ConfigError, ModelRefusal, TransientError
from assay_core.log import masked

RETRIED_STATUS = frozenset({408, 409, 429, 499, 500, 502, 503, 504, 529})
RETRY_AFTER_AT_MOST_S = 60.0
"""A provider that asks for more is told to the caller as gone: a run can be resumed later."""
_TEXT_CHARS = 300

_OVERFLOW: tuple[tuple[str, str], ...] = (
    ("openai", r"maximum context length is (?P<limit>\d+)|context_length_exceeded"),
    ("anthropic", r"prompt is too long: \d+ tokens > (?P<limit>\d+)"),
    ("bedrock", r"input is too long for requested model|too many input tokens"),
    (
        "vertex, gemini",
        r"input token count \(?\d+\)? exceeds the maximum number of tokens allowed \(?(?P<limit>\d+)",
    ),
    ("mistral", r"too large for model with (?P<limit>\d+) maximum context length"),
    ("vllm", r"maximum (?:model|context) length (?:of|is) (?P<limit>\d+)"),
    ("llama.cpp", r"exceeds the available context size|exceed_context_size_error"),
    ("ollama", r"(?:prompt|input) (?:is too long|length exceeds)"),
    ("groq, together", r"reduce the length of the (?:messages|prompt)"),
    ("openrouter", r"this endpoint's maximum context length is (?P<limit>\d+)"),
)
"""Provider → how it says that the prompt does not fit; the limit where it is told."""

_REFUSED: tuple[tuple[str, str], ...] = (
    ("openai, azure", r"content_policy_violation|content_filter|content management policy|safety system"),
    ("vertex, gemini", r"blocked by .*safety|prohibited_content|block_?reason"),
    ("bedrock", r"blocked by guardrail|guardrail_intervened"),
    ("anthropic", r"output blocked by content filtering"),
)

_UNSUPPORTED: tuple[str, ...] = (
    r"unsupported (?:parameter|value)s?:? ?'?(?P<name>[a-z_]+)",
    r"does not support parameters: \[?'(?P<name>[a-z_]+)'",
    r"unrecognized request argument supplied: (?P<name>[a-z_]+)",
    r"'(?P<name>[a-z_]+)' is (?:not supported|deprecated|not permitted)",
    r"(?P<name>temperature|top_p|reasoning_effort|max_tokens|max_completion_tokens) (?:is|are) not (?:supported|allowed)",
    r"extra inputs are not permitted.{0,40}?(?P<name>[a-z_]+)",
)
"""How a parameter is named that a model does not take."""

_RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""A limit is never simply dropped: what it would cost is not bounded then."""
_SDK_NAMES = re.compile(r"^litellm\.\w+: (\w+Error: )?(\w+Exception - )?")
_DROPPABLE = frozenset({"temperature", "top_p", "reasoning_effort", "num_ctx"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed call: HTTP status if there was one, the SDK's class, its text, and the header `Retry-After`."""

    kind: str
    text: str
    status: int | None = None
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """Try once more; `after_s` is what the provider asked for."""

    after_s: float | None
    error: TransientError


@dataclass(frozen=True, slots=True)
class Without:
    """Send it without this parameter, or under another name, and remember that for the model."""

    parameter: str
    renamed_to: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """Nothing that could be sent again would help."""

    error: AssayError


def decide(
    failure: Failure, *, provider: str, model: str, setting: str, sent: Mapping[str, Any], now: datetime
) -> Again | Without | End:
    """`setting` names the secret of this connection, `sent` the parameters of the call."""
    text = _plain(failure.text)
    named = f"{provider}/{model}"
    if failure.status in (401, 403):
        return End(
            ConfigError(
                f"{provider} does not accept the key ({failure.status}): set the secret {setting} to one that may use {model}"
            )
        )
    if failure.status == 404:
        return End(ConfigError(f"{provider} has no model {model!r} for this key (404): {text}"))
    if overflow := _match(_OVERFLOW, text):
        limit = overflow.groupdict().get("limit")
        told = f" of {int(limit):,} tokens" if limit else ""
        return End(
            ConfigError(
                f"the prompt does not fit the context window{told} of {named}; choose a model with a larger one"
            )
        )
    if failure.kind == "ContentPolicyViolationError" or _match(_REFUSED, text):
        return End(ModelRefusal(f"{named} refused the conversation by its content policy"))
    if failure.status in (400, 422):
        return _bad_request(text, sent, named)
    if failure.status is None or failure.status in RETRIED_STATUS or failure.status >= 500:
        after = retry_after_s(failure.retry_after, now=now)
        error = TransientError(
            f"{named} {'cannot be reached' if failure.status is None else f'does not answer ({failure.status})'}: {text}",
            dependency="model",
            retry_after_s=after,
        )
        if after is not None and after > RETRY_AFTER_AT_MOST_S:
            return End(error)
        return Again(after, error)
    return End(ConfigError(f"{named} refuses the request ({failure.status}): {text}"))


def retry_after_s(header: str | None, *, now: datetime) -> float | None:
    """Seconds of a `Retry-After` header in either form, a number or an HTTP date; None where it says nothing."""
    if not header:
        return None
    try:
        return max(float(header), 0.0)
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    return max(((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds(), 0.0)


def _bad_request(text: str, sent: Mapping[str, Any], named: str) -> Without | End:
    for pattern in _UNSUPPORTED:
        for match in re.finditer(pattern, text, re.IGNORECASE):
            name = match["name"].lower()
            if name in sent and name in _RENAMED:
                return Without(name, _RENAMED[name])
            if name in sent and name in _DROPPABLE:
                return Without(name)
    return End(ConfigError(f"{named} refuses the request (400): {text}"))


def _match(table: tuple[tuple[str, str], ...], text: str) -> re.Match[str] | None:
    found = (re.search(pattern, text, re.IGNORECASE) for _, pattern in table)
    return next((match for match in found if match is not None), None)


def _plain(text: str) -> str:
    """One line, short, without a key that is known, and without the SDK's own names in front."""
    return _SDK_NAMES.sub("", masked(" ".join(text.split())))[:_TEXT_CHARS]
