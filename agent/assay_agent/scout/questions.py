"""What an analyst would ask of a table, as SQL with a stable key, the most telling first. Pure.

Every statement returns its evidence ready to be cited: groups with their size, rates with their base, the threshold it used, and what
matters most in the first rows. Families: profile, missing, dup, orphan, gap, conc, trend, season, sep, group, outlier, corr.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay_agent.evidence.filters import as_number
from assay_agent.scout.keys import key_of, told
from assay_agent.scout.roles import (
    Profile,
    Roles,
    humanised,
    is_name,
    is_numeric,
    is_simple,
    is_time,
    may_point,
    named_table,
)
from assay_agent.scout.situation import Table
from assay_agent.scout.sql_text import Sql, literal

_PROFILE_COLUMNS = 12
_MISSING_COLUMNS = 12
_DUPLICATE_ROWS = 2_000_000
_SHOWN = 20
GROUPS_SHOWN = 100
"""More than a dimension has values: the last row is the lowest group, not merely the last one shown."""
_CORRELATED = 8
_SEPARATED, _MANY_MEASURES = 40, 4
"""Measures compared in one statement, and from how many on it is worth it."""
DETERMINED_ETA = 0.9
"""Share of variance from which a grouping rather defines a measure, or a group holds placeholders, than goes with it."""
_LEAST_OVER_TIME = 50
"""Rows a table needs before its movement over time is asked for."""
_NOTHING: Mapping[str, Any] = {}
Results = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Where the numbers of a column have names: a table, its key, and its column of names, different in every row."""

    ref: str
    key: str
    name: str


