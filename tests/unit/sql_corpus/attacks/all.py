"""The corpus of attacks as a whole: what is refused everywhere, and what only one product understands."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.sql_corpus.attacks import (
    bigquery,
    calls,
    duckdb,
    postgres,
    redshift,
    sqlite,
    statements,
    texts,
)

EVERYWHERE: Mapping[str, tuple[str, ...]] = {
    "stacked": statements.STACKED,
    "writes": statements.WRITES,
    "definitions": statements.DEFINITIONS,
    "commands": statements.COMMANDS,
    "cte_writes": statements.CTE_WRITES,
    "into": statements.INTO,
    "locks": statements.LOCKS,
    "comments": statements.COMMENTS,
    "functions": calls.FUNCTIONS,
    "system": calls.SYSTEM,
    "parameters": texts.PARAMETERS,
    "control_characters": texts.CONTROL,
    "look_alikes": texts.LOOK_ALIKES,
    "not_sql": texts.NOT_SQL,
    "nesting": texts.NESTING,
}

OWN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "duckdb": duckdb.BY_CLASS,
    "sqlite": sqlite.BY_CLASS,
    "postgres": postgres.BY_CLASS,
    "bigquery": bigquery.BY_CLASS,
    "redshift": redshift.BY_CLASS,
}

DIALECTS = tuple(OWN)


def attacks(dialect: str) -> list[tuple[str, str]]:
    """Every (class, statement) that `dialect` must refuse."""
    common = [(kind, sql) for kind, several in EVERYWHERE.items() for sql in several]
    return common + [(f"{dialect} {kind}", sql) for kind, several in OWN[dialect].items() for sql in several]
