"""A first or last period is left out when it is cut, and only then."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import pytest

from assay_agent.scout.questions.table import table_questions
from assay_agent.scout.roles import Profile, roles_of
from assay_agent.scout.situation import Column, Table
from assay_agent.scout.sql_text import Sql
from assay_agent.scout.writer.periods import without_cut_ends


def rows_of(days: str, unit: str) -> list[dict[str, Any]]:
    """What the scout's own question returns for a table of days, given as SQL that selects `day`."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS {days}")
        fetched = connection.execute(
            "SELECT count(*), count(DISTINCT day), min(day), max(day) FROM t"
        ).fetchone()
        assert fetched is not None
        n, distinct, low, high = fetched
        table = Table("main.t", n, (Column("day", "DATE", "time"),))
        profile = Profile(filled=n, distinct=distinct, low=str(low), high=str(high))
        questions = table_questions(table, roles_of(table, {"day": profile}, n), Sql("duckdb"))
        [trend] = [question for question in questions if question.key.startswith("trend:")]
        assert trend.key == f"trend:main.t:{unit}"
        found = connection.execute(trend.sql)
        names = [column[0] for column in found.description or []]
        return [
            {
                name: str(value) if isinstance(value, dt.date) else value
                for name, value in zip(names, row, strict=True)
            }
            for row in found.fetchall()
        ]


def kept(days: str, unit: str) -> list[str]:
    whole = without_cut_ends(rows_of(days, unit), unit)
    assert whole is not None
    return [row["period"] for row in whole]


def daily(first: str, last: str, times: str = "1") -> str:
    return (
        f"SELECT CAST(d AS DATE) AS day FROM generate_series(DATE '{first}', DATE '{last}', INTERVAL 1 DAY) AS g(d), "
        f"range(CAST({times} AS BIGINT)) AS r(i)"
    )


def test_month_that_ends_six_days_early_is_cut() -> None:
    months = kept(daily("2023-01-01", "2023-12-25"), "month")
    assert (months[0], months[-1]) == ("2023-01-01", "2023-11-01")


def test_month_that_begins_late_is_cut() -> None:
    assert kept(daily("2023-01-09", "2023-12-31"), "month")[0] == "2023-02-01"


def test_whole_periods_of_fast_growth_are_all_kept() -> None:
    months = kept(daily("2023-01-01", "2023-12-31", "pow(1.5, date_part('month', d))"), "month")
    assert len(months) == 12


def test_rows_that_all_lie_on_the_first_of_a_month_leave_no_month_cut() -> None:
    months = "SELECT CAST(d AS DATE) AS day FROM generate_series(DATE '2023-01-01', DATE '2023-12-01', INTERVAL 1 MONTH) AS g(d), range(9)"
    assert len(kept(months, "month")) == 12


@pytest.mark.parametrize(
    ("first", "last", "unit", "ends"),
    [
        ("2020-01-01", "2022-11-20", "quarter", ("2020-01-01", "2022-07-01")),
        ("2010-03-01", "2020-12-31", "year", ("2011-01-01", "2020-01-01")),
        ("2023-01-02", "2023-03-30", "week", ("2023-01-02", "2023-03-20")),
    ],
)
def test_other_units_are_judged_by_their_days_too(
    first: str, last: str, unit: str, ends: tuple[str, str]
) -> None:
    periods = kept(daily(first, last), unit)
    assert (periods[0], periods[-1]) == ends


def test_days_of_the_month_serve_where_year_and_month_stand_apart() -> None:
    rows = [
        {"period": f"2013-{month:02d}-01", "n_rows": 10, "first_seen": 1, "last_seen": 30 - 2 * (month == 2)}
        for month in range(1, 8)
    ]
    rows[-1]["last_seen"] = 12
    whole = without_cut_ends(rows, "month")
    assert whole is not None
    assert [row["period"] for row in whole] == [f"2013-{month:02d}-01" for month in range(1, 7)]


def test_nothing_is_judged_without_days() -> None:
    assert without_cut_ends([{"period": "2013-01-01", "n_rows": 3}] * 5, "month") is None
    odd = {"period": "soon", "n_rows": 3, "first_seen": "x", "last_seen": None}
    assert without_cut_ends([odd] * 5, "month") is None
