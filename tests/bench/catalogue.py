"""Tokens of the tables in a prompt against their whole DDL, and the largest prompt of a run, over thousands of tables."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from assay_agent import plugins
from assay_agent.policy import estimate_tokens
from assay_agent.ports import Completion, CompletionRequest
from assay_agent.scout.model import Scout
from assay_agent.stores.home import prepare
from assay_agent.stores.server import EmbeddedServer
from assay_core.model.project import Datasource, LLMConfig
from assay_core.model.table import TableSchema
from assay_core.store.client import Store
from tests.bench.table import Line
from tests.integration.discovery import Bench, open_bench

SIZES = (2_000, 10_000)
STEPS = "40"
GOAL = 0.25
"""Of the whole DDL, at the smaller size; the larger takes no more tokens, and so a smaller share."""
GOAL_PROMPT_TOKENS = 60_000.0
SCOUT = "measured-scout"
_LARGEST: list[int] = []


class _MeasuredScout(Scout):
    """The scout, with the size of every prompt it is sent."""

    def complete(self, request: CompletionRequest) -> Completion:
        _LARGEST.append(sum(estimate_tokens(message.content) for message in request.messages))
        return super().complete(request)


def ddl(tables: Sequence[TableSchema]) -> str:
    """Every table as the statement that would make it: what a prompt holds that is given the schema as it is."""
    return "\n".join(
        f"CREATE TABLE {table.ref} (\n"
        + ",\n".join(
            f"  {column.name} {column.type}{'' if column.nullable else ' NOT NULL'}"
            for column in table.columns
        )
        + "\n);"
        for table in tables
    )


def lines() -> list[Line]:
    if SCOUT not in plugins.available("llms"):
        plugins.register("llms", SCOUT, lambda _settings: _MeasuredScout())
    found: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        prepare(home)
        server = EmbeddedServer(home)
        server.start()
        try:
            with Store.connect(server.url(), "bench_catalogue") as store:
                store.ensure_indexes(checkpoint_retention_s=3600)
                for size in SIZES:
                    found += _of_size(store, Path(folder) / str(size), size)
        finally:
            server.stop()
    return found


def _of_size(store: Store, folder: Path, size: int) -> list[Line]:
    folder.mkdir()
    source = Datasource(provider="duckdb", config={"path": str(_tables(folder / "many.duckdb", size))})
    bench: Bench = open_bench(store, folder / "run", datasources=[source], llm=LLMConfig(provider=SCOUT))
    _LARGEST.clear()
    with bench.resources:
        run = bench.new_run()
        flags: tuple[Any, ...] = ("--max-steps", STEPS, "--min-steps", STEPS)
        if bench.go(run, *flags) != 0:
            raise RuntimeError(str(bench.read(run).error))
        told = bench.read(run)
        cached = store.database["project_schema_cache"].find({"project_id": bench.project.id})
        whole = estimate_tokens(ddl([TableSchema.read(row["table"]) for row in cached]))
    catalogue = float(told.schema_tokens or 0)
    return [
        Line(
            what=f"catalogue of {told.schema_table_count:,} tables in a prompt vs their DDL",
            ours=catalogue,
            theirs=float(whole),
            unit="tok",
            goal=GOAL,
        ),
        Line(
            what=f"largest prompt of {len(_LARGEST)} in a run over {size:,} tables",
            ours=float(max(_LARGEST)),
            theirs=None,
            unit="tok",
            goal=GOAL_PROMPT_TOKENS,
        ),
    ]


def _tables(path: Path, size: int) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute("BEGIN")
        for number in range(size):
            connection.execute(
                f"CREATE TABLE fact_of_some_kind_{number} AS SELECT i AS id, DATE '2024-01-01' + CAST(i % 300 AS INTEGER) AS day, "
                "i * 7 % 101 * 1.5 AS amount, 'kind ' || i % 5 AS kind, i % 40 AS product_no, i % 17 AS customer_no, "
                f"TIMESTAMP '2024-01-01' AS created_at, 'said ' || i AS comment FROM range({5 + number % 90}) t(i)"
            )
        connection.execute("COMMIT")
    return path
