"""Findings about groups and values: concentration, differences between groups, outliers, associations. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from assay_agent.scout.questions import GROUPS_SHOWN
from assay_agent.scout.writer.evidence import Draft, Exhibit, number, said, table_name, where

_NEGLIGIBLE_ETA = 0.003
_FEW_GROUPS = 10
_DOMINANT = 0.6
"""Share of the most frequent of few values from which it is worth telling."""
_LARGE_DIFFERENCE = 0.25
"""Difference of means against the overall mean that is worth telling even where most variance lies within groups."""


def concentration(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    _, column = exhibit.parts
    if not exhibit.rows:
        return
    first = exhibit.rows[0]
    groups, share = number(first, "n_groups"), number(first, "share_of_rows")
    if not groups >= 2:
        return
    if groups < _FEW_GROUPS:
        yield from _dominant(exhibit, column, first, share)
        return
    even = 1 / groups
    few = min(len(exhibit.rows), 10 if groups > 20 else 3)
    last = exhibit.rows[few - 1]
    held = number(last, "cumulative_share")
    excess = held - few * even
    if excess < 0.15:
        return
    draft = Draft(exhibit, effect=min(0.1 + 0.6 * excess, 0.7), sample=number(first, "n_rows"))
    top, table = draft.label(column, first[column]), table_name(exhibit.table)
    at, last_at = where(column, first[column]), where(column, last[column])
    largest, cumulative = draft.share("share_of_rows", at), draft.share("cumulative_share", last_at)
    word = {3: "three", 10: "ten", 2: "two", 1: "one"}.get(few, "few")
    total = draft.cell("n_groups", at, unit="count")
    yield draft.insight(
        name=f"The {word} largest {said(column)} values hold {cumulative} of {table} rows, {top} alone {largest}",
        takeaway=f"Of {total} different values of {said(column)}, the {word} largest hold {cumulative} of the rows of {table}.",
        details=[
            f"{top} is the largest with {draft.cell('n_rows', at, unit='count')} rows, {largest} of all",
            "whatever concerns the largest values moves every total over this table",
        ],
        affected=number(first, "n_rows"),
        segment=f"{said(column)} {top}",
        metrics={
            "share_of_largest": share,
            "share_of_largest_few": held,
            "times_even_share": round(share / even, 2),
        },
    )


def _dominant(exhibit: Exhibit, column: str, first: dict[str, Any], share: float) -> Iterator[dict[str, Any]]:
    """Of few values one that nearly every row has: the column says little about most rows."""
    if share < _DOMINANT:
        return
    draft = Draft(exhibit, effect=0.15 + 0.3 * (share - _DOMINANT), sample=number(first, "n_rows"))
    top, table, at = (
        draft.label(column, first[column]),
        table_name(exhibit.table),
        where(column, first[column]),
    )
    largest = draft.share("share_of_rows", at)
    yield draft.insight(
        name=f"{said(column).capitalize()} is {top} in {largest} of the rows in {table}",
        takeaway=f"{largest} of the rows of {table} have the same {said(column)}, {top}.",
        details=[
            f"{draft.cell('n_rows', at, unit='count')} rows; {draft.cell('n_groups', at, unit='count')} values occur in all",
            "a mean over the whole table says mostly how these rows are",
        ],
        affected=number(first, "n_rows"),
        segment=f"{said(column)} {top}",
        metrics={"share_of_largest": share},
    )


def group(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """The groups with the highest and lowest mean, with sizes and the share of variance the grouping explains."""
    _, dimension, measure = exhibit.parts
    column = f"mean_{measure}"
    rows = [row for row in exhibit.rows if math.isfinite(number(row, column))]
    if len(rows) < 2:
        return
    top, bottom = rows[0], rows[-1]
    eta, n_all = number(top, "eta_squared"), number(top, "n_all")
    relative = abs(number(top, column) - number(bottom, column)) / (abs(number(top, "overall_mean")) or 1.0)
    if not (eta >= _NEGLIGIBLE_ETA or relative >= _LARGE_DIFFERENCE) or not _beyond_chance(
        eta, number(top, "n_groups"), n_all
    ):
        return
    if dimension == measure or eta > 0.98:
        return
    draft = Draft(
        exhibit,
        effect=min(0.15 + 1.1 * math.sqrt(eta), 0.7),
        sample=min(number(top, "n_rows"), number(bottom, "n_rows")),
    )
    a, b = where(dimension, top[dimension]), where(dimension, bottom[dimension])
    high_label = draft.label(dimension, top[dimension])
    high, n_high = draft.cell(column, a), draft.cell("n_rows", a, unit="count")
    table = table_name(exhibit.table)
    details = [
        f"{high_label}: {high} over {n_high} rows; the overall mean is {draft.cell('overall_mean', a)}"
    ]
    if exhibit.row_count < GROUPS_SHOWN:
        low_label, low = draft.label(dimension, bottom[dimension]), draft.cell(column, b)
        name = f"Mean {said(measure)} by {said(dimension)}: {high_label} is highest with {high}, {low_label} lowest with {low}"
        takeaway = f"In {table}, {said(dimension)} {high_label} has the highest mean {said(measure)} with {high}, {low_label} the lowest with {low}."
        details.append(
            f"{low_label}: {low} over {draft.cell('n_rows', b, unit='count')} rows, {draft.difference(column, a, b)} less"
        )
    else:
        name = f"Mean {said(measure)} is highest for {said(dimension)} {high_label} with {high}"
        takeaway = (
            f"In {table}, {said(dimension)} {high_label} has the highest mean {said(measure)} with {high}."
        )
    runner_up = rows[1:3]
    if runner_up and len(rows) > 3:
        told = "; ".join(
            f"{draft.label(dimension, row[dimension])} {draft.cell(column, where(dimension, row[dimension]))}"
            for row in runner_up
        )
        details.append(f"next: {told}")
    details += [
        f"groups below {draft.cell('min_rows', a, unit='count')} rows are left out",
        f"{said(dimension)} explains {draft.share('eta_squared', a)} of the variance in {said(measure)} (eta squared, one-way analysis of variance, far beyond chance)",
        "a difference between groups is not yet its cause",
    ]
    yield draft.insight(
        name=name,
        takeaway=takeaway,
        details=details,
        affected=number(top, "n_rows"),
        segment=f"{said(dimension)} {high_label}",
        metrics={
            "eta_squared": eta,
            "mean_highest": number(top, column),
            "mean_lowest_shown": number(bottom, column),
        },
    )


def _beyond_chance(eta: float, groups: float, n: float) -> bool:
    """The F statistic of a one-way analysis of variance, against a strict bound since many pairs are looked at."""
    if not (groups >= 2 and n > groups and eta < 1):
        return False
    return (eta / (groups - 1)) / ((1 - eta) / (n - groups)) > 8


def outliers(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    _, measure = exhibit.parts
    row = exhibit.rows[0]
    above, below, n = number(row, "n_far_above"), number(row, "n_far_below"), number(row, "n_rows")
    p25, p75, highest, lowest = (number(row, name) for name in ("p25", "p75", "highest", "lowest"))
    spread = p75 - p25
    if not n > 0 or not spread > 0 or not above + below > 0:
        return
    high_side = above >= below
    count, extreme = ("n_far_above", "highest") if high_side else ("n_far_below", "lowest")
    reach = ((highest - p75) if high_side else (p25 - lowest)) / spread
    draft = Draft(
        exhibit,
        effect=min(0.15 + 0.08 * math.log2(max(reach, 1)) + min((above + below) / n, 0.1) * 2, 0.7),
        sample=n,
    )
    table, side = table_name(exhibit.table), "above" if high_side else "below"
    how_many = draft.cell(count, unit="count")
    details = [
        f"half of the values lie between {draft.cell('p25')} and {draft.cell('p75')}, the median is {draft.cell('median')}",
        f"the {extreme} value is {draft.cell(extreme)}; far {side} means more than three times the distance between the quartiles beyond them",
        "the mean follows such values, the median does not; the rows do not say whether they are errors or real extremes",
    ]
    reaching = "up" if high_side else "down"
    yield draft.insight(
        name=f"{how_many} values of {said(measure)} in {table} lie far {side} the rest, {reaching} to {draft.cell(extreme)}",
        takeaway=f"{said(measure).capitalize()} in {table} has a long tail: {how_many} of {draft.cell('n_rows', unit='count')} values lie far {side} the bulk.",
        details=details,
        affected=above if high_side else below,
        segment=f"rows of {table} with extreme {said(measure)}",
        metrics={"reach_in_quartile_distances": round(reach, 2)},
    )


def correlation(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """Pairs of measures that move together; at most three, the strongest first."""
    told = 0
    for row in exhibit.rows:
        r, n = number(row, "pearson_r"), number(row, "n_rows")
        if told >= 3 or not abs(r) >= 0.3 or not n >= 30 or abs(r) * math.sqrt(n) < 6:
            continue
        told += 1
        a, b = str(row["column_a"]), str(row["column_b"])
        at = f"{where('column_a', a)} AND {where('column_b', b)}"
        draft = Draft(exhibit, effect=min(0.1 + 0.5 * abs(r), 0.6), sample=n)
        table = table_name(exhibit.table)
        size = draft.cell("pearson_r", at, decimals=2)
        together = "rise together" if r > 0 else "move in opposite directions"
        details = [f"over {draft.cell('n_rows', at, unit='count')} rows that have both"]
        if abs(r) > 0.95:
            details.append("this close, one is likely computed from the other or measures the same thing")
        details.append("Pearson correlation, linear and without regard to a common cause")
        yield draft.insight(
            name=f"{said(a).capitalize()} and {said(b)} {together} in {table} (correlation {size})",
            takeaway=f"In {table}, {said(a)} and {said(b)} {together}: their Pearson correlation is {size}.",
            details=details,
            affected=n,
            segment=f"{table}",
            metrics={"pearson_r": r},
        )
