"""Questions about the data themselves: missing values and where they sit, exact copies, keys that repeat. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay_agent.scout.keys import key_of
from assay_agent.scout.questions.joins import Names, named
from assay_agent.scout.questions.question import GROUPS_SHOWN, Question, minimum_rows
from assay_agent.scout.roles import (
    Profile,
    Roles,
    humanised,
    is_simple,
    plain_name,
)
from assay_agent.scout.situation import Table
from assay_agent.scout.sql_text import Sql, literal

_MISSING_COLUMNS = 12
_EXACT_ROWS = 2_000_000
"""Rows up to which copies and distinct values are counted exactly, so that a nearly unique column can be told from a unique one."""
_KEY_NAME = re.compile(r"(^|_)(id|uuid|guid|key|no|nr|number)$")

_NEARLY = 0.95


def missing(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    columns = sorted(_incomplete(roles), key=lambda name: roles.profiles[name].filled or 0)[:_MISSING_COLUMNS]
    if not columns:
        return
    ref = sql.ref(table.ref)
    scans = " UNION ALL ".join(
        f"SELECT {literal(name)} AS column_name, count(*) AS n_rows, count(*) - count({sql.name(name)}) AS n_missing FROM {ref}"
        for name in columns
    )
    yield Question(
        key=key_of("missing", table.ref),
        priority=1,
        purpose=f"Share of missing values by column in {table.ref}",
        sql=f"SELECT column_name, n_rows, n_missing, n_missing * 1.0 / n_rows AS share_missing FROM ({scans}) AS s ORDER BY share_missing DESC, column_name",
    )


def other_than_numbers(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    """Columns of numbers that hold something else too, with one such value each."""
    columns = [name for name, profile in roles.profiles.items() if profile.not_numbers][:_MISSING_COLUMNS]
    if not columns:
        return
    ref = sql.ref(table.ref)
    scans = " UNION ALL ".join(
        f"SELECT {literal(name)} AS column_name, count({sql.name(name)}) AS n_values, "
        f"{sql.other_than_numbers(name)} AS n_not_numbers, "
        f"min(CASE WHEN {sql.measured(name)} IS NULL THEN {sql.text(sql.name(name))} END) AS first_of_them FROM {ref}"
        for name in columns
    )
    yield Question(
        key=key_of("notnum", table.ref),
        priority=1.1,
        purpose=f"Values that are not numbers in columns of numbers in {table.ref}",
        sql=f"SELECT column_name, n_values, n_not_numbers, n_not_numbers * 1.0 / n_values AS share_not_numbers, first_of_them FROM ({scans}) AS s ORDER BY share_not_numbers DESC, column_name",
    )


def duplicates(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    if (
        roles.rows > _EXACT_ROWS
        or not all(is_simple(column) for column in table.columns)
        or len(table.columns) > 40
    ):
        return
    if any((profile.distinct or 0) >= roles.rows for profile in roles.profiles.values()):
        return
    ref = sql.ref(table.ref)
    yield Question(
        key=key_of("dup", table.ref),
        priority=6,
        purpose=f"Duplicate rows in {table.ref}",
        sql=(
            f"SELECT a.n_rows, b.n_distinct, a.n_rows - b.n_distinct AS n_duplicate, (a.n_rows - b.n_distinct) * 1.0 / a.n_rows AS share_duplicate "
            f"FROM (SELECT count(*) AS n_rows FROM {ref}) AS a CROSS JOIN (SELECT count(*) AS n_distinct FROM (SELECT DISTINCT * FROM {ref}) AS d) AS b"
        ),
    )


def _incomplete(roles: Roles) -> list[str]:
    return [
        name
        for name, profile in roles.profiles.items()
        if profile.filled is not None and profile.filled < roles.rows
    ]


def gaps(table: Table, roles: Roles, sql: Sql, names: Names) -> Iterator[Question]:
    """Whether a gap is spread evenly or sits in some groups."""
    gaps = [
        name
        for name in _incomplete(roles)
        if 0.001 <= 1 - (roles.profiles[name].filled or 0) / roles.rows <= 0.9
    ]
    gaps.sort(key=lambda name: -(roles.profiles[name].filled or 0))
    seen: set[int] = set()
    least = minimum_rows(roles.rows)
    for name in gaps:
        filled = roles.profiles[name].filled or 0
        if filled in seen or len(seen) >= 2:
            continue
        seen.add(filled)
        for rank, dimension in enumerate(
            [other for other in (*roles.dimensions, *roles.seasons) if other != name][:3]
        ):
            group, gap = sql.name(dimension), sql.name(name)
            shown, join = named(sql, names, dimension, table="s", column=dimension)
            yield Question(
                key=key_of("gap", table.ref, name, dimension),
                priority=5 + rank * 0.5,
                purpose=f"Missing {humanised(name)} by {humanised(dimension)} in {table.ref}",
                sql=(
                    f"SELECT {shown} AS {group}, s.n_rows, s.n_missing, s.n_missing * 1.0 / s.n_rows AS share_missing, {least} AS min_rows "
                    f"FROM (SELECT {group}, count(*) AS n_rows, count(*) - count({gap}) AS n_missing FROM {sql.ref(table.ref)} WHERE {group} IS NOT NULL "
                    f"GROUP BY {group} HAVING count(*) >= {least}) AS s{join} ORDER BY share_missing DESC, 1 LIMIT {GROUPS_SHOWN}"
                ),
            )


def repeated_keys(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    """A column called a key and unique in nearly every row: what repeats is likely a double entry."""
    if roles.rows > _EXACT_ROWS:
        return
    for column in table.columns:
        profile = roles.profiles.get(column.name, Profile())
        filled, distinct = profile.filled or 0, profile.distinct or 0
        if not _KEY_NAME.search(plain_name(column.name)) or not filled * _NEARLY <= distinct < filled:
            continue
        name = sql.name(column.name)
        repeated = "CASE WHEN n > 1 THEN {} ELSE 0 END"
        yield Question(
            key=key_of("dupkey", table.ref, column.name),
            priority=2.2,
            purpose=f"Duplicate values of the key {column.name} in {table.ref}",
            sql=(
                f"SELECT count(*) AS n_keys, sum({repeated.format(1)}) AS n_keys_repeated, sum({repeated.format('n')}) AS n_rows_repeated, "
                f"sum(n) AS n_rows, max(n) AS most_rows, sum({repeated.format('n')}) * 1.0 / sum(n) AS share_repeated "
                f"FROM (SELECT {name}, count(*) AS n FROM {sql.ref(table.ref)} WHERE {name} IS NOT NULL GROUP BY {name}) AS k"
            ),
        )
