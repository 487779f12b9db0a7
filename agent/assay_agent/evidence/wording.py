"""Counts in prose. Pure."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 finding`, `2 findings`, `1 query`, `1,000 queries`."""
    if count == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {plural}"
