"""Find JSON objects in a model's reply: fences, reasoning tags, channel markup, prose around them.

Used by the exploration parser and by the readers of analysis and recommendation replies. Pure, and total: any text
gives a list (perhaps empty) and never an exception.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_FENCE = re.compile(r"```[ \t]*([A-Za-z0-9_-]*)[ \t]*\r?\n?(.*?)```", re.DOTALL)
_REASONING_TAGS = ("think", "thinking", "reasoning", "thought", "scratchpad")
_REASONING = re.compile(rf"<({'|'.join(_REASONING_TAGS)})\b[^>]*>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_LONE_CLOSE = re.compile(rf"^(.*)</(?:{'|'.join(_REASONING_TAGS)})\s*>", re.DOTALL | re.IGNORECASE)
_LONE_OPEN = re.compile(rf"<(?:{'|'.join(_REASONING_TAGS)})\b[^>]*>(.*)$", re.DOTALL | re.IGNORECASE)
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(\w+)[^<]*?(?:<\|constrain\|>[^<]*)?<\|message\|>(.*?)(?=<\|(?:end|call|return|start|channel)\|>|$)",
    re.DOTALL,
)
_MARKUP = re.compile(r"<\|[a-z_]+\|>|</?tool_call>|</?function_call>", re.IGNORECASE)
_OBJECT_START = re.compile(r"\{\s*[\"}]")
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}\[\]]', re.DOTALL)
"""A string is taken whole, to the end of the text where it is not closed, so that braces in it do not count."""
_DECODER = json.JSONDecoder(strict=False)
_SCAN_LIMIT_CHARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Parts:
    """A reply split into what was said and what was thought."""

    answer: str
    reasoning: str


def split_reasoning(text: str) -> Parts:
    """Separate reasoning blocks from the answer; a lone closing tag makes all before it reasoning."""
    text = text[:_SCAN_LIMIT_CHARS]
    if "<" not in text:
        return Parts(answer=text.strip(), reasoning="")
    thoughts: list[str] = []
    channels = _CHANNEL.findall(text)
    if channels:
        thoughts += [body for channel, body in channels if channel == "analysis"]
        text = "\n".join(body for channel, body in channels if channel != "analysis")
    thoughts += [body for _, body in _REASONING.findall(text)]
    text = _REASONING.sub(" ", text)
    closing = _LONE_CLOSE.match(text)
    if closing:
        thoughts.append(closing.group(1))
        text = text[closing.end() :]
    opening = _LONE_OPEN.search(text)
    if opening:
        thoughts.append(opening.group(1))
        text = text[: opening.start()]
    return Parts(answer=_MARKUP.sub(" ", text).strip(), reasoning="\n".join(thoughts).strip())


@dataclass(frozen=True, slots=True)
class Found:
    """Objects in reading order, and whether the text ends inside one."""

    objects: tuple[dict[str, Any], ...]
    truncated: bool


def find_objects(text: str) -> Found:
    """Every top-level JSON object of a text: bodies of json or untagged fences first, then a string-aware scan."""
    fenced: list[dict[str, Any]] = []
    for tag, body in _FENCE.findall(text):
        if tag.lower() in ("", "json", "json5", "jsonc") and body.lstrip().startswith("{"):
            value = decode(body.strip())
            if isinstance(value, dict):
                fenced.append(value)
    scanned: list[dict[str, Any]] = []
    truncated = False
    position = 0
    while (start := _OBJECT_START.search(text, position)) is not None:
        end = _balanced_end(text, start.start())
        if end is None:
            truncated = True
            break
        value = decode(text[start.start() : end])
        if isinstance(value, dict):
            scanned.append(value)
        position = end
    return Found(objects=(*fenced, *scanned), truncated=truncated)


def decode(text: str) -> Any:
    """JSON that may hold raw line breaks inside strings; None when it is not JSON."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _balanced_end(text: str, start: int) -> int | None:
    """Index after the brace that closes the object at `start`, or None when the text ends first."""
    depth = 0
    for sign in _STRING_OR_BRACE.finditer(text, start):
        character = sign.group()[0]
        if character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return sign.end()
    return None
