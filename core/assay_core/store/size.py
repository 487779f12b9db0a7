"""Keeps a document under the server's size limit by giving up the least needed parts first. Pure.

Called by `fence` before a write that would be refused. The order: result rows (fewer, then none; the digest
remains), then the digest's rows, then long texts, then long lists. The document itself, its keys and its
short fields stay, and a `truncated` caveat on it says what went. A step is never lost for being large.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

LIMIT_BYTES = 16_252_928
"""15.5 MiB: the server refuses 16 MiB, and an update adds its own envelope."""

_ROWS_KEPT = (1_000, 200, 50, 10, 0)
_CHARS_KEPT = (200_000, 50_000, 10_000, 2_000, 500)
_ITEMS_KEPT = (10_000, 1_000, 100, 20, 5)
_DIGEST_ROWS = ("rows", "head", "tail")


def bson_size(value: Any) -> int:
    """Bytes of a canonical value as BSON: exact for documents made by `encoding.canonical`."""
    if isinstance(value, dict):
        return 5 + sum(2 + _text_bytes(key) + bson_size(item) for key, item in value.items())
    if isinstance(value, list):
        return 5 + sum(2 + len(str(index)) + bson_size(item) for index, item in enumerate(value))
    if isinstance(value, str):
        return 5 + _text_bytes(value)
    if value is None:
        return 0
    if isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return 4 if -(2**31) <= value < 2**31 else 8
    return 8 if isinstance(value, (float, datetime)) else 12


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def fit(document: dict[str, Any], *, limit_bytes: int = LIMIT_BYTES) -> dict[str, Any]:
    """`document` (canonical) as it is when it fits, else a copy made smaller, with a caveat that says how."""
    if bson_size(document) <= limit_bytes:
        return document
    # Room for the caveat itself.
    goal = limit_bytes - 300
    smaller, said = _first_that_fits(_degrees(document), goal)
    caveat = {"kind": "truncated", "text": f"too large to store whole: {said}"}
    kept = [item for item in smaller.get("caveats") or [] if isinstance(item, dict)][:20]
    return {**smaller, "caveats": [*kept, caveat]}


def _first_that_fits(degrees: Iterator[tuple[dict[str, Any], str]], goal: int) -> tuple[dict[str, Any], str]:
    smallest = next(degrees)
    while bson_size(smallest[0]) > goal:
        following = next(degrees, None)
        if following is None:
            break
        smallest = following
    return smallest


def _degrees(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The document in ever smaller forms, each with the words for what is missing."""
    smaller = document
    rows = document.get("query_result")
    if isinstance(rows, list):
        for kept in _ROWS_KEPT:
            if kept < len(rows):
                smaller = {**smaller, "query_result": rows[:kept]}
                yield smaller, f"{kept} of {len(rows)} result rows are kept"
    digest = document.get("digest")
    if isinstance(digest, dict):
        smaller = {**smaller, "digest": {k: [] if k in _DIGEST_ROWS else v for k, v in digest.items()}}
        yield smaller, "result rows and the rows of the digest are left out"
    for chars in _CHARS_KEPT:
        smaller = _cut_texts(smaller, chars)
        yield smaller, f"rows are left out and texts cut to {chars} characters"
    for items in _ITEMS_KEPT:
        smaller = _cut_lists(smaller, items)
        yield smaller, f"rows are left out, texts cut, and lists cut to {items} items"


def _cut_texts(value: Any, chars: int) -> Any:
    if isinstance(value, dict):
        return {key: _cut_texts(item, chars) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut_texts(item, chars) for item in value]
    if isinstance(value, str) and len(value) > chars:
        return value[: chars - 1] + "…"
    return value


def _cut_lists(value: Any, items: int) -> Any:
    if isinstance(value, dict):
        return {key: _cut_lists(item, items) for key, item in value.items()}
    return [_cut_lists(item, items) for item in value[:items]] if isinstance(value, list) else value
