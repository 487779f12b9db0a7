"""The schema index of 2,000 tables against an unchanged one, and what 10,000 tables add to the memory, of the index and of a run.

Each in a process of its own, over a DuckDB file, embedded documents and the small local embedder. For the memory the vectors go to
a store that keeps nothing, as a server is not part of the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import cast

from tests.bench.table import Line

COLUMNS = 12
SMALL, LARGE = 2_000, 10_000


def lines() -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        small = _measured(folder, SMALL, "local")
        large = _measured(folder, LARGE, "none")
        large |= _measured(folder, LARGE, "hold")
    return [
        Line(what=f"index of {SMALL:,} tables, milliseconds each", ours=1000 * small["first_s"] / SMALL, theirs=None, unit="ms", goal=20),
        Line(what="unchanged index against the first", ours=small["again_s"], theirs=small["first_s"], unit="s", goal=0.05),
        Line(what=f"extra memory of an index of {LARGE:,} tables", ours=large["first_mb"], theirs=None, unit="MB", goal=100),
        Line(what=f"extra memory of an unchanged index of {LARGE:,} tables", ours=large["again_mb"], theirs=None, unit="MB", goal=100),
        Line(what=f"memory held by a run over {LARGE:,} tables", ours=large["run_mb"], theirs=None, unit="MB", goal=150),
    ]  # fmt: skip


def _measured(folder: str, tables: int, vectors: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.index", folder, str(tables), vectors]
    said = subprocess.run(command, check=True, timeout=1_800, capture_output=True, text=True)
    found: dict[str, float] = json.loads(said.stdout.splitlines()[-1])
    return found


# ------------------------------------------------------------------------------------------------ the measured process


class NoVectors:
    """A vector store that takes everything and counts it."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def ensure_collection(self, name: str, dimensions: int) -> None:
        """Nothing to make."""

    def upsert(self, name: str, points: list[object]) -> None:
        self._ids.update(str(getattr(point, "id", "")) for point in points)

    def count(self, name: str) -> int:
        return len(self._ids)

    def delete(self, name: str, ids: list[str]) -> None:
        self._ids.difference_update(ids)

    def drop(self, name: str) -> None:
        self._ids.clear()


def measure(folder: Path, tables: int, kind: str) -> dict[str, float]:
    """Seconds and extra megabytes of a first and of an unchanged index."""
    import time

    from assay_agent.adapters.duckdb import open_warehouse
    from assay_agent.adapters.minilm import open_embedder
    from assay_agent.indexing.describer import RuleDescriber
    from assay_agent.indexing.job import IndexJob, sample_limits
    from assay_agent.indexing.pipeline import index_tables
    from assay_agent.indexing.scope import warehouse_hash
    from assay_agent.policy import Policy
    from assay_agent.ports import VectorIndex, WarehouseSettings
    from assay_agent.stores import open_stores
    from assay_core.model.project import Datasource, Project
    from assay_core.settings import StoreSettings

    config = {"path": str(_warehouse(folder / f"{tables}.duckdb", tables)), "memory_limit": "64MB"}
    policy = Policy()
    project = Project(id="bench", datasources=[Datasource(provider="duckdb", config=config)])
    warehouse = open_warehouse(WarehouseSettings(datasource_id="default", provider="duckdb", config=config))
    embedder = open_embedder()
    embedder.embed(["one table with some columns"] * policy.index.embed_batch)
    with open_stores(home=folder / f"home-{tables}", settings=StoreSettings()) as stores:

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

        vectors = stores.vectors if kind == "local" else NoVectors()
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

    with open_stores(home=folder / f"home-{tables}", settings=StoreSettings()) as stores:
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