Names = Mapping[str, Naming]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Smaller `priority` is asked first; `key` is unique and stable."""

    key: str
    priority: float
    purpose: str
    sql: str

    @property
    def told(self) -> str:
        """The purpose with its key, as it goes into `query_purpose`."""
        return told(self.purpose, self.key)


def minimum_rows(rows: int) -> int:
    """Rows a group needs to be spoken of: enough for its mean to be steady."""
    for size, least in ((100_000, 1_000), (10_000, 100), (1_000, 30), (200, 10)):
        if rows >= size:
            return least
    return 3


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
                parts += [f"min({name}) AS c{position}_min", f"max({name}) AS c{position}_max"]
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
            )
    return None if rows is None else (rows, profiles)


def _whole(value: Any) -> int | None:
    number = as_number(value)
    return None if number is None else int(number)


def table_questions(
    table: Table, roles: Roles, sql: Sql, *, results: Results = _NOTHING, names: Names = _NOTHING
) -> list[Question]:
    """Everything worth asking of a profiled table, by priority; `names` are the readable names of numbered groups."""
    if roles.rows < 2:
        return []
    separations = list(_separations(table, roles, sql))
    roles = _told_apart(table, roles, results)
    found = [
        *separations,
        *_missing(table, roles, sql),
        *_duplicates(table, roles, sql),
        *_gaps(table, roles, sql, names),
        *_trends(table, roles, sql),
        *_seasons(table, roles, sql),
        *_groups(table, roles, sql, names),
        *_concentration(table, roles, sql, names),
        *_outliers(table, roles, sql),
        *_correlations(table, roles, sql),
    ]
    return sorted(found, key=lambda question: (question.priority, question.key))


def _incomplete(roles: Roles) -> list[str]:
    return [
        name
        for name, profile in roles.profiles.items()
        if profile.filled is not None and profile.filled < roles.rows
    ]


def _missing(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
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


def _duplicates(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    if (
        roles.rows > _DUPLICATE_ROWS
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


def join_questions(
    table: Table, roles: Roles, others: Sequence[tuple[Table, Roles]], sql: Sql
) -> Iterator[Question]:
    """Keys that find no partner: a column named as another table's unique column, or as the table itself.

    `order_id` belongs to `orders`, even where it happens to be unique in `payments`.
    """
    refs = [table.ref, *(other.ref for other, _ in others)]
    for other, theirs in others:
        if other.ref == table.ref or theirs.rows > roles.rows:
            continue
        for mine, key in _pointers(table, other, theirs):
            owner = named_table(mine, refs)
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


def _named(sql: Sql, names: Names, dimension: str, *, table: str, column: str) -> tuple[str, str]:
    """The readable value of a group, and the join it needs; the plain value where its number has no name."""
    given = f"{table}.{sql.name(column)}"
    naming = names.get(dimension)
    if naming is None:
        return given, ""
    text = f"CAST({given} AS {'TEXT' if sql.dialect == 'sqlite' else 'VARCHAR'})"
    join = f" LEFT JOIN {sql.ref(naming.ref)} AS o ON o.{sql.name(naming.key)} = {given}"
    return f"coalesce(o.{sql.name(naming.name)}, {text})", join


def _gaps(table: Table, roles: Roles, sql: Sql, names: Names) -> Iterator[Question]:
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
            shown, join = _named(sql, names, dimension, table="s", column=dimension)
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


def _grouped(
    table: Table,
    *,
    group: str,
    label: str,
    measure: str,
    roles: Roles,
    sql: Sql,
    names: Names = _NOTHING,
) -> str:
    """Groups with size and mean, the overall mean, and eta squared (the share of variance between all groups)."""
    m, least = sql.number(measure), minimum_rows(roles.rows)
    mean = sql.name(f"mean_{measure}")
    shown, join = _named(sql, names, label, table="g", column="label")
    return (
        f"WITH g AS (SELECT {group} AS label, count({sql.name(measure)}) AS n_rows, avg({m}) AS mean_value, min(centre_0) AS centre, sum(({m} - centre_0) * ({m} - centre_0)) AS squares "
        f"FROM {sql.ref(table.ref)} CROSS JOIN {sql.centres(table.ref, [measure])} WHERE {sql.name(measure)} IS NOT NULL AND {group} IS NOT NULL GROUP BY {group}), "
        f"t AS (SELECT sum(n_rows) AS n_all, count(*) AS n_groups, sum(n_rows * mean_value) / sum(n_rows) AS overall_mean, sum(squares) AS squares, min(centre) AS centre FROM g), "
        f"e AS (SELECT sum(g.n_rows * (g.mean_value - t.overall_mean) * (g.mean_value - t.overall_mean)) AS between_groups FROM g CROSS JOIN t) "
        f"SELECT {shown} AS {sql.name(label)}, g.n_rows, g.mean_value AS {mean}, t.overall_mean, "
        f"e.between_groups / nullif(t.squares - t.n_all * (t.overall_mean - t.centre) * (t.overall_mean - t.centre), 0) AS eta_squared, t.n_all, t.n_groups, {least} AS min_rows "
        f"FROM g CROSS JOIN t CROSS JOIN e{join} WHERE g.n_rows >= {least} ORDER BY g.mean_value DESC, g.label LIMIT {GROUPS_SHOWN}"
    )


def _groups(table: Table, roles: Roles, sql: Sql, names: Names) -> Iterator[Question]:
    for m_rank, measure in enumerate(roles.measures[:4]):
        for d_rank, dimension in enumerate(roles.dimensions[:5]):
            yield Question(
                key=key_of("group", table.ref, dimension, measure),
                priority=3 + m_rank * 1.2 + d_rank * 0.8,
                purpose=f"Difference in {humanised(measure)} between groups of {humanised(dimension)} in {table.ref}",
                sql=_grouped(
                    table,
                    group=sql.name(dimension),
                    label=dimension,
                    measure=measure,
                    roles=roles,
                    sql=sql,
                    names=names,
                ),
            )


def _seasons(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
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
                sql=_grouped(table, group=expression, label=label, measure=measure, roles=roles, sql=sql),
            )


def _one_year(roles: Roles) -> bool:
    """With one year of data the month is the trend, and no season can be told from it."""
    return roles.year is not None and roles.distinct(roles.year) == 1


def _has_hours(profile: Profile | None) -> bool:
    """Whether a time column tells hours: dates, and days written as midnights, do not."""
    if profile is None or ":" not in str(profile.low):
        return False
    return not all(str(value).endswith("00:00:00") for value in (profile.low, profile.high))


def _trends(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
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
                (sql.name(roles.year), "year") if years <= _SHOWN * 2 else (sql.decade(roles.year), "decade")
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
    if roles.year and 4 <= roles.distinct(roles.year) <= _SHOWN:
        return sql.name(roles.year), "year"
    if roles.year and roles.distinct(roles.year) > _SHOWN:
        return sql.decade(roles.year), "decade"
    return None, ""


def _unit(days: int) -> str:
    """The unit of a span; empty where it is too short to show a movement."""
    for most, unit in ((3, ""), (20, "day"), (140, "week"), (610, "month"), (1_830, "quarter")):
        if days <= most:
            return unit
    return "year"


def _days(profile: Profile) -> int:
    from datetime import date

    try:
        low, high = (date.fromisoformat(str(value)[:10]) for value in (profile.low, profile.high))
    except ValueError:
        return 0
    return (high - low).days


def _concentration(table: Table, roles: Roles, sql: Sql, names: Names) -> Iterator[Question]:
    for rank, name in enumerate([*roles.keys, *roles.dimensions][:4]):
        column = sql.name(name)
        shown, join = _named(sql, names, name, table="s", column=name)
        if roles.distinct(name) >= roles.rows * 0.9:
            continue
        yield Question(
            key=key_of("conc", table.ref, name),
            priority=4 + rank * 0.9,
            purpose=f"Concentration: share of rows by {humanised(name)} in {table.ref}",
            sql=(
                f"SELECT {shown} AS {column}, s.n_rows, s.n_rows * 1.0 / s.n_all AS share_of_rows, sum(s.n_rows) OVER (ORDER BY s.n_rows DESC, s.{column}) * 1.0 / s.n_all AS cumulative_share, s.n_groups "
                f"FROM (SELECT {column}, count(*) AS n_rows, sum(count(*)) OVER () AS n_all, count(*) OVER () AS n_groups FROM {sql.ref(table.ref)} "
                f"WHERE {column} IS NOT NULL GROUP BY {column}) AS s{join} ORDER BY s.n_rows DESC, s.{column} LIMIT {_SHOWN}"
            ),
        )


def _outliers(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    for rank, name in enumerate(roles.measures[:3]):
        quartiles = sql.quartiles(table.ref, name)
        if quartiles is None:
            return
        column = sql.name(name)
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


def _correlations(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
    names = roles.measures[:_CORRELATED]
    statement = sql.correlations(table.ref, names) if len(names) > 1 else None
    if statement is None:
        return
    yield Question(
        key=key_of("corr", table.ref),
        priority=4.5,
        purpose=f"Correlation between measures of {table.ref}",
        sql=f"{statement} ORDER BY abs(pearson_r) DESC, column_a, column_b LIMIT {_SHOWN}",
    )


def _separations(table: Table, roles: Roles, sql: Sql) -> Iterator[Question]:
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


def _told_apart(table: Table, roles: Roles, results: Results) -> Roles:
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
