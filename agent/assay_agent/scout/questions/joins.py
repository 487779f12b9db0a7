"""How tables belong together: keys without a partner, and the names another table gives to numbered groups. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay_agent.scout.keys import key_of
from assay_agent.scout.questions.question import Question
from assay_agent.scout.roles import (
    Roles,
    is_name,
    is_numeric,
    may_point,
    named_table,
)
from assay_agent.scout.situation import Table
from assay_agent.scout.sql_text import Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Where the numbers of a column have names: a table, its key, and its column of names, different in every row."""

    ref: str
    key: str
    name: str


Names = Mapping[str, Naming]


def join_questions(
    table: Table, roles: Roles, others: Sequence[tuple[Table, Roles]], sql: Sql
) -> Iterator[Question]:
    """Keys that find no partner: a column named as another table's unique column, or as the table itself.

    `order_id` belongs to `orders`, even where it happens to be unique in `payments`.
    """
    refs = [table.ref, *(other.ref for other, _ in others)]
    for other, theirs in others:
        if other.ref == table.ref:
            continue
        for mine, key in _pointers(table, other, theirs):
            owner = named_table(mine, refs)
            if theirs.rows > roles.rows and owner != other.ref:
                continue
            if roles.distinct(mine) >= roles.rows or owner not in (None, other.ref):
                continue
            f, r = f"f.{sql.name(mine)}", f"r.{sql.name(key)}"
            yield Question(
                key=key_of("orphan", table.ref, mine, other.ref),
                priority=2,
                purpose=f"Rows of {table.ref} without a match in {other.ref} by {mine}",
                sql=(
                    f"SELECT count(*) AS n_rows, count(*) - count({r}) AS n_without_match, "
                    f"(count(*) - count({r})) * 1.0 / count(*) AS share_without_match, "
                    f"count(DISTINCT CASE WHEN {r} IS NULL THEN {f} END) AS n_keys_without_match, count(DISTINCT {f}) AS n_keys "
                    f"FROM {sql.ref(table.ref)} AS f LEFT JOIN (SELECT DISTINCT {sql.name(key)} FROM {sql.ref(other.ref)}) AS r ON {f} = {r} "
                    f"WHERE {f} IS NOT NULL"
                ),
            )


def _pointers(table: Table, other: Table, theirs: Roles) -> Iterator[tuple[str, str]]:
    """Columns of `table` and the unique columns of `other` they may point at."""
    unique = [
        column
        for column in other.columns
        if column.category == "primary_key"
        or (theirs.rows > 1 and theirs.distinct(column.name) >= theirs.rows and may_point(column.name))
    ]
    same = {column.name for column in unique if column.name.lower() not in ("id", "name")}
    yield from ((name, name) for name in sorted(same) if table.column(name) is not None)
    key = next((column for column in unique if column.category == "primary_key"), None)
    key = key or next((column for column in unique if column.name.lower() == "id"), None)
    if key is None:
        return
    for column in table.columns:
        if (
            column.name not in same
            and named_table(column.name, [other.ref])
            and is_numeric(column) == is_numeric(key)
        ):
            yield column.name, key.name


def namings(table: Table, others: Sequence[tuple[Table, Roles]]) -> dict[str, Naming]:
    """The numbered columns of a table whose numbers another table names."""
    found: dict[str, Naming] = {}
    for other, theirs in others:
        named = next(
            (
                column.name
                for column in other.columns
                if is_name(column) and 1 < theirs.rows <= theirs.distinct(column.name)
            ),
            None,
        )
        if other.ref == table.ref or named is None:
            continue
        for mine, key in _pointers(table, other, theirs):
            column = table.column(mine)
            if column is not None and is_numeric(column) and mine not in found:
                found[mine] = Naming(ref=other.ref, key=key, name=named)
    return found


def named(sql: Sql, names: Names, dimension: str, *, table: str, column: str) -> tuple[str, str]:
    """The readable value of a group, and the join it needs; the plain value where its number has no name."""
    given = f"{table}.{sql.name(column)}"
    naming = names.get(dimension)
    if naming is None:
        return given, ""
    text = sql.text(given)
    join = f" LEFT JOIN {sql.ref(naming.ref)} AS o ON o.{sql.name(naming.key)} = {given}"
    return f"coalesce(o.{sql.name(naming.name)}, {text})", join
