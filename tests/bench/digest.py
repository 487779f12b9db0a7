"""The digest of a full result against DuckDB's SUMMARIZE of the same rows, in one run, turn by turn."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from assay_agent.adapters.duckdb import open_warehouse
from assay_agent.adapters.nycflights import load_nycflights
from assay_agent.evidence.digest import column_digests, digest, read_columns
from assay_agent.policy import DigestPolicy, QueryPolicy
from assay_agent.ports import QueryLimits, WarehouseSettings
from tests.bench.table import Line

COLUMNS = "carrier, flight, tailnum, origin, dest, dep_delay, arr_delay, air_time, distance, time_hour"
ROUNDS = 31
GOAL = 0.5
WHOLE_GOAL = 1.0
"""With every row as a document besides, which SUMMARIZE does not give and building dicts alone costs."""


def lines() -> list[Line]:
    """Median seconds of both, over rows at the row cap."""
    policy = QueryPolicy()
    with tempfile.TemporaryDirectory() as folder:
        path = load_nycflights(Path(folder))
        warehouse = open_warehouse(
            WarehouseSettings(datasource_id="default", provider="duckdb", config={"path": str(path)})
        )
        limits = QueryLimits(
            rows=policy.rows,
            cell_chars=policy.cell_chars,
            result_bytes=policy.result_bytes,
            timeout_s=policy.timeout_s,
        )
        result = warehouse.execute(f"SELECT {COLUMNS} FROM flights", limits=limits)
        warehouse.close()
        names = [column.name for column in result.columns]
        kept = DigestPolicy()
        with duckdb.connect() as connection:
            connection.execute("SET threads = 2")
            connection.execute(f"ATTACH '{path}' AS source (READ_ONLY)")
            connection.execute(f"CREATE TABLE t AS SELECT {COLUMNS} FROM source.flights LIMIT {policy.rows}")
            sides: dict[str, Callable[[], object]] = {
                "statistics": lambda: column_digests(names, read_columns(names, result.rows), policy=kept),
                "whole": lambda: digest(result.columns, result.rows, policy=kept, truncated=result.truncated),
                "summarize": lambda: connection.execute("SUMMARIZE t").fetchall(),
            }
            times: dict[str, list[float]] = {side: [] for side in sides}
            for _ in range(ROUNDS):
                for side, work in sides.items():
                    times[side].append(_timed(work))
    median = {side: statistics.median(taken) * 1000 for side, taken in times.items()}
    size = f"{len(result.rows):,} rows x {len(result.columns)}"
    return [
        _line(f"digest's statistics, {size}, vs SUMMARIZE", median["statistics"], median["summarize"], GOAL),
        _line(
            f"digest with {size} storable rows, vs SUMMARIZE",
            median["whole"],
            median["summarize"],
            WHOLE_GOAL,
        ),
    ]


def _line(what: str, ours: float, theirs: float, goal: float) -> Line:
    return Line(what=what, ours=ours, theirs=theirs, unit="ms", goal=goal)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
