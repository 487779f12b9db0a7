"""Findings about an outcome and a grouping: in which groups it is most and least frequent. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from assay_agent.scout.questions.question import GROUPS_SHOWN
from assay_agent.scout.writer.evidence import Draft, Exhibit, number, said, table_name, where

_LEAST_V = 0.05
_COPY_V = 0.98
_LEAST_EXPECTED = 5
"""Rows a group needs of either outcome, if it were like the rest, before its share is spoken of."""


def rate(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """The groups in which an outcome is most and least frequent, with sizes and Cramér's V."""
    _, grouping, outcome = exhibit.parts
    rows = [row for row in exhibit.rows if _is_large(row)]
    if len(rows) < 2:
        return
    top, bottom = rows[0], rows[-1]
    v, n = number(top, "cramers_v"), number(top, "n_all")
    spread = number(top, "share_with") - number(bottom, "share_with")
    if not _LEAST_V <= v <= _COPY_V or not spread > 0.01 or not _beyond_chance(v, number(top, "n_groups"), n):
        return
    draft = Draft(
        exhibit, effect=min(0.15 + v, 0.7), sample=min(number(top, "n_rows"), number(bottom, "n_rows"))
    )
    a, b = where(grouping, top[grouping]), where(grouping, bottom[grouping])
    high_label, low_label = draft.label(grouping, top[grouping]), draft.label(grouping, bottom[grouping])
    high, low = draft.share("share_with", a), draft.share("share_with", b)
    what = f"{said(outcome)} = {draft.cell('outcome_value', a)}"
    table, group = table_name(exhibit.table), said(grouping)
    details = [
        f"{high_label}: {draft.cell('n_with', a, unit='count')} of {draft.cell('n_rows', a, unit='count')} rows; the overall share is {draft.share('overall_share', a)}"
    ]
    if exhibit.row_count < GROUPS_SHOWN:
        name = f"{what} in {high} of {table} rows with {group} {high_label}, but {low} with {low_label}"
        takeaway = f"In {table}, {what} is most frequent for {group} {high_label} with {high} and least for {low_label} with {low}."
        details.append(
            f"{low_label}: {draft.cell('n_with', b, unit='count')} of {draft.cell('n_rows', b, unit='count')} rows"
        )
    else:
        name = f"{what} is most frequent in {table} for {group} {high_label} with {high}"
        takeaway = f"In {table}, {what} is most frequent for {group} {high_label} with {high}."
    if len(rows) >= 4:
        following = "; ".join(
            f"{draft.label(grouping, row[grouping])} {draft.share('share_with', where(grouping, row[grouping]))}"
            for row in rows[1:3]
        )
        details.append(f"next: {following}")
    details += [
        f"groups below {draft.cell('min_rows', a, unit='count')} rows are left out",
        f"Cramér's V is {draft.cell('cramers_v', a, decimals=2)} over {draft.cell('n_all', a, unit='count')} rows (chi-squared test, far beyond chance)",
        "a difference between groups is not yet its cause",
    ]
    yield draft.insight(
        name=name,
        takeaway=takeaway,
        details=details,
        affected=number(top, "n_with"),
        segment=f"{group} {high_label}",
        metrics={
            "cramers_v": v,
            "share_highest": number(top, "share_with"),
            "share_lowest_shown": number(bottom, "share_with"),
        },
    )


def _is_large(row: dict[str, Any]) -> bool:
    share, n = number(row, "overall_share"), number(row, "n_rows")
    return math.isfinite(number(row, "share_with")) and n * min(share, 1 - share) >= _LEAST_EXPECTED


def _beyond_chance(v: float, groups: float, n: float) -> bool:
    """Chi-squared per degree of freedom, against a strict bound since many pairs are looked at."""
    return groups >= 2 and v * v * n / (groups - 1) > 12
