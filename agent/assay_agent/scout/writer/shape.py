"""Findings about groups and values: concentration, differences between groups, outliers, associations. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from assay_agent.scout.questions.question import GROUPS_SHOWN
from assay_agent.scout.questions.shape import DETERMINED_ETA
from assay_agent.scout.writer.evidence import (
    Draft,
    Exhibit,
    mean_of,
    number,
    said,
    sentence,
    table_name,
    where,
)

_NEGLIGIBLE_ETA = 0.003
_TELLING_ETA = 0.1
_FEW_GROUPS = 10
_FEW_VALUES, _VERY_FAR = 3, 12.0
"""Values far from the rest that are worth telling, or else their distance in quartile distances."""
_MOST_OF_VALUES = 0.42
"""Effect of extreme values at most: they say how to treat a column, not what goes on."""
_NEARLY_ONE = 0.9
_PAIRS_TOLD, _BUNDLE_TOLD = 3, 3
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
        name=f"The {word} largest {said(column)} values hold {cumulative} of {table} rows, {said(column)} {top} alone {largest}",
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
        echoes=[("concentration", column)],
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
        name=f"{sentence(said(column))} is {top} in {largest} of the rows in {table}",
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
    if not (eta >= _NEGLIGIBLE_ETA or relative >= _LARGE_DIFFERENCE) or not beyond_chance(
        eta, number(top, "n_groups"), n_all
    ):
        return
    if dimension == measure or eta > DETERMINED_ETA:
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
    of_large = ""
    if number(top, "n_groups") > exhibit.row_count or exhibit.row_count >= GROUPS_SHOWN:
        of_large = f"of those with {draft.cell('min_rows', a, unit='count')} rows or more, "
    if exhibit.row_count < GROUPS_SHOWN:
        low_label, low = draft.label(dimension, bottom[dimension]), draft.cell(column, b)
        name = f"{sentence(mean_of(measure))} by {said(dimension)} in {table}: {of_large}{high_label} is highest with {high}, {low_label} lowest with {low}"
        takeaway = f"In {table}, {of_large}{said(dimension)} {high_label} has the highest {mean_of(measure)} with {high}, {low_label} the lowest with {low}."
        details.append(
            f"{low_label}: {low} over {draft.cell('n_rows', b, unit='count')} rows, {draft.difference(column, a, b)} less"
        )
    else:
        name = f"{sentence(mean_of(measure))} in {table} is highest for {said(dimension)} {high_label} with {high}"
        takeaway = (
            f"In {table}, {said(dimension)} {high_label} has the highest {mean_of(measure)} with {high}."
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
        echoes=[
            ("group", exhibit.table, dimension, str(top[dimension])),
            ("group", dimension, measure, str(top[dimension])),
        ],
    )


def beyond_chance(eta: float, groups: float, n: float) -> bool:
    """The F statistic of a one-way analysis of variance, against a strict bound since many pairs are looked at."""
    if not (groups >= 2 and n > groups and eta < 1):
        return False
    return (eta / (groups - 1)) / ((1 - eta) / (n - groups)) > 8


def outliers(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """Values far from the bulk, where they are more than a handful or very far."""
    _, measure = exhibit.parts
    row = exhibit.rows[0]
    above, below, n = number(row, "n_far_above"), number(row, "n_far_below"), number(row, "n_rows")
    p25, p75, highest, lowest = (number(row, name) for name in ("p25", "p75", "highest", "lowest"))
    spread = p75 - p25
    if not n > 0 or not spread > 0 or not above + below > 0:
        return
    high_side = above >= below
    far = max(above, below)
    count, extreme = ("n_far_above", "highest") if high_side else ("n_far_below", "lowest")
    reach = ((highest - p75) if high_side else (p25 - lowest)) / spread
    if far < _FEW_VALUES and reach < _VERY_FAR:
        return
    effect = 0.08 + 0.06 * math.log2(max(reach, 1)) + min(far / n, 0.1)
    draft = Draft(exhibit, effect=min(effect, _MOST_OF_VALUES), sample=n)
    table, side = table_name(exhibit.table), "above" if high_side else "below"
    how_many = draft.cell(count, unit="count")
    values = "value" if far == 1 else "values"
    lie = "lies" if far == 1 else "lie"
    details = [
        f"half of the values lie between {draft.cell('p25')} and {draft.cell('p75')}, the median is {draft.cell('median')}",
        f"the {extreme} value is {draft.cell(extreme)}; far {side} means more than three times the distance between the quartiles beyond them",
        "the mean follows such values, the median does not; the rows do not say whether they are errors or real extremes",
    ]
    reaching = "up" if high_side else "down"
    yield draft.insight(
        name=f"{how_many} {values} of {said(measure)} in {table} {lie} far {side} the rest, {reaching} to {draft.cell(extreme)}",
        takeaway=f"{sentence(said(measure))} in {table} has a long tail: {how_many} of {draft.cell('n_rows', unit='count')} values {lie} far {side} the bulk.",
        details=details,
        affected=far,
        segment=f"rows of {table} with extreme {said(measure)}",
        metrics={"reach_in_quartile_distances": round(reach, 2)},
    )


def separation(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """Of many measures, those that differ most between the groups of a dimension."""
    _, dimension = exhibit.parts
    known = [row for row in exhibit.rows if math.isfinite(number(row, "eta_squared"))]
    rows = [row for row in known if number(row, "eta_squared") <= DETERMINED_ETA]
    defined = [said(str(row["column_name"])) for row in known if row not in rows]
    if len(rows) < 3:
        return
    first = rows[0]
    eta, n = number(first, "eta_squared"), number(first, "n_rows")
    if not eta >= _TELLING_ETA or not beyond_chance(eta, number(first, "n_groups"), n):
        return
    draft = Draft(exhibit, effect=min(0.2 + 0.7 * math.sqrt(eta), 0.72), sample=n)
    at, table = where("column_name", first["column_name"]), table_name(exhibit.table)
    name, part = said(str(first["column_name"])), draft.share("eta_squared", at)
    aside = f", leaving out {' and '.join(defined[:3])}, which it all but determines" if defined else ""
    strong = [row for row in rows[1:5] if number(row, "eta_squared") >= _TELLING_ETA]
    next_ones = "; ".join(
        f"{said(str(row['column_name']))} {draft.share('eta_squared', where('column_name', row['column_name']))}"
        for row in strong
    )
    details = [f"next: {next_ones}"] if strong else []
    last = rows[-1]
    if last is not first and last not in strong:
        least = draft.share("eta_squared", where("column_name", last["column_name"]))
        details.append(f"least: {said(str(last['column_name']))} with {least}")
    details += [
        f"shares of variance between {draft.cell('n_groups', at, unit='count')} groups over {draft.cell('n_rows', at, unit='count')} rows (eta squared, one-way analysis of variance)",
        "what differs between groups goes with them; it need not be their cause",
    ]
    yield draft.insight(
        name=f"Of {draft.rows('column_name')} measures in {table}, {name} differs most by {said(dimension)}: {part} of its variance lies between the groups{aside}",
        takeaway=f"{sentence(said(dimension))} accounts for {part} of the variance of {name}, more than of any other of {draft.rows('column_name')} measures in {table}{aside}.",
        details=details,
        affected=n,
        segment=f"{table} by {said(dimension)}",
        metrics={"mean_highest": eta, "eta_squared": eta},
    )


def correlation(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """Measures that move together: those that are nearly one in one finding, then the strongest pairs of others."""
    pairs = [row for row in exhibit.rows if _is_telling(row)]
    bundles = _bundles(pairs)
    told: set[frozenset[str]] = set()
    for bundle in bundles:
        inside = [row for row in pairs if {str(row["column_a"]), str(row["column_b"])} <= bundle]
        if len(bundle) > 2 and len(told) < _PAIRS_TOLD:
            told.add(frozenset(bundle))
            yield _bundle(exhibit, sorted(bundle), inside)
    home = {name: min(bundle) for bundle in bundles if len(bundle) > 2 for name in bundle}
    for row in pairs:
        a, b = str(row["column_a"]), str(row["column_b"])
        ends = frozenset((home.get(a, a), home.get(b, b)))
        if len(ends) < 2 or ends in told or len(told) >= _PAIRS_TOLD:
            continue
        told.add(ends)
        yield _pair(exhibit, row, a, b)


def _is_telling(row: dict[str, Any]) -> bool:
    r, n = number(row, "pearson_r"), number(row, "n_rows")
    return abs(r) >= 0.3 and n >= 30 and abs(r) * math.sqrt(n) >= 6


def _bundles(pairs: Sequence[dict[str, Any]]) -> list[set[str]]:
    """Groups of measures in which each is tied to each by a very strong correlation, the strongest first."""
    tied = {
        frozenset((str(row["column_a"]), str(row["column_b"])))
        for row in pairs
        if abs(number(row, "pearson_r")) >= _NEARLY_ONE
    }
    bundles: list[set[str]] = []
    for row in pairs:
        for name in (str(row["column_a"]), str(row["column_b"])):
            if any(name in bundle for bundle in bundles):
                continue
            home = next((b for b in bundles if all(frozenset((name, other)) in tied for other in b)), None)
            if home is None:
                bundles.append({name})
            else:
                home.add(name)
    return bundles


def _bundle(exhibit: Exhibit, names: Sequence[str], inside: Sequence[dict[str, Any]]) -> dict[str, Any]:
    table, n = table_name(exhibit.table), max(number(row, "n_rows") for row in inside)
    size = sorted(inside, key=lambda row: abs(number(row, "pearson_r")))
    draft = Draft(exhibit, effect=min(0.1 + 0.35 * abs(number(size[-1], "pearson_r")), 0.44), sample=n)
    low, high = (_size(draft, row) for row in (size[0], size[-1]))
    listed = f"{', '.join(said(name) for name in names[:-1])} and {said(names[-1])}"
    left = len(names) - _BUNDLE_TOLD
    short = (
        listed if left < 2 else f"{', '.join(said(name) for name in names[:_BUNDLE_TOLD])} and {left} more"
    )
    return draft.insight(
        name=f"{sentence(short)} move as one in {table} (correlations from {low} to {high})",
        takeaway=f"In {table}, {listed} say nearly the same: each pair of them has a Pearson correlation between {low} and {high}.",
        details=[
            f"{said(str(row['column_a']))} and {said(str(row['column_b']))}: {_size(draft, row)}"
            for row in size[:-4:-1]
        ]
        + [
            "this close, some are likely computed from the others or measure the same thing",
            "whatever is found for one of them is found for all",
        ],
        affected=n,
        segment=table,
        metrics={"pearson_r": number(size[-1], "pearson_r")},
    )


def _pair(exhibit: Exhibit, row: dict[str, Any], a: str, b: str) -> dict[str, Any]:
    r, n = number(row, "pearson_r"), number(row, "n_rows")
    draft = Draft(exhibit, effect=min(0.1 + 0.35 * abs(r), 0.44), sample=n)
    table, size = table_name(exhibit.table), _size(draft, row)
    together = "rise together" if r > 0 else "move in opposite directions"
    details = [f"over {draft.cell('n_rows', _at(row), unit='count')} rows that have both"]
    if abs(r) > 0.95:
        details.append("this close, one is likely computed from the other or measures the same thing")
    details.append("Pearson correlation, linear and without regard to a common cause")
    return draft.insight(
        name=f"{sentence(said(a))} and {said(b)} {together} in {table} (correlation {size})",
        takeaway=f"In {table}, {said(a)} and {said(b)} {together}: their Pearson correlation is {size}.",
        details=details,
        affected=n,
        segment=table,
        metrics={"pearson_r": r},
    )


def _at(row: dict[str, Any]) -> str:
    return f"{where('column_a', row['column_a'])} AND {where('column_b', row['column_b'])}"


def _size(draft: Draft, row: dict[str, Any]) -> str:
    """A correlation with as many places as keep it from reading as exactly one."""
    r = abs(number(row, "pearson_r"))
    return draft.cell("pearson_r", _at(row), decimals=2 if r < 0.995 else 4 if r < 1 else 2)
