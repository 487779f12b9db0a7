"""Questions about outcomes of two values by group, and about keys that repeat. Pure; `planning` asks them with the others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay_agent.scout.keys import key_of
from assay_agent.scout.questions import GROUPS_SHOWN, Question, minimum_rows
from assay_agent.scout.roles import Profile, Roles, humanised, is_fraction, is_simple, is_time
from assay_agent.scout.situation import Table
from assay_agent.scout.sql_text import Sql

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OUTCOME = re.compile(
    r"churn|cancel|default|fraud|convert|success|surviv|return|fail|won|lost|paid|click|target|label|outcome|response|approved|diagnos|"
    r"(^|_)(is|has|was|did|flag)(_|$)"
)
_KEY_NAME = re.compile(r"(^|_)(id|uuid|guid|key|no|nr|number)$")
_OUTCOMES, _GROUPINGS = 2, 5
_EXACT_ROWS = 2_000_000
"""Rows up to which distinct values are counted exactly, so that a nearly unique column can be told from a unique one."""
_NEARLY = 0.95


def rate_questions(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    """How often an outcome occurs in each group, with Cramér's V of the table of groups by outcome."""
    outcomes = [
        name for name, profile in roles.profiles.items() if _has_two_values(table, name, profile, roles)
    ]
    likely = [name for name in outcomes if _OUTCOME.search(_plain(name))]
    for o_rank, outcome in enumerate((likely or outcomes)[:_OUTCOMES]):
        groupings = [name for name in (*roles.dimensions, *roles.seasons) if name != outcome]
        for g_rank, grouping in enumerate(groupings[:_GROUPINGS]):
            yield Question(
                key=key_of("rate", table.ref, grouping, outcome),
                priority=3.1 + o_rank * 1.3 + g_rank * 0.6,
                purpose=f"Difference in the share of {humanised(outcome)} between groups of {humanised(grouping)} in {table.ref}",
                sql=_rates(table, grouping, outcome, roles, sql),
            )


def _has_two_values(table: Table, name: str, profile: Profile, roles: Roles) -> bool:
    column = table.column(name)
    return (
        column is not None
        and profile.distinct == 2
        and (profile.filled or 0) * 2 >= roles.rows
        and is_simple(column)
        and not is_time(column)
        and not is_fraction(column)
        and name not in (roles.year, roles.month)
    )


def _rates(table: Table, grouping: str, outcome: str, roles: Roles, sql: Sql) -> str:
    """Groups with the share of an outcome; counted is the larger of its two values: 1, true, Yes."""
    ref, group = sql.ref(table.ref), sql.name(grouping)
    value, least = f"CAST({sql.name(outcome)} AS VARCHAR)", minimum_rows(roles.rows)
    share = "g.n_with * 1.0 / g.n_rows"
    return (
        f"WITH v AS (SELECT max({value}) AS outcome_value FROM {ref}), "
        f"g AS (SELECT {group} AS label, v.outcome_value, count(*) AS n_rows, sum(CASE WHEN {value} = v.outcome_value THEN 1 ELSE 0 END) AS n_with "
        f"FROM {ref} CROSS JOIN v WHERE {sql.name(outcome)} IS NOT NULL AND {group} IS NOT NULL GROUP BY {group}, v.outcome_value), "
        f"t AS (SELECT sum(n_rows) AS n_all, count(*) AS n_groups, sum(n_with) * 1.0 / sum(n_rows) AS p FROM g), "
        f"e AS (SELECT sum(g.n_rows * ({share} - t.p) * ({share} - t.p)) AS between_groups FROM g CROSS JOIN t) "
        f"SELECT g.label AS {group}, g.outcome_value, g.n_rows, g.n_with, {share} AS share_with, t.p AS overall_share, "
        f"sqrt(e.between_groups / nullif(t.p * (1 - t.p) * t.n_all, 0)) AS cramers_v, t.n_all, t.n_groups, {least} AS min_rows "
        f"FROM g CROSS JOIN t CROSS JOIN e WHERE g.n_rows >= {least} ORDER BY share_with DESC, g.label LIMIT {GROUPS_SHOWN}"
    )


def repeated_keys(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    """A column called a key and unique in nearly every row: what repeats is likely a double entry."""
    if roles.rows > _EXACT_ROWS:
        return
    for column in table.columns:
        profile = roles.profiles.get(column.name, Profile())
        filled, distinct = profile.filled or 0, profile.distinct or 0
        if not _KEY_NAME.search(_plain(column.name)) or not filled * _NEARLY <= distinct < filled:
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


def _plain(name: str) -> str:
    """`OrderID`, `Order ID` and `order-id` as `order_id`, for looking at what a name says."""
    return re.sub(r"[^0-9a-z]+", "_", _HUMP.sub("_", name).lower()).strip("_")
