"""The Level-0 catalogue: one line per table for the exploration prompt, within a token budget.

    main.flights | 19c | 336.8K rows | delay | -> planes, airlines

Rendered once per run by the schema phase. Tables that look archived are dropped first, then those with the fewest rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay_agent.policy import estimate_tokens
from assay_core.model.table import TableSchema

_ARCHIVE = re.compile(r"_(?:\d{4}|log|archive|bkp|backup|tmp|temp|stg|staging)$", re.IGNORECASE)
_MAX_JOINS = 4
_MAX_REF_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The catalogue as text, what it costs, and how many tables it leaves out."""

    text: str
    tokens: int
    table_count: int
    omitted: int


def render_rows(count: int | None) -> str:
    """542, 14.3K, 2.1M, 1.2B or unknown."""
    if count is None:
        return "unknown"
    for size, suffix in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "K")):
        if count >= size:
            return f"{count / size:.1f}{suffix}"
    return str(count)


def render_catalog(
    tables: Sequence[TableSchema], *, keywords: Sequence[str], budget_tokens: int, max_keywords: int
) -> Catalog:
    """Lines sorted by name, cut to the budget; what was left out is said in a last line."""
    joins = guess_joins(tables)
    lines = {
        table.ref: _line(table, keywords=keywords, max_keywords=max_keywords, joins=joins.get(table.ref, ()))
        for table in tables
    }
    kept = _within_budget(tables, lines, budget_tokens=budget_tokens)
    text = "\n".join(lines[ref] for ref in sorted(kept))
    omitted = len(lines) - len(kept)
    if omitted:
        text += f"\n… {omitted} smaller or archived tables are not listed; search_tables finds them."
    return Catalog(text=text, tokens=estimate_tokens(text), table_count=len(lines), omitted=omitted)


def _within_budget(
    tables: Sequence[TableSchema], lines: Mapping[str, str], *, budget_tokens: int
) -> set[str]:
    def keep_first(table: TableSchema) -> tuple[bool, int, str]:
        return bool(_ARCHIVE.search(table.ref)), -(table.row_count or 0), table.ref

    kept: set[str] = set()
    used = estimate_tokens("… 000000 smaller or archived tables are not listed; search_tables finds them.")
    for table in sorted(tables, key=keep_first):
        cost = estimate_tokens(lines[table.ref] + "\n")
        if used + cost > budget_tokens:
            break
        used += cost
        kept.add(table.ref)
    return kept


def _line(table: TableSchema, *, keywords: Sequence[str], max_keywords: int, joins: Sequence[str]) -> str:
    name = table.ref.lower()
    matched = [word for word in dict.fromkeys(keywords) if word.lower() in name][:max_keywords]
    parts = [table.ref[:_MAX_REF_CHARS], f"{len(table.columns)}c", f"{render_rows(table.row_count)} rows"]
    parts.append(", ".join(matched) if matched else "-")
    if joins:
        parts.append(f"-> {', '.join(joins)}")
    return " | ".join(" ".join(part.split()) for part in parts)


def guess_joins(tables: Sequence[TableSchema]) -> dict[str, tuple[str, ...]]:
    """Tables that a table's columns seem to point at: a column named as another table's key column.

    A column counts as a key where it is a primary key, or the first column of a table and named like it.
    """
    owners: dict[str, list[str]] = {}
    for table in tables:
        for position, column in enumerate(table.columns):
            if column.category == "primary_key" or position == 0:
                owners.setdefault(column.name.lower(), []).append(table.ref)
    result: dict[str, tuple[str, ...]] = {}
    for table in tables:
        own_keys = {column.name.lower() for column in table.columns if column.category == "primary_key"}
        found: list[str] = []
        for column in table.columns:
            name = column.name.lower()
            candidates = owners.get(name, [])
            if name in ("id", "name") or (name in own_keys and len(own_keys) == 1) or len(candidates) > 3:
                continue
            found += [ref for ref in candidates if ref != table.ref and ref not in found]
        if found:
            result[table.ref] = tuple(found[:_MAX_JOINS])
    return result
