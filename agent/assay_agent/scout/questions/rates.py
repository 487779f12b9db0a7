"""Questions about outcomes of two values by group. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay_agent.scout.keys import key_of
from assay_agent.scout.questions.question import GROUPS_SHOWN, Question, minimum_rows
from assay_agent.scout.roles import (
    Profile,
    Roles,
    humanised,
    is_fraction,
    is_simple,
    is_time,
    plain_name,
)
from assay_agent.scout.situation import Table
from assay_agent.scout.sql_text import Sql

_OUTCOME = re.compile(
    r"churn|cancel|default|fraud|convert|success|surviv|return|fail|won|lost|paid|click|target|label|outcome|response|approved|diagnos|"
    r"(^|_)(is|has|was|did|flag)(_|$)"
)

_OUTCOMES, _GROUPINGS = 2, 5


def rates(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    """How often an outcome occurs in each group, with Cramér's V of the table of groups by outcome."""
    outcomes = [
        name for name, profile in roles.profiles.items() if _has_two_values(table, name, profile, roles)
    ]
    likely = [name for name in outcomes if _OUTCOME.search(plain_name(name))]
    for o_rank, outcome in enumerate((likely or outcomes)[:_OUTCOMES]):
        groupings = [name for name in (*roles.dimensions, *roles.seasons) if name != outcome]
        for g_rank, grouping in enumerate(groupings[:_GROUPINGS]):
            yield Question(
                key=key_of("rate", table.ref, grouping, outcome),
                priority=3.1 + o_rank * 1.3 + g_rank * 0.6,
                purpose=f"Difference in the share of {humanised(outcome)} between groups of {humanised(grouping)} in {table.ref}",
                sql=_statement(table, grouping, outcome, roles, sql),
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


def _statement(table: Table, grouping: str, outcome: str, roles: Roles, sql: Sql) -> str:
    """Groups with the share of an outcome; counted is the larger of its two values: 1, true, Yes."""
    ref, group = sql.ref(table.ref), sql.name(grouping)
    value, least = sql.text(sql.name(outcome)), minimum_rows(roles.rows)
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
