"""Overhead of a step, everything but model and warehouse: this engine against a LangGraph agent with its SQLite saver.

Both sides do 100 steps with a model that answers at once and a warehouse that returns the same rows at once, in turns, once
unmeasured and then seven times; the median is reported. Bytes: what the store's data grew by, against the growth of the saver's file.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

from assay_agent.adapters.hashing import HashEmbedder
from assay_agent.context import Deadline, RunContext, StopSignal, Templates
from assay_agent.discovery.explore import explore
from assay_agent.discovery.recall import Previous
from assay_agent.discovery.schema import Schema
from assay_agent.evidence.catalog import render_catalog
from assay_agent.policy import Policy
from assay_agent.ports import Completion, CompletionRequest, QueryLimits, QueryResult, TableRef
from assay_agent.stores.home import prepare
from assay_agent.stores.server import EmbeddedServer
from assay_core import clock
from assay_core.model.pack import Area
from assay_core.model.project import Datasource, Project
from assay_core.model.run import DiscoveryRun, RunStep
from assay_core.model.step import ResultColumn
from assay_core.model.table import ColumnSchema, TableSchema
from assay_core.store.client import Store
from assay_core.store.fence import Fence, FencedRun
from tests.bench.table import Line
from tests.builders import an_id

STEPS = 100
ROUNDS = 7
SIZES_KB = (2, 8, 20)


def a_result(kilobytes: int) -> QueryResult:
    """Rows whose JSON is about `kilobytes` long."""
    row = ("2013-01-01", "UA", "EWR", 1234, 12.5, "a text of some length in the row")
    names = ("day", "carrier", "origin", "flights", "delay", "note")
    size = len(json.dumps(dict(zip(names, row, strict=True))))
    columns = tuple(ResultColumn(name=name, type="VARCHAR") for name in names)
    return QueryResult(
        columns=columns, rows=tuple((*row[:3], 1234 + n, *row[4:]) for n in range(kilobytes * 1024 // size))
    )


@dataclass(slots=True)
class InstantWarehouse:
    """A warehouse that costs nothing: what is measured is the engine."""

    result: QueryResult
    datasource_id: str = "default"
    dialect: str = "duckdb"
    datasets: tuple[str, ...] = ("main",)

    def check(self) -> str:
        return "instant"

    def tables(self) -> Sequence[TableRef]:
        return ()

    def describe(self, refs: Sequence[str]) -> Sequence[TableSchema]:
        return ()

    def sample(self, ref: str, *, limits: QueryLimits) -> QueryResult:
        return self.result

    def execute(self, sql: str, *, limits: QueryLimits) -> QueryResult:
        return self.result

    def close(self) -> None:
        return None


class InstantModel:
    """A model that costs nothing and keeps nothing, like the baseline's."""

    provider, model, context_tokens = "instant", "instant", 200_000

    def __init__(self) -> None:
        self._asked = 0

    def complete(self, request: CompletionRequest) -> Completion:
        self._asked += 1
        said = {
            "rationale": "because",
            "query_purpose": f"question {self._asked}",
            "query": f"SELECT {self._asked} AS n, count(*) AS c FROM main.flights",
        }
        return Completion(text=json.dumps(said))


class NoFence:
    """Stands where the fence stands, and writes nothing: the engine without its store."""

    fence = Fence(run_id="r", attempt=1, owner="o")

    def mark(self, **_: Any) -> None:
        return None

    def mark_and_put(self, _writes: Any, **_: Any) -> bool:
        return True

    def put(self, *_: Any) -> None:
        return None


class Silent:
    def phase(self, name: str, *, percent: int, detail: str) -> None:
        return None

    def step(self, row: RunStep, *, percent: int) -> None:
        return None

    def note(self, text: str) -> None:
        return None


def a_context(store: Store, fenced: Any, run: DiscoveryRun, result: QueryResult) -> RunContext:
    return RunContext(
        run=run,
        project=Project(id=run.project_id, datasources=[Datasource(provider="duckdb")]),
        areas=(Area(id="a", name="A", keywords=["k"], prompt="{{QUERY_RESULTS}}"),),
        templates=Templates(
            base_context="{{PROFILE}}",
            exploration="{{DATASET}} {{SCHEMA_INFO}} {{ANALYSIS_AREAS}}",
            recommendations="",
        ),
        attempt=1,
        max_steps=STEPS,
        min_steps=0,
        resume=False,
        fenced=fenced,
        store=store,
        vectors=None,  # type: ignore[arg-type]  # not reached by exploration without searches
        embedder=HashEmbedder(),
        model=InstantModel(),
        warehouses={"default": InstantWarehouse(result)},
        policy=Policy(),
        progress=Silent(),
        stop=StopSignal(),
        deadline=Deadline(limit_s=0),
    )


