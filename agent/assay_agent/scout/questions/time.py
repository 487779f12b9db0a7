"""Questions about movement over time and about seasons. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from assay_agent.scout.keys import key_of
from assay_agent.scout.questions.question import ROWS_SHOWN, Question
from assay_agent.scout.questions.shape import grouped
from assay_agent.scout.roles import (
    Profile,
    Roles,
    humanised,
)
from assay_agent.scout.situation import Table
from assay_agent.scout.sql_text import Sql

_LEAST_OVER_TIME = 50
"""Rows a table needs before its movement over time is asked for."""


def trends(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    period, unit = _period(table, roles, sql)
    measures = roles.measures[:3]
    if period is None or roles.rows < _LEAST_OVER_TIME:
        return
    seen = _seen(table, roles, unit, sql)
    means = "".join(
        f", avg({m}) AS {sql.name(f'mean_{name}')}, avg(({m} - centre_{k}) * ({m} - centre_{k})) AS {sql.name(f'squares_{name}')}"
        for k, (name, m) in enumerate((name, sql.number(name)) for name in measures)
    )
    centres = f" CROSS JOIN {sql.centres(table.ref, measures)}" if measures else ""
    yield Question(
        key=key_of("trend", table.ref, unit),
        priority=2.5,
        purpose=f"Rows and means per {unit} over time in {table.ref}",
        sql=f"SELECT {period} AS period, count(*) AS n_rows{seen}{means} FROM {sql.ref(table.ref)}{centres} WHERE {period} IS NOT NULL GROUP BY {period} ORDER BY {period} LIMIT 400",
    )


def _seen(table: Table, roles: Roles, unit: str, sql: Sql) -> str:
    """The first and last day with rows in a period, by which a period that is cut is known; empty where days are not told."""
    if roles.year and roles.month:
        day = next((name for name in roles.profiles if name.lower() in ("day", "day_of_month", "dom")), None)
        if unit != "month" or day is None:
            return ""
        return f", min({sql.name(day)}) AS first_seen, max({sql.name(day)}) AS last_seen"
    time = table.column(roles.times[0]) if roles.times else None
    if time is None or unit in ("day", "decade"):
        return ""
    return f", min({sql.day(time)}) AS first_seen, max({sql.day(time)}) AS last_seen"


def _period(table: Table, roles: Roles, sql: Sql) -> tuple[str | None, str]:
    """An expression for the period of a row, in the unit that gives at most about twenty periods."""
    if roles.year and roles.month:
        years = roles.distinct(roles.year)
        if years > 5:
            return (
                (sql.name(roles.year), "year")
                if years <= ROWS_SHOWN * 2
                else (sql.decade(roles.year), "decade")
            )
        return (
            (sql.year_month(roles.year, roles.month), "month")
            if years <= 1
            else (sql.year_quarter(roles.year, roles.month), "quarter")
        )
    if roles.times:
        time = table.column(roles.times[0])
        profile = roles.profiles.get(roles.times[0])
        if time is not None and profile is not None:
            unit = _unit(_days(profile))
            return (sql.period(time, unit), unit) if unit else (None, "")
    if roles.year and 4 <= roles.distinct(roles.year) <= ROWS_SHOWN:
        return sql.name(roles.year), "year"
    if roles.year and roles.distinct(roles.year) > ROWS_SHOWN:
        return sql.decade(roles.year), "decade"
    return None, ""


def _unit(days: int) -> str:
    """The unit of a span; empty where it is too short to show a movement."""
    for most, unit in ((3, ""), (20, "day"), (140, "week"), (610, "month"), (1_830, "quarter")):
        if days <= most:
            return unit
    return "year"


def _days(profile: Profile) -> int:
    try:
        low, high = (date.fromisoformat(str(value)[:10]) for value in (profile.low, profile.high))
    except ValueError:
        return 0
    return (high - low).days


def seasons(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    parts: list[tuple[str, str]] = [
        (name, sql.name(name)) for name in roles.seasons if not (name == roles.month and _one_year(roles))
    ]
    time = next((column for name in roles.times if (column := table.column(name))), None)
    if time is not None:
        taken = " ".join(roles.seasons).lower()
        weekday, hour = sql.weekday(time), sql.hour(time)
        if weekday and "day" not in taken and "dow" not in taken:
            parts.append(("weekday", weekday))
        if hour and "hour" not in taken and _has_hours(roles.profiles.get(time.name)):
            parts.append(("hour", hour))
    for p_rank, (label, expression) in enumerate(parts[:3]):
        for m_rank, measure in enumerate(roles.measures[:2]):
            yield Question(
                key=key_of("season", table.ref, label, measure),
                priority=3.4 + p_rank * 0.9 + m_rank * 1.3,
                purpose=f"{humanised(measure)} by {humanised(label)} (season) in {table.ref}",
                sql=grouped(table, group=expression, label=label, measure=measure, roles=roles, sql=sql),
            )


def _one_year(roles: Roles) -> bool:
    """With one year of data the month is the trend, and no season can be told from it."""
    return roles.year is not None and roles.distinct(roles.year) == 1


def _has_hours(profile: Profile | None) -> bool:
    """Whether a time column tells hours: dates, and days written as midnights, do not."""
    if profile is None or ":" not in str(profile.low):
        return False
    return not all(str(value).endswith("00:00:00") for value in (profile.low, profile.high))
