"""The guard and the tenant filter against the parser's own work on the same statements, in one run, turn by turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import sqlglot

from assay_agent.sql.dialects import dialect_of
from assay_agent.sql.guard import Guarded, check, parsed
from assay_agent.sql.rendering import render
from assay_agent.sql.tenant import Filter, TableFacts, confine, unproven
from tests.bench.table import Line
from tests.unit.sql_corpus.queries.all import queries
from tests.unit.sql_corpus.queries.tables import RETAIL, TRADE

ROUNDS = 15
GUARD_GOAL = 3.0
"""Parsed and written at least once, mostly twice, and looked at in between."""
FILTER_GOAL = 3.0
"""Parsed for the filter, guarded again, parsed for the proof: on top of the guard."""


def lines() -> list[Line]:
    """Median milliseconds per statement of the corpus, which has 0.05 to 1.3 kB each."""
    found = []
    for dialect in ("duckdb", "postgres"):
        statements = queries(dialect)
        passed = [check(sql, dialect=dialect) for sql in statements]
        facts = {
            name: TableFacts(schema="main", name=name, column="tenant")
            for name in (*TRADE, *RETAIL, "flights", "airlines", "Order Lines")
        }
        facts |= {f"{schema}.{name}": fact for name, fact in facts.items() for schema in ("main", "public")}
        tenant = Filter(value="acme", facts=facts)
        confinable = [
            guarded
            for guarded in passed
            if all(table in facts for table in guarded.tables) and guarded.tables
        ]

        def filtered(guarded: Guarded, dialect: str = dialect, tenant: Filter = tenant) -> None:
            language = dialect_of(dialect)
            tree = confine(parsed(guarded, dialect=dialect), language=language, tenant=tenant)
            text = render(tree, dialect=dialect, source=guarded.sql)
            left: list[str] = []
            check(
                text,
                dialect=dialect,
                proof=lambda final: left.extend(unproven(final, language=language, tenant=tenant)),
            )
            assert not left

        def guarded_only(sql: str, dialect: str = dialect) -> None:
            check(sql, dialect=dialect)

        def written(sql: str, dialect: str = dialect) -> None:
            sqlglot.parse_one(sql, read=dialect).sql(dialect)

        guard, bare = _both(guarded_only, written, statements, statements)
        found.append(
            Line(
                what=f"guard, {len(statements)} {dialect} queries, vs parse and write",
                ours=guard,
                theirs=bare,
                unit="ms",
                goal=GUARD_GOAL,
            )
        )
        confined, guard = _both(filtered, guarded_only, confinable, [g.sql for g in confinable])
        found.append(
            Line(
                what=f"tenant filter, {len(confinable)} {dialect} queries, vs the guard alone",
                ours=confined,
                theirs=guard,
                unit="ms",
                goal=FILTER_GOAL,
            )
        )
    return found


def _both(
    ours: Callable[..., None], theirs: Callable[..., None], items: Sequence[object], others: Sequence[object]
) -> tuple[float, float]:
    """Median milliseconds of one item on either side, taken turn by turn."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for side, (work, several) in enumerate(((ours, items), (theirs, others))):
            started = time.perf_counter()
            for item in several:
                work(item)
            taken[side].append((time.perf_counter() - started) * 1000 / len(several))
    return statistics.median(taken[0]), statistics.median(taken[1])