def a_schema() -> Schema:
    table = TableSchema(ref="main.flights", columns=[ColumnSchema(name="c", type="INTEGER")], row_count=10)
    catalog = render_catalog([table], keywords=(), budget_tokens=1000, max_keywords=3)
    return Schema(tables={("default", table.ref): table}, catalog=catalog)


def a_pending_run(store: Store) -> DiscoveryRun:
    at = clock.now()
    run = DiscoveryRun(id=an_id(), project_id="bench", attempt=1, started_at=at, updated_at=at)
    store.runs.create(run)
    return run


def ours(store: Store, result: QueryResult, *, with_store: bool) -> float:
    """Seconds for the whole exploration."""
    run = a_pending_run(store)
    fenced: Any = NoFence()
    if with_store:
        store.runs.claim(run.id, 1, "bench")
        fenced = FencedRun(store, Fence(run.id, 1, "bench"))
    ctx = a_context(store, fenced, run, result)
    started = time.perf_counter()
    exploration = explore(ctx, Previous(text="", discoveries=0), a_schema())
    elapsed = time.perf_counter() - started
    assert len(exploration.steps) == STEPS
    return elapsed


class LangState(TypedDict):
    messages: Annotated[list[dict[str, str]], add]
    step: int


def langgraph(path: Path, result: QueryResult) -> float:
    """Seconds for the same steps in a graph of a model node and a tool node, checkpointed after each."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    names = [column.name for column in result.columns]
    text = json.dumps([dict(zip(names, row, strict=True)) for row in result.rows])

    def model(state: LangState) -> dict[str, Any]:
        n = state["step"]
        return {
            "messages": [
                {"role": "assistant", "content": f"SELECT {n} AS n, count(*) AS c FROM main.flights"}
            ]
        }

    def tool(state: LangState) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": text}], "step": state["step"] + 1}

    graph = StateGraph(LangState)
    graph.add_node("model", model)
    graph.add_node("tool", tool)
    graph.add_edge(START, "model")
    graph.add_edge("model", "tool")
    graph.add_conditional_edges("tool", lambda state: END if state["step"] >= STEPS else "model")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        compiled = graph.compile(checkpointer=saver)
        started = time.perf_counter()
        last = compiled.invoke(
            {"messages": [], "step": 0},
            {"configurable": {"thread_id": "bench"}, "recursion_limit": STEPS * 2 + 10},
        )
        elapsed = time.perf_counter() - started
    assert last["step"] == STEPS
    return elapsed


def data_bytes(store: Store) -> float:
    return float(store.database.command("dbStats")["dataSize"])


def lines() -> list[Line]:
    """Ratios at each result size."""
    found: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        prepare(home)
        server = EmbeddedServer(home)
        server.start()
        try:
            for kilobytes in SIZES_KB:
                found += _size(server.url(), Path(folder), kilobytes)
        finally:
            server.stop()
    return found


def _size(url: str, folder: Path, kilobytes: int) -> list[Line]:
    result = a_result(kilobytes)
    engine, stored, other, written, file_bytes = [], [], [], 0.0, 0.0
    for round_number in range(ROUNDS + 1):
        store = Store.connect(url, f"bench_{kilobytes}_{round_number}")
        store.ensure_indexes(checkpoint_retention_s=3600)
        engine.append(ours(store, result, with_store=False))
        before = data_bytes(store)
        stored.append(ours(store, result, with_store=True))
        written = data_bytes(store) - before
        store.close()
        path = folder / f"saver-{kilobytes}-{round_number}.sqlite"
        other.append(langgraph(path, result))
        file_bytes = float(path.stat().st_size)
    engine, stored, other = engine[1:], stored[1:], other[1:]
    theirs_ms = statistics.median(other) / STEPS * 1000
    goal = {2: None, 8: 1.5, 20: 1.0}[kilobytes]
    return [
        Line(
            what=f"step overhead without store, {kilobytes} kB result",
            ours=statistics.median(engine) / STEPS * 1000,
            theirs=theirs_ms,
            unit="ms",
            goal=0.2,
        ),
        Line(
            what=f"step overhead with the real store, {kilobytes} kB result",
            ours=statistics.median(stored) / STEPS * 1000,
            theirs=theirs_ms,
            unit="ms",
            goal=goal or 3.0,
        ),
        Line(
            what=f"bytes written in {STEPS} steps, {kilobytes} kB result",
            ours=written / 1e6,
            theirs=file_bytes / 1e6,
            unit="MB",
            goal=1 / 30,
        ),
    ]
