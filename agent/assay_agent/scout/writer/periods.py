"""Which periods of a series are whole: the first and the last are often cut by where the data begin and end. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from assay_agent.evidence.filters import as_number
from assay_agent.scout.writer.evidence import number

_LEAST_PERIODS = 4
_STRAY = 0.05
"""Part of the usual number of rows below which a period at either end holds strays."""
_SLACK = 0.05
"""Part of a period that may lie empty at its end, unless other periods end so too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gaps:
    """Days without rows at the beginning and at the end of a period, and its length in days."""

    before: int
    after: int
    days: int


def without_cut_ends(rows: Sequence[dict[str, Any]], unit: str) -> list[dict[str, Any]] | None:
    """The rows without a first or last period that is cut; None where they do not tell which days they cover.

    A period is cut if it lies empty at its end for longer than any other period does, and for more than a trifle.
    """
    gaps = [_gaps(row, unit) for row in rows]
    known = [gap for gap in gaps if gap is not None]
    if len(rows) < _LEAST_PERIODS or len(known) < len(rows):
        return None
    slack = known[0].days * _SLACK
    first = int(known[0].before > max(slack, *(gap.before for gap in known[1:])))
    last = len(rows) - int(known[-1].after > max(slack, *(gap.after for gap in known[:-1])))
    counts = sorted(number(row, "n_rows") for row in rows)
    least = counts[len(counts) // 2] * _STRAY
    while last - first > 3 and number(rows[first], "n_rows") < least:
        first += 1
    while last - first > 3 and number(rows[last - 1], "n_rows") < least:
        last -= 1
    return list(rows[first:last])


def _gaps(row: dict[str, Any], unit: str) -> _Gaps | None:
    start = _start(row.get("period"), unit)
    if start is None:
        return None
    end = _next(start, unit)
    first, last = _day(row.get("first_seen"), start), _day(row.get("last_seen"), start)
    if end is None or first is None or last is None:
        return None
    return _Gaps(before=(first - start).days, after=(end - last).days - 1, days=(end - start).days)


def _start(period: Any, unit: str) -> date | None:
    text = str(period)[:10]
    try:
        start = date.fromisoformat(text + "0000-01-01"[len(text) :])
        return start.replace(day=1) if unit != "week" else start - timedelta(days=start.weekday())
    except (ValueError, OverflowError):
        return None


def _next(start: date, unit: str) -> date | None:
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    if unit == "week":
        return start + timedelta(days=7)
    if months is None or start.year >= date.max.year:
        return None
    after = start.month - 1 + months
    return date(start.year + after // 12, after % 12 + 1, 1)


def _day(value: Any, start: date) -> date | None:
    """A date, or the day of the month that begins with `start`."""
    of_month = as_number(value) if not isinstance(value, str) or len(value) <= 2 else None
    try:
        return (
            start.replace(day=int(of_month)) if of_month is not None else date.fromisoformat(str(value)[:10])
        )
    except ValueError:
        return None
