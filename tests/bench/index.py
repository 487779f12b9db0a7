"""The schema index of 2,000 tables against an unchanged one, and what 10,000 tables add to the memory, of the index and of a run.

Each in a process of its own. Times and `whole` are over a DuckDB file with the small local embedder and embedded stores. `alone` is
the index without them: tables made up as they are asked for, hashed vectors, and a vector store that keeps nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from assay_agent.ports import Embedder, Point, QueryLimits, QueryResult, TableRef, VectorIndex, Warehouse
from assay_core.model.step import ResultColumn
from assay_core.model.table import ColumnSchema, TableSchema
from tests.bench.table import Line

COLUMNS = 12
SMALL, LARGE = 2_000, 10_000


def lines() -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        small = _measured(folder, SMALL, "whole")
        few, many = (_measured(folder, tables, "alone") for tables in (SMALL, LARGE))
        large = _measured(folder, LARGE, "whole")
        large |= _measured(folder, LARGE, "hold")
    each = 1000 * small["first_s"] / SMALL
    again = f"extra memory of an unchanged index of {LARGE:,} tables"
    return [
        Line(what=f"index of {SMALL:,} tables, milliseconds each", ours=each, theirs=None, unit="ms", goal=20),
        Line(what="unchanged index against the first", ours=small["again_s"], theirs=small["first_s"], unit="s", goal=0.05),
        Line(what=f"extra memory, {LARGE:,} tables against {SMALL:,}", ours=many["first_mb"], theirs=few["first_mb"], unit="MB", goal=2),
        Line(what=again, ours=many["again_mb"], theirs=None, unit="MB", goal=20),
        Line(what=f"the same, DuckDB and local embedder included, {LARGE:,} tables", ours=large["first_mb"], theirs=None, unit="MB", goal=400),
        Line(what=f"memory held by a run over {LARGE:,} tables", ours=large["run_mb"], theirs=None, unit="MB", goal=150),
    ]  # fmt: skip


def _measured(folder: str, tables: int, vectors: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.index", folder, str(tables), vectors]
    said = subprocess.run(command, check=True, timeout=1_800, capture_output=True, text=True)
    found: dict[str, float] = json.loads(said.stdout.splitlines()[-1])
    return found


# ------------------------------------------------------------------------------------------------ the measured process


class MadeUp:
    """A warehouse whose tables are made up as they are asked for."""

    datasource_id = "default"
    dialect = "duckdb"
    datasets = ("main",)

    def __init__(self, tables: int) -> None:
        self._tables = tables

    def check(self) -> str:
        return "made up"

    def tables(self) -> Sequence[TableRef]:
        refs = (f"main.fact_{number:05}" for number in range(self._tables))
        return [TableRef(ref=ref, column_count=COLUMNS, row_count=5) for ref in refs]

    def describe(self, refs: Sequence[str]) -> Sequence[TableSchema]:
        columns = [f"measure_{number}" for number in range(COLUMNS)]
        return [
            TableSchema(ref=ref, columns=[ColumnSchema(name=name, type="BIGINT") for name in columns])
            for ref in refs
        ]

    def sample(self, ref: str, *, limits: QueryLimits) -> QueryResult:
        columns = tuple(ResultColumn(name=f"measure_{number}") for number in range(COLUMNS))
        return QueryResult(
            columns=columns, rows=tuple((f"{ref} {row}",) * COLUMNS for row in range(limits.rows))
        )

    def execute(self, sql: str, *, limits: QueryLimits) -> QueryResult:
        raise NotImplementedError(sql)

    def close(self) -> None:
        """Nothing is open."""


class NoVectors:
    """A vector store that takes everything and counts it."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def ensure_collection(self, name: str, dimensions: int) -> None:
        """Nothing to make."""

    def upsert(self, name: str, points: Sequence[Point]) -> None:
        self._ids.update(point.id for point in points)

    def count(self, name: str) -> int:
        return len(self._ids)

    def delete(self, name: str, ids: Sequence[str]) -> None:
        self._ids.difference_update(ids)

    def drop(self, name: str) -> None:
        self._ids.clear()


