"""SQL as the scout writes it, with the few differences between dialects in one place. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from assay_agent.scout.situation import Column
from assay_agent.sql.dialects import quote_name, quote_ref

_APPROXIMATE_FROM = 2_000_000
"""Rows from which distinct values are counted approximately where the dialect can."""


@dataclass(frozen=True, slots=True)
class Sql:
    """Expressions of one dialect."""

    dialect: str

    def name(self, column: str) -> str:
        return quote_name(column)

    def ref(self, table: str) -> str:
        return quote_ref(table)

    def distinct(self, column: str, rows: int | None) -> str:
        if self.dialect == "duckdb" and (rows or 0) >= _APPROXIMATE_FROM:
            return f"approx_count_distinct({self.name(column)})"
        return f"count(DISTINCT {self.name(column)})"

    def number(self, column: str) -> str:
        """The column as a floating number, so that sums cannot overflow and divisions are not whole."""
        return f"CAST({self.name(column)} AS {'REAL' if self.dialect == 'sqlite' else 'DOUBLE PRECISION'})"

    def period(self, column: Column, unit: str) -> str:
        """The start of the day, week, month, quarter or year of a time column, as a date or ISO text."""
        name = self.name(column.name)
        if self.dialect == "sqlite" or not any(word in column.type for word in ("DATE", "TIMESTAMP")):
            if unit == "quarter":
                month = f"CAST(substr({name}, 6, 2) AS INTEGER)"
                return f"substr({name}, 1, 5) || substr('0' || ({month} - ({month} - 1) % 3), -2)"
            return f"substr({name}, 1, {({'year': 4, 'month': 7}).get(unit, 10)})"
        return f"CAST(date_trunc('{unit}', {name}) AS DATE)"

    def year_quarter(self, year: str, month: str) -> str:
        """The first day of a quarter from two whole columns."""
        m = self.name(month)
        if self.dialect == "sqlite":
            return f"printf('%04d-%02d-01', {self.name(year)}, {m} - ({m} - 1) % 3)"
        return f"make_date(CAST({self.name(year)} AS INTEGER), CAST({m} - ({m} - 1) % 3 AS INTEGER), 1)"

    def year_month(self, year: str, month: str) -> str:
        """A date from two whole columns."""
        if self.dialect == "sqlite":
            return f"printf('%04d-%02d-01', {self.name(year)}, {self.name(month)})"
        return f"make_date(CAST({self.name(year)} AS INTEGER), CAST({self.name(month)} AS INTEGER), 1)"

    def weekday(self, column: Column) -> str | None:
        """1 for Monday to 7 for Sunday; None where the dialect has no plain way."""
        if self.dialect == "sqlite" or not any(word in column.type for word in ("DATE", "TIMESTAMP")):
            return None
        return f"CAST(extract(isodow FROM {self.name(column.name)}) AS INTEGER)"

    def hour(self, column: Column) -> str | None:
        if self.dialect == "sqlite" or "TIMESTAMP" not in column.type:
            return None
        return f"CAST(extract(hour FROM {self.name(column.name)}) AS INTEGER)"

    def quantile(self, column: str, share: float) -> str | None:
        """A quantile of a column, None where the dialect has no such aggregate."""
        if self.dialect == "duckdb":
            return f"quantile_cont({self.name(column)}, {share})"
        if self.dialect in ("postgres", "redshift"):
            return f"percentile_cont({share}) WITHIN GROUP (ORDER BY {self.name(column)})"
        return None

    def correlation(self, a: str, b: str) -> str | None:
        if self.dialect in ("duckdb", "postgres", "bigquery"):
            return f"corr({self.number(a)}, {self.number(b)})"
        return None


def literal(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"
