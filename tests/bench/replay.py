"""Replay of 100 steps without model or warehouse, and what checkpointing adds to a step that waits for a model."""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay_agent.discovery.explore import explore
from assay_agent.discovery.recall import Previous
from assay_agent.llm.scripted import ScriptedLlm
from assay_agent.ports import Completion, CompletionRequest, LanguageModel, QueryLimits, QueryResult
from assay_agent.stores.home import prepare
from assay_agent.stores.server import EmbeddedServer
from assay_core.model.run import RunStatus
from assay_core.store.client import Store
from assay_core.store.control import resume_run
from assay_core.store.fence import Fence, FencedRun
from tests.bench.steps import (
    STEPS,
    InstantWarehouse,
    NoFence,
    a_context,
    a_pending_run,
    a_result,
    a_schema,
)
from tests.bench.table import Line

ROUNDS = 5
LATENCY_S = 0.1
"""Of the model; a real one takes longer, which makes the share smaller."""
WAITED_STEPS = 20
GOAL_S = 1.0
GOAL_SHARE = 0.2


class Silence(InstantWarehouse):
    """A warehouse that must not be asked."""

    def execute(self, sql: str, *, limits: QueryLimits) -> QueryResult:
        raise AssertionError("a replay asked the warehouse")


class SlowModel:
    """A model that answers after `LATENCY_S`."""

    provider, model = "slow", "slow"

    def __init__(self, inner: LanguageModel) -> None:
        self._inner = inner
        self.context_tokens = inner.context_tokens

    def complete(self, request: CompletionRequest) -> Completion:
        time.sleep(LATENCY_S)
        return self._inner.complete(request)


def lines() -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        home = Path(folder)
        prepare(home)
        server = EmbeddedServer(home)
        server.start()
        try:
            with Store.connect(server.url(), "bench_replay") as store:
                store.ensure_indexes(checkpoint_retention_s=3600)
                return [_replays(store), _share(store)]
        finally:
            server.stop()


def _replays(store: Store) -> Line:
    taken = []
    for _ in range(ROUNDS):
        run = a_pending_run(store)
        store.runs.claim(run.id, 1, "first")
        fenced = FencedRun(store, Fence(run.id, 1, "first"))
        explore(a_context(store, fenced, run, a_result(8)), Previous(text="", discoveries=0), a_schema())
        fenced.finish(status=RunStatus.FAILED, error="killed")
        run = resume_run(store, run.id)
        store.runs.claim(run.id, run.attempt, "second")
        again = FencedRun(store, Fence(run.id, run.attempt, "second"))
        ctx = replace(
            a_context(store, again, run, a_result(8)),
            attempt=run.attempt,
            resume=True,
            model=ScriptedLlm({}),
            warehouses={"default": Silence(a_result(8))},
        )
        started = time.perf_counter()
        found = explore(ctx, Previous(text="", discoveries=0), a_schema())
        taken.append(time.perf_counter() - started)
        assert len(found.steps) == STEPS
        assert found.restored
        again.finish(status=RunStatus.COMPLETED)
    return Line(
        what=f"replay of {STEPS} steps of 8 kB, with no model and no warehouse",
        ours=statistics.median(taken),
        theirs=None,
        unit="s",
        goal=GOAL_S,
    )


def _share(store: Store) -> Line:
    with_rows, without = [], []
    for _ in range(3):
        run = a_pending_run(store)
        store.runs.claim(run.id, 1, "first")
        with_rows.append(_waiting(store, FencedRun(store, Fence(run.id, 1, "first")), run))
        without.append(_waiting(store, NoFence(), run))
    plain = statistics.median(without)
    return Line(
        what=f"checkpointing, as a share of a step with {LATENCY_S * 1000:.0f} ms of model",
        ours=(statistics.median(with_rows) - plain) / WAITED_STEPS * 1000,
        theirs=plain / WAITED_STEPS * 1000,
        unit="ms",
        goal=GOAL_SHARE,
    )


def _waiting(store: Store, fenced: Any, run: Any) -> float:
    ctx = a_context(store, fenced, run, a_result(8))
    ctx = replace(ctx, model=SlowModel(ctx.model), max_steps=WAITED_STEPS)
    started = time.perf_counter()
    explore(ctx, Previous(text="", discoveries=0), a_schema())
    return time.perf_counter() - started
