"""The first questions of every table: rows, filled and distinct values and range of each column; and the reading of their answers. Pure."""

from __future__ import annotations

from typing import Any

from assay_agent.evidence.filters import as_number
from assay_agent.scout.keys import key_of
from assay_agent.scout.questions.question import Question
from assay_agent.scout.roles import (
    Profile,
    is_numeric,
    is_simple,
    is_time,
)
from assay_agent.scout.situation import Table
from assay_agent.scout.sql_text import Sql

_PROFILE_COLUMNS = 12


def profile_questions(table: Table, sql: Sql, *, turn: int) -> list[Question]:
    """Rows, filled and distinct values and range of each simple column, several columns a statement.

    `turn` above 1 is the same question again, after its answer has left the conversation.
    """
    columns = [column for column in table.columns if is_simple(column)]
    questions: list[Question] = []
    for start in range(0, len(columns), _PROFILE_COLUMNS):
        chunk = columns[start : start + _PROFILE_COLUMNS]
        parts = ["count(*) AS n_rows"]
        for position, column in enumerate(chunk, start=start):
            name = sql.name(column.name)
            parts.append(f"count({name}) AS c{position}_filled")
            parts.append(f"{sql.distinct(column.name, table.rows)} AS c{position}_distinct")
            if is_numeric(column) or is_time(column):
                value = sql.measured(column.name) if is_numeric(column) else name
                parts += [f"min({value}) AS c{position}_min", f"max({value}) AS c{position}_max"]
            others = sql.other_than_numbers(column.name) if is_numeric(column) else None
            if others is not None:
                parts.append(f"{others} AS c{position}_not_numbers")
        questions.append(
            Question(
                key=key_of("profile", table.ref, str(start), *([str(turn)] if turn > 1 else [])),
                priority=0,
                purpose=f"Profile of {table.ref}, columns {start + 1} to {start + len(chunk)}",
                sql=f"SELECT {', '.join(parts)} FROM {sql.ref(table.ref)}",
            )
        )
    return questions


def read_profiles(
    table: Table, results: dict[str, list[dict[str, Any]]]
) -> tuple[int, dict[str, Profile]] | None:
    """Rows and profiles from the answers; None while none is there."""
    columns = [column for column in table.columns if is_simple(column)]
    rows: int | None = None
    profiles: dict[str, Profile] = {}
    for start in range(0, len(columns), _PROFILE_COLUMNS):
        key = key_of("profile", table.ref, str(start))
        answer = next(
            (rows for name, rows in reversed(results.items()) if name == key or name.startswith(f"{key}:")),
            None,
        )
        if not answer:
            continue
        row = answer[0]
        rows = int(as_number(row.get("n_rows")) or 0)
        for position, column in enumerate(columns[start : start + _PROFILE_COLUMNS], start=start):
            profiles[column.name] = Profile(
                filled=_whole(row.get(f"c{position}_filled")),
                distinct=_whole(row.get(f"c{position}_distinct")),
                low=row.get(f"c{position}_min"),
                high=row.get(f"c{position}_max"),
                not_numbers=_whole(row.get(f"c{position}_not_numbers")) or 0,
            )
    return None if rows is None else (rows, profiles)


def _whole(value: Any) -> int | None:
    number = as_number(value)
    return None if number is None else int(number)
