"""Questions about groups and measures: differences, concentration, outliers, correlation. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from assay_agent.evidence.filters import as_number
from assay_agent.scout.keys import key_of
from assay_agent.scout.questions.joins import Names, named
from assay_agent.scout.questions.question import GROUPS_SHOWN, ROWS_SHOWN, Question, Results, minimum_rows
from assay_agent.scout.roles import (
    Roles,
    humanised,
)
from assay_agent.scout.situation import Table
from assay_agent.scout.sql_text import Sql, literal

_NONE: Names = {}
_CORRELATED = 8
_SEPARATED, _MANY_MEASURES = 40, 4
"""Measures compared in one statement, and from how many on it is worth it."""
DETERMINED_ETA = 0.9
"""Share of variance from which a grouping rather defines a measure, or a group holds placeholders, than goes with it."""


def groups(table: Table, roles: Roles, sql: Sql, names: Names) -> Iterator[Question]:
    for m_rank, measure in enumerate(roles.measures[:4]):
        for d_rank, dimension in enumerate(roles.dimensions[:5]):
            yield Question(
                key=key_of("group", table.ref, dimension, measure),
                priority=3 + m_rank * 1.2 + d_rank * 0.8,
                purpose=f"Difference in {humanised(measure)} between groups of {humanised(dimension)} in {table.ref}",
                sql=grouped(
                    table,
                    group=sql.name(dimension),
                    label=dimension,
                    measure=measure,
                    roles=roles,
                    sql=sql,
                    names=names,
                ),
            )


def grouped(
    table: Table,
    *,
    group: str,
    label: str,
    measure: str,
    roles: Roles,
    sql: Sql,
    names: Names = _NONE,
) -> str:
    """Groups with size and mean, the overall mean, and eta squared (the share of variance between all groups)."""
    m, value, least = sql.number(measure), sql.measured(measure), minimum_rows(roles.rows)
    mean = sql.name(f"mean_{measure}")
    shown, join = named(sql, names, label, table="g", column="label")
    return (
        f"WITH g AS (SELECT {group} AS label, count({value}) AS n_rows, avg({m}) AS mean_value, min(centre_0) AS centre, sum(({m} - centre_0) * ({m} - centre_0)) AS squares "
        f"FROM {sql.ref(table.ref)} CROSS JOIN {sql.centres(table.ref, [measure])} WHERE {value} IS NOT NULL AND {group} IS NOT NULL GROUP BY {group}), "
        f"t AS (SELECT sum(n_rows) AS n_all, count(*) AS n_groups, sum(n_rows * mean_value) / sum(n_rows) AS overall_mean, sum(squares) AS squares, min(centre) AS centre FROM g), "
        f"e AS (SELECT sum(g.n_rows * (g.mean_value - t.overall_mean) * (g.mean_value - t.overall_mean)) AS between_groups FROM g CROSS JOIN t) "
        f"SELECT {shown} AS {sql.name(label)}, g.n_rows, g.mean_value AS {mean}, t.overall_mean, "
        f"e.between_groups / nullif(t.squares - t.n_all * (t.overall_mean - t.centre) * (t.overall_mean - t.centre), 0) AS eta_squared, t.n_all, t.n_groups, {least} AS min_rows "
        f"FROM g CROSS JOIN t CROSS JOIN e{join} WHERE g.n_rows >= {least} ORDER BY g.mean_value DESC, g.label LIMIT {GROUPS_SHOWN}"
    )


def concentration(table: Table, roles: Roles, sql: Sql, names: Names) -> Iterator[Question]:
    for rank, name in enumerate([*roles.keys, *roles.dimensions][:4]):
        column = sql.name(name)
        shown, join = named(sql, names, name, table="s", column=name)
        if roles.distinct(name) >= roles.rows * 0.9:
            continue
        yield Question(
            key=key_of("conc", table.ref, name),
            priority=4 + rank * 0.9,
            purpose=f"Concentration: share of rows by {humanised(name)} in {table.ref}",
            sql=(
                f"SELECT {shown} AS {column}, s.n_rows, s.n_rows * 1.0 / s.n_all AS share_of_rows, sum(s.n_rows) OVER (ORDER BY s.n_rows DESC, s.{column}) * 1.0 / s.n_all AS cumulative_share, s.n_groups "
                f"FROM (SELECT {column}, count(*) AS n_rows, sum(count(*)) OVER () AS n_all, count(*) OVER () AS n_groups FROM {sql.ref(table.ref)} "
                f"WHERE {column} IS NOT NULL GROUP BY {column}) AS s{join} ORDER BY s.n_rows DESC, s.{column} LIMIT {ROWS_SHOWN}"
            ),
        )


def outliers(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    for rank, name in enumerate(roles.measures[:3]):
        quartiles = sql.quartiles(table.ref, name)
        if quartiles is None:
            return
        column = sql.measured(name)
        yield Question(
            key=key_of("outlier", table.ref, name),
            priority=4.2 + rank * 1.1,
            purpose=f"Outliers and extremes of {humanised(name)} in {table.ref}",
            sql=(
                f"WITH {quartiles} "
                f"SELECT q.n_rows, q.lowest, q.p25, q.median, q.p75, q.p99, q.highest, sum(CASE WHEN {column} > q.p75 + 3 * (q.p75 - q.p25) THEN 1 ELSE 0 END) AS n_far_above, "
                f"sum(CASE WHEN {column} < q.p25 - 3 * (q.p75 - q.p25) THEN 1 ELSE 0 END) AS n_far_below, "
                f"sum(CASE WHEN {column} > q.p75 + 3 * (q.p75 - q.p25) THEN 1 ELSE 0 END) * 1.0 / q.n_rows AS share_far_above "
                f"FROM {sql.ref(table.ref)} CROSS JOIN q WHERE {column} IS NOT NULL GROUP BY q.n_rows, q.lowest, q.p25, q.median, q.p75, q.p99, q.highest"
            ),
        )


def correlations(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    names = roles.measures[:_CORRELATED]
    statement = sql.correlations(table.ref, names) if len(names) > 1 else None
    if statement is None:
        return
    yield Question(
        key=key_of("corr", table.ref),
        priority=4.5,
        purpose=f"Correlation between measures of {table.ref}",
        sql=f"{statement} ORDER BY abs(pearson_r) DESC, column_a, column_b LIMIT {ROWS_SHOWN}",
    )


def separations(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    """Of many measures, which differ most between the groups of a dimension: their shares of variance, in one scan."""
    measures = roles.measures[:_SEPARATED]
    if len(measures) <= _MANY_MEASURES:
        return
    for rank, dimension in enumerate(roles.dimensions[:2]):
        group = sql.name(dimension)
        sums = ", ".join(
            f"count({m}) AS n{k}, avg({m}) AS a{k}, sum(({m}) * ({m})) AS q{k}"
            for k, m in enumerate(f"{sql.number(name)} - centre_{k}" for k, name in enumerate(measures))
        )
        rows = " UNION ALL ".join(
            f"SELECT {literal(name)} AS column_name, (sum(n{k} * a{k} * a{k}) - sum(n{k} * a{k}) * sum(n{k} * a{k}) / nullif(sum(n{k}), 0)) "
            f"/ nullif(sum(q{k}) - sum(n{k} * a{k}) * sum(n{k} * a{k}) / nullif(sum(n{k}), 0), 0) AS eta_squared, "
            f"sum(n{k}) AS n_rows, count(a{k}) AS n_groups FROM g"
            for k, name in enumerate(measures)
        )
        yield Question(
            key=key_of("sep", table.ref, dimension),
            priority=2.6 + rank,
            purpose=f"Which measures differ most between groups of {humanised(dimension)} in {table.ref}",
            sql=(
                f"WITH g AS (SELECT {group} AS label, {sums} FROM {sql.ref(table.ref)} CROSS JOIN {sql.centres(table.ref, measures)} WHERE {group} IS NOT NULL GROUP BY {group}), u AS ({rows}) "
                f"SELECT column_name, eta_squared, n_rows, n_groups FROM u WHERE eta_squared IS NOT NULL ORDER BY eta_squared DESC, column_name"
            ),
        )


def told_apart(table: Table, roles: Roles, results: Results) -> Roles:
    """The measures in the order in which the first dimension separates them, where that has been asked and is in view."""
    for dimension in roles.dimensions[:2]:
        rows = results.get(key_of("sep", table.ref, dimension))
        if rows:
            first = [
                str(row.get("column_name"))
                for row in rows
                if (as_number(row.get("eta_squared")) or 0) <= DETERMINED_ETA
            ]
            known = [name for name in first if name in roles.measures]
            return replace(roles, measures=(*known, *(name for name in roles.measures if name not in known)))
    return roles
