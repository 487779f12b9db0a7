"""The corpus of analytic queries as a whole: what passes the guard in each dialect, and the tables to run it on."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.sql_corpus.queries import (
    bigquery,
    common,
    duckdb,
    postgres,
    redshift,
    retail,
    sqlite,
    tables,
    trade,
)
from tests.unit.sql_corpus.queries.flights import FLIGHTS
from tests.unit.sql_corpus.queries.macros import written
from tests.unit.sql_corpus.queries.windows import windows

TABLES: Mapping[str, tuple[str, ...]] = {
    dialect: (*FLIGHTS[dialect], *tables.statements(dialect)) for dialect in ("duckdb", "sqlite", "postgres")
}

_OWN = {
    "duckdb": duckdb.QUERIES,
    "sqlite": sqlite.QUERIES,
    "postgres": postgres.QUERIES,
    "bigquery": bigquery.QUERIES,
    "redshift": redshift.QUERIES,
}
_NOT_IN = {
    "bigquery": ("FILTER (", '"', "EXCEPT SELECT", "INTERSECT SELECT", " UNION SELECT", "VALUES (", "''"),
    "redshift": ("FILTER (", " WINDOW w", "nth_value", "VALUES ("),
}
"""Signs of what the common queries use and these dialects lack."""


def queries(dialect: str) -> list[str]:
    """Queries of a dialect, all true SQL of it."""
    lacking = _NOT_IN.get(dialect, ())
    shared = [*common.EVERYWHERE, *windows(), *retail.grid()]
    templates = [*trade.TEMPLATES, *retail.TEMPLATES]
    return [
        *(sql for sql in shared if not any(sign in sql for sign in lacking)),
        *(written(template, dialect) for template in templates),
        *_OWN[dialect],
    ]
