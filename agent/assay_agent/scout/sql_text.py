"""SQL as the scout writes it, with the few differences between dialects in one place. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay_agent.scout.situation import Column
from assay_agent.sql.dialects import quote_name, quote_ref

_APPROXIMATE_FROM = 2_000_000
"""Rows from which distinct values are counted approximately where the dialect can."""


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Sql:
    """Expressions of one dialect."""

    dialect: str

    def name(self, column: str) -> str:
        return quote_name(column, dialect=self.dialect)

    def ref(self, table: str) -> str:
        return quote_ref(table, dialect=self.dialect)

    def distinct(self, column: str, rows: int | None) -> str:
        if self.dialect == "duckdb" and (rows or 0) >= _APPROXIMATE_FROM:
            return f"approx_count_distinct({self.name(column)})"
        return f"count(DISTINCT {self.name(column)})"

    def number(self, column: str) -> str:
        """The column as a floating number, so that sums cannot overflow and divisions are not whole."""
        kind = {"sqlite": "REAL", "bigquery": "FLOAT64"}.get(self.dialect, "DOUBLE PRECISION")
        return f"CAST({self.measured(column)} AS {kind})"

    def measured(self, column: str) -> str:
        """The column where it holds a number: SQLite types values, not columns, and sorts a text above every number."""
        name = self.name(column)
        if self.dialect != "sqlite":
            return name
        return f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name} END"

    def other_than_numbers(self, column: str) -> str | None:
        """How many values of a column of numbers are none; None where the dialect keeps them out."""
        if self.dialect != "sqlite":
            return None
        return f"count({self.name(column)}) - count({self.measured(column)})"

    def text(self, expression: str) -> str:
        kind = {"sqlite": "TEXT", "bigquery": "STRING"}.get(self.dialect, "VARCHAR")
        return f"CAST({expression} AS {kind})"

    def period(self, column: Column, unit: str) -> str:
        """The start of the day, week, month, quarter or year of a time column, as a date or ISO text."""
        name = self.name(column.name)
        if self.dialect == "bigquery":
            day = self._date(column)
            if unit == "week":
                return f"DATE_SUB({day}, INTERVAL MOD(extract(dayofweek FROM {day}) + 5, 7) DAY)"
            return f"DATE_TRUNC({day}, {unit.upper()})"
        if self.dialect == "sqlite" or not any(word in column.type for word in ("DATE", "TIMESTAMP")):
            if unit == "quarter":
                month = f"CAST(substr({name}, 6, 2) AS INTEGER)"
                return f"substr({name}, 1, 5) || substr('0' || ({month} - ({month} - 1) % 3), -2)"
            if unit == "week" and self.dialect == "sqlite":
                return f"date({name}, 'weekday 0', '-6 days')"
            return f"substr({name}, 1, {({'year': 4, 'month': 7}).get(unit, 10)})"
        return f"CAST(date_trunc('{unit}', {name}) AS DATE)"

    def _date(self, column: Column) -> str:
        """BigQuery truncates dates alone: text that is none becomes NULL."""
        name = self.name(column.name)
        if any(word in column.type for word in ("DATE", "TIMESTAMP")):
            return f"CAST({name} AS DATE)"
        return f"SAFE_CAST(substr({name}, 1, 10) AS DATE)"

    def day(self, column: Column) -> str:
        """The day of a time column, as a date or ISO text."""
        name = self.name(column.name)
        if self.dialect == "sqlite" or not any(word in column.type for word in ("DATE", "TIMESTAMP")):
            return f"substr({name}, 1, 10)"
        return f"CAST({name} AS DATE)"

    def year_quarter(self, year: str, month: str) -> str:
        """The first day of a quarter from two whole columns."""
        m = self.name(month)
        if self.dialect == "bigquery":
            return f"DATE(CAST({self.name(year)} AS INT64), CAST({m} - MOD({m} - 1, 3) AS INT64), 1)"
        if self.dialect == "sqlite":
            return f"printf('%04d-%02d-01', {self.name(year)}, {m} - ({m} - 1) % 3)"
        return f"make_date(CAST({self.name(year)} AS INTEGER), CAST({m} - ({m} - 1) % 3 AS INTEGER), 1)"

    def year_month(self, year: str, month: str) -> str:
        """A date from two whole columns."""
        if self.dialect == "sqlite":
            return f"printf('%04d-%02d-01', {self.name(year)}, {self.name(month)})"
        if self.dialect == "bigquery":
            return f"DATE(CAST({self.name(year)} AS INT64), CAST({self.name(month)} AS INT64), 1)"
        return f"make_date(CAST({self.name(year)} AS INTEGER), CAST({self.name(month)} AS INTEGER), 1)"

    def decade(self, year: str) -> str:
        """The first year of a decade from a whole column."""
        y = self.name(year)
        return f"{y} - MOD({y}, 10)" if self.dialect == "bigquery" else f"{y} - {y} % 10"

    def weekday(self, column: Column) -> str | None:
        """Monday to Sunday in words; None where the dialect has no plain way."""
        name = self.name(column.name)
        if self.dialect == "sqlite":
            days = " ".join(f"WHEN '{at % 7}' THEN '{day}'" for at, day in enumerate(_WEEKDAYS, start=1))
            return f"CASE strftime('%w', {name}) {days} END"
        if not any(word in column.type for word in ("DATE", "TIMESTAMP")):
            return None
        if self.dialect == "bigquery":
            days = " ".join(f"WHEN {at % 7 + 1} THEN '{day}'" for at, day in enumerate(_WEEKDAYS, start=1))
            return f"CASE extract(dayofweek FROM {name}) {days} END"
        days = " ".join(f"WHEN {at} THEN '{day}'" for at, day in enumerate(_WEEKDAYS, start=1))
        return f"CASE CAST(extract(isodow FROM {name}) AS INTEGER) {days} END"

    def hour(self, column: Column) -> str | None:
        if self.dialect == "sqlite":
            return f"CAST(strftime('%H', {self.name(column.name)}) AS INTEGER)"
        if "TIMESTAMP" not in column.type:
            return None
        return f"CAST(extract(hour FROM {self.name(column.name)}) AS INTEGER)"

    def centres(self, table: str, names: Sequence[str]) -> str:
        """A row `c` of overall means, `centre_0` and on; squares are taken from there, so that large numbers do not cancel."""
        means = ", ".join(f"avg({self.number(name)}) AS centre_{i}" for i, name in enumerate(names))
        return f"(SELECT {means} FROM {self.ref(table)}) AS c"

    def quartiles(self, table: str, column: str) -> str | None:
        """Common table expressions that end in `q`: n_rows, lowest, p25, median, p75, p99 and highest of a column."""
        name, ref = self.measured(column), self.ref(table)
        shares = (("p25", 0.25), ("median", 0.5), ("p75", 0.75), ("p99", 0.99))
        if self.dialect == "sqlite":
            cut = ", ".join(f"{_ranked(share)} AS {label}" for label, share in shares)
            return (
                f"v AS (SELECT {name} AS x, row_number() OVER (ORDER BY {name}) AS rn, count(*) OVER () AS n FROM {ref} WHERE {name} IS NOT NULL), "
                f"q AS (SELECT count(*) AS n_rows, min(x) AS lowest, {cut}, max(x) AS highest FROM v)"
            )
        if self.dialect == "duckdb":
            cut = ", ".join(f"quantile_cont({name}, {share}) AS {label}" for label, share in shares)
        elif self.dialect in ("postgres", "redshift"):
            cut = ", ".join(
                f"percentile_cont({share}) WITHIN GROUP (ORDER BY {name}) AS {label}"
                for label, share in shares
            )
        elif self.dialect == "bigquery":
            cut = ", ".join(
                f"approx_quantiles({name}, 100)[OFFSET({round(share * 100)})] AS {label}"
                for label, share in shares
            )
        else:
            return None
        return f"q AS (SELECT count({name}) AS n_rows, min({name}) AS lowest, {cut}, max({name}) AS highest FROM {ref})"

    def correlations(self, table: str, names: Sequence[str]) -> str | None:
        """A statement of one scan with a row per pair of columns: Pearson's r and the rows that have both."""
        pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
        if self.dialect in ("duckdb", "postgres", "bigquery"):
            base = ""
            source = self.ref(table)
            columns = [self.number(name) for name in names]
            terms = [f"corr({columns[i]}, {columns[j]})" for i, j in pairs]
        elif self.dialect == "sqlite":
            centred = ", ".join(f"{self.number(name)} - centre_{i} AS x{i}" for i, name in enumerate(names))
            source = "d"
            base = f"d AS (SELECT {centred} FROM {self.ref(table)} CROSS JOIN {self.centres(table, names)}), "
            columns = [f"x{i}" for i in range(len(names))]
            terms = [_pearson(columns[i], columns[j]) for i, j in pairs]
        else:
            return None
        parts = ", ".join(
            f"{term} AS r{k}, count({columns[i]} + {columns[j]}) AS n{k}"
            for k, (term, (i, j)) in enumerate(zip(terms, pairs, strict=True))
        )
        rows = " UNION ALL ".join(
            f"SELECT {literal(names[i])} AS column_a, {literal(names[j])} AS column_b, r{k} AS pearson_r, n{k} AS n_rows FROM s"
            for k, (i, j) in enumerate(pairs)
        )
        return f"WITH {base}s AS (SELECT {parts} FROM {source}), u AS ({rows}) SELECT column_a, column_b, pearson_r, n_rows FROM u WHERE pearson_r IS NOT NULL"


def _ranked(share: float) -> str:
    """A quantile from ranked rows, interpolated between two of them as other dialects do it."""
    place = f"(max(n) - 1) * {share}"
    below = f"max(CASE WHEN rn = 1 + CAST((n - 1) * {share} AS INTEGER) THEN x END)"
    above = f"max(CASE WHEN rn = 2 + CAST((n - 1) * {share} AS INTEGER) THEN x END)"
    return f"{below} + (coalesce({above}, {below}) - {below}) * ({place} - CAST({place} AS INTEGER))"


def _pearson(x: str, y: str) -> str:
    """Pearson's r by sums over the rows that have both; `x` and `y` are centred, so that nothing cancels."""
    n, sx, sy = f"count({x} + {y})", f"sum({x} + 0 * {y})", f"sum({y} + 0 * {x})"
    xx, yy = f"sum({x} * {x} + 0 * {y})", f"sum({y} * {y} + 0 * {x})"
    return f"({n} * sum({x} * {y}) - {sx} * {sy}) / nullif(sqrt(({n} * {xx} - {sx} * {sx}) * ({n} * {yy} - {sy} * {sy})), 0)"


def literal(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"
