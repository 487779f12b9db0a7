"""Which chart the evidence of an insight makes: labels, values, and which of them the finding speaks of. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay_agent.evidence.filters import FilterError, as_number, as_text, column_of, matching
from assay_core.model.insight import Figure, Insight
from assay_core.model.step import ExplorationStep

_MOMENT = re.compile(r"\d{4}-\d\d(-\d\d)?([T ]\d\d:\d\d.*)?")
_TIME_NAMES = re.compile(
    r"^(.*_)?(year|quarter|month|week|day|date|hour|minute|period|time|dow|weekday)(_.*)?$", re.IGNORECASE
)
_COUNT_NAMES = re.compile(r"^(n|rows?|count|records|.*_count|n_.*)$", re.IGNORECASE)
_MIN_POINTS, _MAX_BARS, _MAX_POINTS = 3, 20, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """`marked` are indexes of the points the finding cites; a line's labels are in their own order."""

    kind: Literal["bar", "line"]
    labels: tuple[str, ...]
    values: tuple[float, ...]
    marked: frozenset[int]
    label_name: str
    value_name: str
    step: int
    left_out: int = 0
    percent: bool = False
    """Whether the values are shares that the finding prints as percentages."""


def chart_of(insight: Insight, steps: Mapping[int, ExplorationStep]) -> Chart | None:
    """The first cited step that makes a chart; steps that figures point at come first."""
    cited = [figure.step for figure in insight.figures if figure.step is not None]
    for number in dict.fromkeys([*cited, *insight.source_steps]):
        step = steps.get(number)
        if step is None:
            continue
        chart = _chart(step, [figure for figure in insight.figures if figure.step == number])
        if chart is not None:
            return chart
    return None


def _chart(step: ExplorationStep, figures: Sequence[Figure]) -> Chart | None:
    rows = step.query_result[:_MAX_POINTS]
    if len(rows) < _MIN_POINTS:
        return None
    columns = list(rows[0])
    naming = _naming_columns(rows, figures)
    value = _value_column(rows, [column for column in columns if column not in naming], figures)
    if value is None:
        return None
    label = _label_column(rows, [*naming, *columns], value)
    if label is None:
        return None
    points = [
        (row, number)
        for row in rows
        if (number := as_number(row[value])) is not None and row[label] is not None
    ]
    if len(points) < _MIN_POINTS:
        return None
    is_line = _is_time(label, [row[label] for row, _ in points])
    if is_line:
        points.sort(key=lambda point: _order(point[0][label]))
    kept = points if is_line else points[:_MAX_BARS]
    marked_rows = _marked_rows(step.query_result, figures)
    return Chart(
        kind="line" if is_line else "bar",
        labels=tuple(_label(row[label]) for row, _ in kept),
        values=tuple(float(number) for _, number in kept),
        marked=frozenset(index for index, (row, _) in enumerate(kept) if id(row) in marked_rows),
        label_name=label,
        value_name=value,
        step=step.step,
        left_out=max(step.row_count - len(kept), 0),
        percent=all(-1 <= number <= 1 for _, number in kept)
        and any(figure.column == value and figure.unit == "percent" for figure in figures),
    )


def _naming_columns(rows: Sequence[Mapping[str, Any]], figures: Sequence[Figure]) -> list[str]:
    """Columns by which figures pick their row: they name the points, whatever they hold."""
    filters = " ".join(figure.row for figure in figures if figure.row)
    return [column for column in rows[0] if f'"{column}"' in filters]


def _value_column(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], figures: Sequence[Figure]
) -> str | None:
    """The column the figures are about, if most of it is numbers; else the first measure, counts last."""
    wanted = [figure.column for figure in figures if figure.column and figure.unit != "count"]
    wanted += [figure.column for figure in figures if figure.column]
    for name in wanted:
        try:
            column = column_of(rows[0], name)
        except FilterError:
            continue
        if (
            column in columns
            and _numeric(rows, column)
            and not _is_time(column, [row[column] for row in rows])
        ):
            return column
    numeric = [column for column in columns if _numeric(rows, column) and not _TIME_NAMES.match(column)]
    measures = [column for column in numeric if not _COUNT_NAMES.match(column)]
    if measures:
        return measures[0]
    return numeric[-1] if numeric else None


def _numeric(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    filled = [row[column] for row in rows if row[column] is not None]
    return len(filled) >= _MIN_POINTS and all(
        as_number(value) is not None and not isinstance(value, str) for value in filled
    )


def _label_column(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], value: str) -> str | None:
    """The first column other than the value that tells every row apart, text before whole numbers."""
    distinct = [
        column
        for column in columns
        if column != value and len({as_text(row[column]) for row in rows}) == len(rows)
    ]
    named = [
        column
        for column in distinct
        if not _numeric(rows, column) or _TIME_NAMES.match(column) or columns.count(column) > 1
    ]
    whole = [
        column
        for column in distinct
        if column not in named and not any(isinstance(row[column], float) for row in rows)
    ]
    return next(iter([*named, *whole]), None)


def _is_time(name: str, values: Sequence[Any]) -> bool:
    texts = [as_text(value) for value in values if value is not None]
    moments = bool(texts) and all(_MOMENT.fullmatch(text) for text in texts)
    return moments or (
        bool(_TIME_NAMES.match(name))
        and all(as_number(value) is not None for value in values if value is not None)
    )


def _order(value: Any) -> tuple[int, float, str]:
    number = as_number(value)
    return (0, float(number), "") if number is not None else (1, 0.0, as_text(value))


def _label(value: Any) -> str:
    text = as_text(value)
    return re.sub(r"[T ]00:00:00(\.0+)?(Z|\+00:00)?$", "", text) or "(blank)"


def _marked_rows(rows: Sequence[Mapping[str, Any]], figures: Sequence[Figure]) -> set[int]:
    """Identities of the rows that a figure's own filter singles out."""
    marked: set[int] = set()
    for figure in figures:
        if not figure.row:
            continue
        try:
            found = matching(rows, figure.row)
        except FilterError:
            continue
        if len(found) < len(rows):
            marked |= {id(row) for row in found}
    return marked
