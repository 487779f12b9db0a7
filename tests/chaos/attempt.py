"""One attempt of a run in a process of its own, forked from a server that has imported everything: `python -m tests.chaos.attempt`.

Reads one JSON object a line (`Order`), forks, waits, answers with the child's status: an exit code, or minus the signal.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

from pymongo import monitoring

from assay_agent import agentserver, plugins
from assay_agent.adapters.hashing import open_embedder
from assay_agent.adapters.qdrant import open_index
from assay_agent.ports import ModelSettings
from assay_agent.scout.model import open_model as open_scout
from assay_agent.settings import AgentSettings
from assay_core.store.client import Store
from tests.chaos.points import Points, StorePoints, WatchedModel, WatchedVectors, watching_warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to run, where, and where to die."""

    uri: str
    database: str
    home: str
    project_id: str
    run_id: str
    attempt: int
    trace: str
    kill: str | None = None
    flags: list[str] = field(default_factory=list)
    threads: int = 1


def perform(order: Order) -> int:
    """Run the attempt in this process; returns its exit code."""
    points = Points(trace=Path(order.trace), kill=order.kill)
    monitoring.register(StorePoints(points))
    plugins.register(
        "llms",
        "watched",
        lambda _settings: WatchedModel(open_scout(ModelSettings(provider="scout", model="")), points),
    )
    plugins.register("embedders", "hash", open_embedder)
    plugins.register("warehouse_middleware", "watched", watching_warehouse(points))
    with Store.connect(order.uri, order.database) as store:
        vectors = open_index(None, Path(order.home) / "vectors")
        settings = AgentSettings(
            embedding_provider="hash", assay_warehouse_middleware="watched", assay_area_threads=order.threads
        )
        stores = SimpleNamespace(store=store, vectors=WatchedVectors(vectors, points))
        argv = ["--project-id", order.project_id, "--run-id", order.run_id, "--attempt", str(order.attempt)]
        given = agentserver.Given(stores=stores, settings=settings)  # type: ignore[arg-type]  # the two attributes it uses
        code = agentserver.run([*argv, *order.flags], given=given)
        vectors.close()
    return code


def serve() -> None:
    """One child at a time, until the input ends."""
    for name in ("duckdb_sqlalchemy", "pandas"):  # what drivers import at their first use, if it is there
        with suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        order = Order(**json.loads(line))
        child = os.fork()
        if child == 0:
            os.dup2(os.open(Path(order.home) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
            os.dup2(1, 2)
            os._exit(perform(order))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def ordered(order: Order) -> str:
    return json.dumps(asdict(order)) + "\n"


if __name__ == "__main__":
    serve()
