"""Figures: numbers in prose, computed from the rows of a step and never taken from the writer's word. Pure.

An insight's figure names step, operation, column and row filter; `resolve` computes it, compares it with what the writer
claimed, and prints it. A recommendation's figure refers to insights' figures. `write` puts printed values into prose.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from assay_agent.evidence.filters import FilterError, as_number, as_text, column_of, matching
from assay_core.model.insight import Figure
from assay_core.model.step import ExplorationStep

REFERENCE = re.compile(r"\{\{\s*([A-Za-z][A-Za-z0-9_]{0,31})\s*\}\}")
_SCALES = {"thousands": (1e3, "K"), "millions": (1e6, "M"), "billions": (1e9, "B")}
_LABEL = re.compile(r"(?i:(^|_)(id|year|yr|period|decade|code|zip)$)|[a-z](ID|Id|Year)$")
_WHERE = re.compile(r"\s+where\s+", re.IGNORECASE)
_TEXT_CHARS = 80


def resolve(figure: Figure, steps: Mapping[int, ExplorationStep]) -> Figure:
    """The figure with `computed`, `text` and `checked`, or with `problem` saying why it cannot be computed."""
    try:
        computed = _compute(figure, steps)
    except FilterError as error:
        return figure.model_copy(
            update={"problem": str(error), "checked": False, "text": None, "computed": None}
        )
    if isinstance(computed, str):
        return figure.model_copy(
            update={"computed": computed, "text": computed[:_TEXT_CHARS], "checked": True}
        )
    percent_factor = _percent_factor(figure, computed) if figure.unit == "percent" else 1.0
    shown = computed * percent_factor
    if not math.isfinite(shown):
        return figure.model_copy(
            update={"problem": "the value is larger than a number can hold", "checked": False}
        )
    text = _print(figure, shown)
    problem = None if _agrees(figure, shown) else f"the writer claimed {figure.value}, the rows give {text}"
    return figure.model_copy(
        update={"computed": computed, "text": text, "checked": problem is None, "problem": problem}
    )


def _compute(figure: Figure, steps: Mapping[int, ExplorationStep]) -> float | int | str:
    step = steps.get(figure.step) if figure.step is not None else None
    if step is None:
        raise FilterError(f"step {figure.step} is not one of this run's steps")
    if step.error is not None:
        raise FilterError(f"step {step.step} failed and has no rows")
    if not step.query_result:
        raise FilterError(f"step {step.step} returned no rows")
    rows = matching(step.query_result, figure.row)
    partial = len(step.query_result) < step.row_count or any(c.kind == "truncated" for c in step.caveats)
    match figure.kind:
        case "cell":
            return _cell(rows, figure.column)
        case "sum" | "count":
            if partial:
                raise FilterError(
                    f"step {step.step} keeps only part of its rows, so they cannot be counted or summed"
                )
            return _count(rows, figure.column) if figure.kind == "count" else _sum(rows, figure.column)
        case "ratio" | "diff":
            left = _number(rows, figure.column)
            right = _other(figure, step)
            if figure.kind == "diff":
                return left - right
            if right == 0:
                raise FilterError("division by zero")
            return left / right
        case "ref":
            raise FilterError("a reference to another figure belongs in a recommendation")


def _other(figure: Figure, step: ExplorationStep) -> float:
    """The second operand: a column of the same row, or `column where <row filter>`."""
    parts = _WHERE.split(figure.other or "", maxsplit=1)
    if not parts[0].strip():
        raise FilterError(f"a {figure.kind} needs `other`")
    row_filter = parts[1] if len(parts) > 1 else figure.row
    return _number(matching(step.query_result, row_filter), parts[0].strip().strip('"'))


def _column(rows: Sequence[Mapping[str, Any]], column: str | None) -> list[Any]:
    if not rows:
        raise FilterError("the row filter leaves no row")
    if column is None:
        if len(rows[0]) == 1:
            return [next(iter(row.values())) for row in rows]
        raise FilterError("`column` is missing")
    key = column_of(rows[0], column)
    return [row[key] for row in rows]


def _cell(rows: Sequence[Mapping[str, Any]], column: str | None) -> float | int | str:
    values = _column(rows, column)
    if len(values) > 1:
        raise FilterError(f"the row filter leaves {len(values)} rows where one is needed")
    if values[0] is None:
        raise FilterError("the cell is empty")
    number = as_number(values[0])
    return _pretty_text(as_text(values[0])) if number is None else number


def _number(rows: Sequence[Mapping[str, Any]], column: str | None) -> float | int:
    """One row's value, or the sum where the filter leaves several."""
    if len(rows) == 1:
        value = _cell(rows, column)
        if isinstance(value, str):
            raise FilterError(f"{value[:40]} is not a number")
        return value
    return _sum(rows, column)


def _sum(rows: Sequence[Mapping[str, Any]], column: str | None) -> float | int:
    numbers = [as_number(value) for value in _column(rows, column) if value is not None]
    if not numbers or any(number is None for number in numbers):
        raise FilterError(f"column {column} does not hold numbers only")
    try:
        total = math.fsum(number for number in numbers if number is not None)
    except OverflowError as error:
        raise FilterError(f"column {column} sums to more than a number can hold") from error
    return int(total) if all(isinstance(number, int) for number in numbers) else total


