"""Findings over time: direction, break, and season. Pure; figures carry every number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

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
from assay_agent.scout.writer.periods import without_cut_ends
from assay_agent.scout.writer.shape import beyond_chance

_LEAST_ETA = 0.002
_STEADY = 0.7
"""Rank correlation with time from which a movement is called steady."""


def trend(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """Volume and means by period; a first or last period that is clearly cut is left out."""
    unit = exhibit.parts[1]
    rows, by_day = _whole(exhibit.rows, unit) if exhibit.whole else ([], False)
    if len(rows) < 4:
        return
    left = [row for row in exhibit.rows if row not in rows]
    measures = [name for name in rows[0] if name.startswith("mean_")]
    for column in ["n_rows", *measures]:
        told = _movement(exhibit, rows, column, unit, left, by_day=by_day)
        if told is not None:
            yield told


def _whole(rows: Sequence[dict[str, Any]], unit: str) -> tuple[list[dict[str, Any]], bool]:
    """Without cut periods at either end, and whether the days they cover told so."""
    whole = without_cut_ends(rows, unit)
    return (_complete(rows, unit), False) if whole is None else (whole, True)


def _complete(rows: Sequence[dict[str, Any]], unit: str) -> list[dict[str, Any]]:
    """Without periods at either end that hold too few rows to be whole; a decade at the end seldom is."""
    counts = sorted(number(row, "n_rows") for row in rows)
    usual = counts[len(counts) // 2]
    kept = list(rows)
    if unit == "decade":
        ends = [(0, 1), (-1, -2)] if len(kept) > 5 else []
        cut = [
            end
            for end, next_to in ends
            if number(kept[end], "n_rows") < 0.8 * number(kept[next_to], "n_rows")
        ]
        kept = kept[1 if 0 in cut else 0 : -1 if -1 in cut else None]
    while len(kept) > 3 and number(kept[0], "n_rows") < usual * 0.5:
        kept.pop(0)
    while len(kept) > 3 and number(kept[-1], "n_rows") < usual * 0.5:
        kept.pop()
    return kept


def _movement(
    exhibit: Exhibit,
    rows: Sequence[dict[str, Any]],
    column: str,
    unit: str,
    left: Sequence[dict[str, Any]],
    *,
    by_day: bool,
) -> dict[str, Any] | None:
    points = [(row, number(row, column)) for row in rows]
    points = [(row, value) for row, value in points if math.isfinite(value)]
    if len(points) < 4:
        return None
    values = [value for _, value in points]
    mean = sum(values) / len(values)
    top, bottom = max(points, key=lambda item: item[1]), min(points, key=lambda item: item[1])
    scale = abs(mean) or 1.0
    spread = (top[1] - bottom[1]) / scale
    volume = column == "n_rows"
    if spread < 0.05 or not (_scatters(values) if volume else _differs(points, column)):
        return None
    steady = _rank_correlation(values)
    called = f"complete {unit}" if by_day else unit
    effect = min(0.15 + 0.35 * min(spread, 1.5), 0.7) * (1.0 if volume or abs(steady) >= _STEADY else 0.95)
    draft = Draft(exhibit, effect=effect, sample=sum(number(row, "n_rows") for row in rows))
    table = table_name(exhibit.table)
    what = f"number of {table} rows" if volume else mean_of(column.removeprefix("mean_"))
    style: dict[str, Any] = {"unit": "count"} if volume else {}
    whole = f"whole {unit}" if left else unit
    high_at, low_at = where("period", top[0]["period"]), where("period", bottom[0]["period"])
    high, low = draft.cell(column, high_at, **style), draft.cell(column, low_at, **style)
    high_label, low_label = (
        draft.label("period", top[0]["period"]),
        draft.label("period", bottom[0]["period"]),
    )
    first, last = points[0][0]["period"], points[-1][0]["period"]
    first_value = draft.cell(column, where("period", first), **style)
    last_value = draft.cell(column, where("period", last), **style)
    details = [
        f"highest in {high_label}: {high}; lowest in {low_label}: {low}",
        f"from {first_value} in the first {called} ({draft.label('period', first)}) to {last_value} in the last ({draft.label('period', last)})",
        _direction(steady, unit),
    ]
    if not volume:
        details.append("the number of rows behind each value is in the evidence")
    if left:
        named = " and ".join(draft.label("period", row["period"]) for row in left[:4])
        details.append(
            f"left out as {'cut short' if by_day else f'too few rows for a whole {unit}'}: {named}{' and others' if len(left) > 4 else ''}"
        )
    ends = (str(top[0]["period"]), str(bottom[0]["period"]))
    broke = _break(points)
    if broke is not None:
        details.append(f"the largest lasting shift starts in {draft.label('period', broke)}")
    return draft.insight(
        name=f"{sentence(what)}{'' if volume else f' in {table}'} per {whole} moves between {low} ({low_label}) and {high} ({high_label})",
        takeaway=f"The {what} per {whole} is highest in {high_label} with {high} and lowest in {low_label} with {low}.",
        details=details,
        affected=number(top[0], "n_rows"),
        segment=f"{table} over time",
        metrics={"relative_spread": round(spread, 4), "rank_correlation_with_time": round(steady, 3)},
        echoes=[
            ("trend", column if volume else exhibit.table, unit, *ends),
            ("trend", column, unit, *ends),
        ],
    )


def _scatters(counts: Sequence[float]) -> bool:
    """Whether counts differ more than counts of independent events do: variance against mean, as a chi-square ratio."""
    mean = sum(counts) / len(counts)
    return mean > 0 and sum((count - mean) ** 2 for count in counts) / mean / (len(counts) - 1) > 4


def _differs(points: Sequence[tuple[dict[str, Any], float]], column: str) -> bool:
    """Whether the means of the periods differ beyond chance and by more than a trifle of the variance."""
    squares = f"squares_{column.removeprefix('mean_')}"
    sizes = [number(row, "n_rows") for row, _ in points]
    n = sum(sizes)
    mean = sum(size * value for size, (_, value) in zip(sizes, points, strict=True)) / n
    between = sum(size * (value - mean) ** 2 for size, (_, value) in zip(sizes, points, strict=True))
    total = sum(size * number(row, squares) for size, (row, _) in zip(sizes, points, strict=True))
    if not total > 0:
        return False
    return beyond_chance(min(between / total, 1 - 1e-12), len(points), n) and between / total >= _LEAST_ETA


def _direction(steady: float, unit: str) -> str:
    if steady >= _STEADY:
        return f"it rises rather steadily from {unit} to {unit} (Spearman rank correlation with time)"
    if steady <= -_STEADY:
        return f"it falls rather steadily from {unit} to {unit} (Spearman rank correlation with time)"
    return "there is no steady direction, it goes up and down"


def _rank_correlation(values: Sequence[float]) -> float:
    """Spearman's rho of the values with their order, ties averaged."""
    n = len(values)
    ordered = sorted(values)
    ranks = [(ordered.index(value) + n - 1 - ordered[::-1].index(value)) / 2 for value in values]
    centre = (n - 1) / 2
    top = sum((index - centre) * (rank - centre) for index, rank in enumerate(ranks))
    below = math.sqrt(
        sum((index - centre) ** 2 for index in range(n)) * sum((rank - centre) ** 2 for rank in ranks)
    )
    return top / below if below else 0.0


