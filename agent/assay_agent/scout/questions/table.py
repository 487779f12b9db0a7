"""Everything worth asking of one table, by priority. Called by `planning`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay_agent.scout.questions.joins import Names
from assay_agent.scout.questions.quality import duplicates, gaps, missing, other_than_numbers, repeated_keys
from assay_agent.scout.questions.question import Question, Results
from assay_agent.scout.questions.rates import rates
from assay_agent.scout.questions.shape import (
    concentration,
    correlations,
    groups,
    outliers,
    separations,
    told_apart,
)
from assay_agent.scout.questions.time import seasons, trends
from assay_agent.scout.roles import (
    Roles,
)
from assay_agent.scout.situation import Table
from assay_agent.scout.sql_text import Sql

_NONE: Mapping[str, Any] = {}


def table_questions(
    table: Table, roles: Roles, sql: Sql, *, results: Results = _NONE, names: Names = _NONE
) -> list[Question]:
    """Everything worth asking of a profiled table, by priority; `names` are the readable names of numbered groups."""
    if roles.rows < 2:
        return []
    told_before = list(separations(table, roles, sql))
    roles = told_apart(table, roles, results)
    found = [
        *told_before,
        *missing(table, roles, sql),
        *other_than_numbers(table, roles, sql),
        *duplicates(table, roles, sql),
        *gaps(table, roles, sql, names),
        *trends(table, roles, sql),
        *seasons(table, roles, sql),
        *groups(table, roles, sql, names),
        *concentration(table, roles, sql, names),
        *outliers(table, roles, sql),
        *correlations(table, roles, sql),
        *repeated_keys(table, roles, sql),
        *rates(table, roles, sql),
    ]
    return sorted(found, key=lambda question: (question.priority, question.key))
