"""A whole discovery in one process, on real stores and a real warehouse, with a model that answers by script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from assay_agent import agentserver, plugins
from assay_agent.adapters.hashing import open_embedder
from assay_agent.adapters.qdrant import open_index
from assay_agent.context import StopSignal
from assay_agent.llm.scripted import Reply, ScriptedLlm
from assay_agent.settings import AgentSettings
from assay_core import clock
from assay_core.model.discovery import DiscoveryResult
from assay_core.model.project import Datasource, LLMConfig, Project
from assay_core.model.run import DiscoveryRun, RunStep
from assay_core.store.client import Store
from tests.builders import an_id

_models: dict[str, ScriptedLlm] = {}


def _open_test_model(settings: Any) -> ScriptedLlm:
    return _models[settings.model]


if ("llms", "in-test") not in plugins._registered:
    plugins.register("llms", "in-test", _open_test_model)
    plugins.register("embedders", "in-test", open_embedder)


def turn(**fields: Any) -> str:
    """A reply of the model: one JSON object."""
    return json.dumps(fields)


def query(sql: str, purpose: str = "a look at quality and trend") -> str:
    return turn(rationale="because", query_purpose=purpose, query=sql)


DONE = turn(done=True, summary="seen enough")
LOOKUP = turn(lookup_schema=["orders"])
SHARE_SQL = "SELECT count(*) AS n, count(*) - count(amount) AS missing, (count(*) - count(amount)) / count(*) AS share FROM main.orders"
SHARE = query(SHARE_SQL)


def an_insight(**fields: Any) -> dict[str, Any]:
    return {
        "name": "{{f1}} of orders have no amount",
        "description": "**{{f1}}** of {{f2}} orders have no amount.",
        "severity": "high",
        "affected_count": 20,
        "source_steps": [2],
        "figures": [
            {"id": "f1", "step": 2, "column": "share", "unit": "percent", "value": 0.2},
            {"id": "f2", "step": 2, "column": "n", "unit": "count"},
        ],
        **fields,
    }


def insights(*items: dict[str, Any]) -> str:
    return json.dumps({"insights": list(items)})


def recommendations(*items: dict[str, Any]) -> str:
    return json.dumps({"recommendations": list(items)})


A_RECOMMENDATION = {
    "title": "Fill the amounts",
    "description": "Ask where they get lost.",
    "priority": "high",
    "expected_impact": "cleaner sums",
    "actions": "1. look\n2. mend",
    "related_insight_ids": ["data_quality-1"],
}


def orders(path: Path) -> Path:
    """100 orders, every fifth without an amount, over two months, and their 10 customers."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT i AS order_id, i % 10 AS customer_id, CASE WHEN i % 5 = 0 THEN NULL ELSE i * 1.5 END AS amount, "
            "DATE '2025-01-01' + CAST(i % 60 AS INTEGER) AS ordered_on FROM range(1, 101) t(i)"
        )
        connection.execute(
            "CREATE TABLE customers AS SELECT i AS customer_id, 'c' || i AS name FROM range(0, 10) t(i)"
        )
    return path


@dataclass(slots=True)
class Quiet:
    """Progress that remembers what it was told."""

    notes: list[str] = field(default_factory=list)
    rows: list[RunStep] = field(default_factory=list)
    on_step: Any = None

    def phase(self, name: str, *, percent: int, detail: str) -> None:
        self.notes.append(f"{name} {percent}")

    def step(self, row: RunStep, *, percent: int) -> None:
        self.rows.append(row)
        if self.on_step is not None:
            self.on_step(row)

    def note(self, text: str) -> None:
        self.notes.append(text)


@dataclass(frozen=True, slots=True)
class InTestStores:
    store: Store
    vectors: Any
    described: str = "test"
    owned: bool = True


@dataclass(slots=True)
class Bench:
    """Everything a run needs; `go` runs one attempt and returns its exit code."""

    store: Store
    home: Path
    project: Project
    resources: ExitStack
    vectors: Any
    progress: Quiet = field(default_factory=Quiet)
    stop: StopSignal = field(default_factory=StopSignal)

    def script(self, replies: Mapping[str, Sequence[Reply]], **options: Any) -> ScriptedLlm:
        _models[self.project.id] = ScriptedLlm(replies, model=self.project.id, **options)
        return _models[self.project.id]

    def new_run(self, **fields: Any) -> DiscoveryRun:
        at = clock.now()
        run = DiscoveryRun(
            **{
                "id": an_id(),
                "project_id": self.project.id,
                "attempt": 1,
                "started_at": at,
                "updated_at": at,
                **fields,
            }
        )
        self.store.runs.create(run)
        return run

    def go(
        self,
        run: DiscoveryRun,
        *flags: str,
        settings: AgentSettings | None = None,
        progress: Quiet | None = None,
    ) -> int:
        used = settings or AgentSettings.load()
        given = agentserver.Given(
            stores=InTestStores(self.store, self.vectors),  # type: ignore[arg-type]  # the same two attributes
            progress=progress or self.progress,
            settings=used.model_copy(update={"embedding_provider": "in-test"}),
            stop=self.stop,
        )
        return agentserver.run(
            ["--project-id", self.project.id, "--run-id", run.id, "--max-steps", "20", *flags], given=given
        )

    def index(self, *flags: str, settings: AgentSettings | None = None, said: list[str] | None = None) -> int:
        """Index the project's tables, as mode `index-schema` does; why it failed goes to `said`."""
        given = agentserver.Given(
            stores=InTestStores(self.store, self.vectors),  # type: ignore[arg-type]  # the same two attributes
            progress=self.progress,
            settings=settings or AgentSettings.load().model_copy(update={"embedding_provider": "in-test"}),
            stop=self.stop,
            failed=None if said is None else said.append,
        )
        return agentserver.run(
            ["--mode", "index-schema", "--project-id", self.project.id, *flags], given=given
        )

    def result(self, run: DiscoveryRun) -> DiscoveryResult:
        found = self.store.discoveries.of_run(run.id)
        assert len(found) == 1
        return found[0]

    def read(self, run: DiscoveryRun) -> DiscoveryRun:
        found = self.store.runs.get(run.id)
        assert found is not None
        return found


def open_bench(store: Store, home: Path, **project: Any) -> Bench:
    """A project on the orders warehouse, its run vectors in Qdrant's local mode."""
    resources = ExitStack()
    home.mkdir(parents=True, exist_ok=True)
    vectors = open_index(None, home / "vectors")
    resources.callback(vectors.close)
    identifier = an_id()
    warehouse = str(orders(home / "orders.duckdb"))
    made = Project(
        **{
            "id": identifier,
            "name": "orders",
            "datasources": [Datasource(id="default", provider="duckdb", config={"path": warehouse})],
            "llm": LLMConfig(provider="in-test", model=identifier),
            "llm_config_version": 1,
            **project,
        }
    )
    store.projects.upsert(made)
    return Bench(store=store, home=home, project=made, resources=resources, vectors=vectors)


WHOLE: dict[str, Sequence[Reply]] = {
    "exploration": [
        LOOKUP,
        SHARE,
        query("SELECT ordered_on, count(*) AS n FROM main.orders GROUP BY ordered_on ORDER BY ordered_on"),
        DONE,
    ],
    "analysis": [insights(an_insight())],
    "recommendations": [recommendations(A_RECOMMENDATION)],
}


def whole(**layers: Sequence[Reply]) -> dict[str, Sequence[Reply]]:
    """A complete script, layers replaced by name."""
    return {**WHOLE, **layers}