def _count(rows: Sequence[Mapping[str, Any]], column: str | None) -> int:
    return (
        len(rows) if column is None or not rows else sum(value is not None for value in _column(rows, column))
    )


def _pretty_text(text: str) -> str:
    """A timestamp at midnight reads as its date."""
    return re.sub(r"[T ]00:00:00(?:\.0+)?(?:Z|\+00:00)?$", "", text)


def _percent_factor(figure: Figure, computed: float) -> float:
    """100 where the rows hold a fraction, 1 where they hold a percentage already.

    The writer's value decides where it differs by that factor; else the column's name; else the size.
    """
    claimed = as_number(figure.value)
    if claimed is not None and computed != 0 and claimed != 0:
        if _near(claimed, computed * 100, figure):
            return 100.0
        if _near(claimed * 100, computed, figure):
            return 1.0
    if figure.kind == "ratio":
        return 100.0
    if re.search(r"pct|percent", figure.column or "", re.IGNORECASE):
        return 1.0
    return 100.0 if abs(computed) <= 1.0 else 1.0


def _near(a: float, b: float, figure: Figure) -> bool:
    return abs(a - b) <= max(0.5 * 10.0 ** -_decimals(figure, b), 1e-9 * abs(b))


def _agrees(figure: Figure, shown: float) -> bool:
    """Whether the claimed value lies within half of the last printed place, in any of the usual scales."""
    claimed = as_number(figure.value)
    if claimed is None:
        return True
    factor = _SCALES[figure.scale][0] if figure.scale else 1.0
    tolerance: float = 0.5 * 10.0 ** -_decimals(figure, shown / factor) * factor * (1 + 1e-9)
    if figure.approx:
        tolerance = max(tolerance, 0.05 * abs(shown))
    candidates = [claimed, claimed * factor]
    if figure.unit == "percent":
        candidates += [claimed * 100, claimed / 100]
    return any(abs(candidate - shown) <= tolerance for candidate in candidates)


def _decimals(figure: Figure, shown: float) -> int:
    if figure.decimals is not None:
        return min(max(figure.decimals, 0), 6)
    if figure.unit == "count":
        return 0
    if figure.unit in ("percent", "multiple"):
        return 1
    if float(shown).is_integer() and figure.scale is None:
        return 0
    magnitude = abs(shown)
    return 0 if magnitude >= 1000 else 1 if magnitude >= 10 else 2 if magnitude >= 0.1 else 4


def _is_label(figure: Figure, shown: float) -> bool:
    """Years and numbers that are names carry no thousands separator."""
    return float(shown).is_integer() and bool(_LABEL.search(figure.column or "")) and figure.scale is None


def _print(figure: Figure, shown: float) -> str:
    """Thousands separators, scale letter, unit sign, and ~ for an approximate value."""
    if figure.kind == "cell" and figure.unit == "plain" and _is_label(figure, shown):
        return str(int(shown))
    factor, letter = _SCALES[figure.scale] if figure.scale else (1.0, "")
    scaled = shown / factor
    text = f"{scaled:,.{_decimals(figure, scaled)}f}"
    if re.fullmatch(r"-0(\.0+)?", text):
        text = text[1:]
    sign = {"percent": "%", "multiple": "×"}.get(figure.unit, "")
    return f"{'~' if figure.approx else ''}{text}{letter}{sign}"


def resolve_reference(figure: Figure, insights: Mapping[str, Mapping[str, Figure]]) -> Figure:
    """A recommendation's figure (`ref` or `sum` over refs) from resolved insight figures keyed by insight id."""
    found: list[Figure] = []
    for ref in figure.refs or []:
        target = insights.get(ref.get("insight", ""), {}).get(ref.get("figure", ""))
        if target is None or target.computed is None:
            return figure.model_copy(
                update={"problem": "refers to a figure that does not exist", "checked": False}
            )
        found.append(target)
    if not found:
        return figure.model_copy(update={"problem": "names no figure", "checked": False})
    if len(found) == 1:
        return figure.model_copy(
            update={"computed": found[0].computed, "text": found[0].text, "checked": found[0].checked}
        )
    numbers = [as_number(target.computed) for target in found]
    if any(number is None for number in numbers):
        return figure.model_copy(update={"problem": "sums a figure that is not a number", "checked": False})
    total = math.fsum(number for number in numbers if number is not None)
    printed = figure.model_copy(update={"unit": figure.unit if figure.unit != "plain" else found[0].unit})
    return figure.model_copy(
        update={"computed": total, "text": _print(printed, total), "checked": all(f.checked for f in found)}
    )


def write(text: str, figures: Sequence[Figure]) -> tuple[str, list[str]]:
    """Prose with printed figures, and the references that stayed unresolved (each left out as `[?]`)."""
    printed = {figure.id: figure.text for figure in figures if figure.text is not None}
    unresolved: list[str] = []

    def value(match: re.Match[str]) -> str:
        found = printed.get(match.group(1))
        if found is None:
            unresolved.append(match.group(1))
            return "[?]"
        return found

    return REFERENCE.sub(value, text), unresolved
