"""Read a list of items from a model's reply, item by item, and coerce the fields models get wrong. Pure.

Used by the analysis and recommendation phases. A reply that was cut off is never read, even where what is left happens to be
valid; a reply without the list is an error, never an empty list.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay_agent.llm.objects import decode, find_objects, split_reasoning
from assay_agent.ports import Completion
from assay_core.errors import ModelOutputError, ModelRefusal

_FENCED_ARRAY = re.compile(r"```(?:json)?\s*(\[.*?\])\s*```", re.DOTALL | re.IGNORECASE)
_PRIORITY_WORDS = {
    "critical": 1, "urgent": 1, "highest": 1, "high": 2, "important": 2,
    "medium": 3, "moderate": 3, "normal": 3, "low": 4, "optional": 5, "lowest": 5,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Items:
    """Objects in reading order; `dropped` counts entries that are no objects at all."""

    objects: tuple[dict[str, Any], ...]
    dropped: int


def read_items(completion: Completion, *, key: str) -> Items:
    """The list under `key` (or a bare array). Raises ModelRefusal or ModelOutputError."""
    if completion.finish in ("refusal", "unknown"):
        raise ModelRefusal("the model declined to answer")
    if completion.finish == "length":
        raise ModelOutputError("the answer was cut off at its token limit", reason="truncated")
    text = completion.text if completion.text.strip() else completion.reasoning
    parts = split_reasoning(text)
    for body in (parts.answer, parts.reasoning):
        found = _list_in(body, key)
        if found is not None:
            objects = tuple(item for item in found if isinstance(item, dict))
            return Items(objects=objects, dropped=len(found) - len(objects))
    reason = "empty" if not text.strip() else f"it holds no JSON object with the list {key!r}"
    raise ModelOutputError(f"the answer could not be read: {reason}", reason=reason)


def _list_in(text: str, key: str) -> list[Any] | None:
    stripped = text.strip()
    fenced = _FENCED_ARRAY.search(stripped)
    for candidate in (stripped, fenced.group(1) if fenced else ""):
        if candidate.startswith("["):
            value = decode(candidate)
            if isinstance(value, list):
                return value
    found = find_objects(stripped)
    for item in reversed(found.objects):
        if isinstance(item.get(key), list):
            return list(item[key])
    return None


def number(value: Any) -> float | None:
    """A finite number from a number or a text such as "1,200", "67%", "~3"; a percentage becomes its fraction."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    if not isinstance(value, str):
        return None
    match = re.fullmatch(r"\s*[~≈$€£]?\s*([-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(%)?\s*", value)
    if not match:
        return None
    result = float(match.group(1).replace(",", ""))
    return result / 100 if match.group(2) else result


def fraction(value: Any) -> float:
    """0 to 1; a value above 1 and up to 100 is a percentage; anything else 0."""
    result = number(value)
    if result is None or result < 0:
        words = {"high": 0.8, "medium": 0.5, "low": 0.2}
        return words.get(value.strip().lower(), 0.0) if isinstance(value, str) else 0.0
    return min(result / 100 if 1 < result <= 100 else result, 1.0)


def whole(value: Any) -> int:
    """A whole number, 0 where there is none; capped to what a document can hold."""
    result = number(value)
    return 0 if result is None else int(max(min(result, 2**53), -(2**53)))


def text_of(value: Any) -> str:
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)


def texts(value: Any) -> list[str]:
    """A list of texts from a list, or from one text with a line per entry."""
    if isinstance(value, str):
        value = [re.sub(r"^\s*(?:[-*•]|\d+[.)])\s*", "", line) for line in value.splitlines()]
    if not isinstance(value, list):
        return []
    return [text for item in value if (text := text_of(item))]


def step_numbers(value: Any) -> list[int]:
    """Step numbers from [1, "2", "step 3", {"step": 4}]."""
    values: Sequence[Any] = value if isinstance(value, list) else [value]
    found: list[int] = []
    for item in values:
        raw = item.get("step") if isinstance(item, dict) else item
        match = re.search(r"\d+", raw) if isinstance(raw, str) else None
        step = int(match.group(0)) if match else whole(raw)
        if step > 0 and step not in found:
            found.append(step)
    return found


def priority(value: Any) -> int:
    """1 to 5 from a number, "P2", or a word; 3 where nothing fits."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _PRIORITY_WORDS:
            return _PRIORITY_WORDS[word]
        match = re.search(r"[1-5]", word)
        return int(match.group(0)) if match else 3
    return min(max(whole(value) or 3, 1), 5)