def measure(folder: Path, tables: int, kind: str) -> dict[str, float]:
    """Seconds and extra megabytes of a first and of an unchanged index."""
    import time

    from assay_agent.adapters import duckdb, hashing, minilm
    from assay_agent.indexing.describer import RuleDescriber
    from assay_agent.indexing.job import IndexJob, sample_limits
    from assay_agent.indexing.pipeline import index_tables
    from assay_agent.indexing.scope import warehouse_hash
    from assay_agent.policy import Policy
    from assay_agent.ports import WarehouseSettings
    from assay_agent.stores import open_stores
    from assay_core.model.project import Datasource, Project
    from assay_core.settings import StoreSettings

    alone = kind == "alone"
    path = folder / f"{tables}.duckdb"
    config = {
        "path": str(path if alone or path.exists() else _warehouse(path, tables)),
        "memory_limit": "64MB",
    }
    policy = Policy()
    project = Project(id="bench", datasources=[Datasource(provider="duckdb", config=config)])
    settings = WarehouseSettings(datasource_id="default", provider="duckdb", config=config)
    warehouse: Warehouse = MadeUp(tables) if alone else duckdb.open_warehouse(settings)
    embedder: Embedder = hashing.open_embedder() if alone else minilm.open_embedder()
    embedder.embed(["one table with some columns"] * policy.index.embed_batch)
    with open_stores(home=folder / f"{kind}-{tables}", settings=StoreSettings()) as stores:

        def job() -> IndexJob:
            return IndexJob(
                project=project,
                index_id="bench",
                warehouse_hash=warehouse_hash(project),
                warehouses={"default": warehouse},
                store=stores.store,
                vectors=cast("VectorIndex", vectors),
                embedder=embedder,
                describer=RuleDescriber(policy=policy.index),
                policy=policy.index,
                limits=sample_limits(policy),
                check=lambda: None,
                tell=lambda _: None,
                note=lambda _: None,
            )

        vectors = NoVectors() if alone else stores.vectors
        stores.store.projects.upsert(project)
        warehouse.sample("main.fact_00000", limits=sample_limits(policy))
        found: dict[str, float] = {}
        for name in ("first", "again"):
            before, started = _peak_from_here(), time.monotonic()
            done = index_tables(job())
            found[f"{name}_s"] = time.monotonic() - started
            found[f"{name}_mb"] = (_kilobytes("VmHWM") - before) / 1024
            assert done.tables_done == tables
    return found


def hold(folder: Path, tables: int) -> dict[str, float]:
    """Megabytes that a run holds of the schema, its catalogue rendered."""
    import gc

    from assay_agent.discovery.schema import read_schema
    from assay_agent.policy import Policy
    from assay_agent.stores import open_stores
    from assay_core.settings import StoreSettings

    with open_stores(home=folder / f"whole-{tables}", settings=StoreSettings()) as stores:
        project = stores.store.projects.get("bench")
        assert project is not None
        stores.store.ping()
        gc.collect()
        before = _kilobytes("VmRSS")
        held = read_schema(stores.store, project, policy=Policy(), keywords=[])
        gc.collect()
        assert len(held.tables) == tables
        return {"run_mb": (_kilobytes("VmRSS") - before) / 1024}


def _warehouse(path: Path, tables: int) -> Path:
    import duckdb

    names = ", ".join(f"i * {n} AS measure_{n}" for n in range(COLUMNS - 3))
    with duckdb.connect(str(path)) as connection:
        connection.execute("BEGIN")
        for number in range(tables):
            connection.execute(
                f"CREATE TABLE fact_{number:05} AS SELECT i AS fact_id, 'kind ' || i AS kind, DATE '2024-01-01' AS day, {names} FROM range(5) r(i)"
            )
        connection.execute("COMMIT")
    return path


def _peak_from_here() -> int:
    """Start the high-water mark anew; returns what is resident now, in kilobytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _kilobytes("VmRSS")


def _kilobytes(name: str) -> int:
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith(name)).split()[1])


if __name__ == "__main__":
    from assay_core import log

    log.configure(level="error", json=False)
    place, count, what = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    sys.stdout.write(json.dumps(hold(place, count) if what == "hold" else measure(place, count, what)) + "\n")