def _break(points: Sequence[tuple[dict[str, Any], float]]) -> Any:
    """The period at which the mean shifts most, if the shift is large against what varies on either side."""
    values = [value for _, value in points]
    best: tuple[float, int] | None = None
    for split in range(2, len(values) - 1):
        before, after = values[:split], values[split:]
        a, b = sum(before) / len(before), sum(after) / len(after)
        inside = sum((v - a) ** 2 for v in before) + sum((v - b) ** 2 for v in after)
        deviation = math.sqrt(inside / max(len(values) - 2, 1)) or 1e-12
        score = abs(a - b) / deviation * math.sqrt(len(before) * len(after) / len(values))
        if best is None or score > best[0]:
            best = (score, split)
    return points[best[1]][0]["period"] if best is not None and best[0] > 6 else None


def season(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """The best and the worst hour, weekday or month."""
    _, part, measure = exhibit.parts
    column = f"mean_{measure}"
    rows = [row for row in exhibit.rows if math.isfinite(number(row, column))]
    if len(rows) < 3:
        return
    top, bottom = rows[0], rows[-1]
    eta = number(top, "eta_squared")
    if not eta >= _LEAST_ETA or not beyond_chance(eta, number(top, "n_groups"), number(top, "n_all")):
        return
    draft = Draft(exhibit, effect=min(0.15 + 1.1 * math.sqrt(eta), 0.7), sample=number(top, "n_all"))
    a, b = where(part, top[part]), where(part, bottom[part])
    high_label, low_label = draft.label(part, top[part]), draft.label(part, bottom[part])
    high, low = draft.cell(column, a), draft.cell(column, b)
    table = table_name(exhibit.table)
    of_large = ""
    if number(top, "n_groups") > exhibit.row_count:
        of_large = f", of those with {draft.cell('min_rows', a, unit='count')} rows or more"
    yield draft.insight(
        name=f"{sentence(mean_of(measure))} by {said(part)} in {table} is highest at {high_label} ({high}) and lowest at {low_label} ({low}){of_large}",
        takeaway=f"In {table}, the {said(part)} with the highest {mean_of(measure)} is {high_label} with {high}; the lowest is {low_label} with {low}{of_large}.",
        details=[
            f"a difference of {draft.difference(column, a, b)} against an overall mean of {draft.cell('overall_mean', a)}",
            f"{high_label}: {draft.cell('n_rows', a, unit='count')} rows; {low_label}: {draft.cell('n_rows', b, unit='count')} rows; groups below {draft.cell('min_rows', a, unit='count')} rows are left out",
            f"{said(part)} explains {draft.share('eta_squared', a)} of the variance (eta squared, one-way analysis of variance)",
        ],
        affected=number(top, "n_rows"),
        segment=f"{said(part)} {high_label}",
        metrics={"eta_squared": eta},
        echoes=[("season", exhibit.table, part, str(top[part])), ("season", part, measure, str(top[part]))],
    )
