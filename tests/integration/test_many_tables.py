"""A PostgreSQL with 2,000 tables: a hundred steps, and no prompt of 60,000 tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay_agent import plugins
from assay_agent.policy import estimate_tokens
from assay_agent.ports import Completion, CompletionRequest
from assay_agent.scout.model import Scout
from assay_core.model.project import Datasource, LLMConfig
from assay_core.store.client import Store
from tests.integration.discovery import open_bench
from tests.integration.postgres import PASSWORD, postgres_server

SCHEMAS = ("sales", "stock", "staff", "web")
TABLES_EACH = 500
LARGEST: list[int] = []


class RecordingScout(Scout):
    """The scout, with the size of every prompt it was sent."""

    def complete(self, request: CompletionRequest) -> Completion:
        LARGEST.append(sum(estimate_tokens(message.content) for message in request.messages))
        return super().complete(request)


def make_tables(database: str) -> None:
    """Tables of 5 to 250 rows with a key, a day, an amount, a kind and a shared product number."""
    with postgres_server().connect(database) as connection:
        for schema in SCHEMAS:
            connection.execute(f"CREATE SCHEMA {schema}")
            connection.execute(
                f"""DO $$ BEGIN FOR i IN 1..{TABLES_EACH} LOOP
                EXECUTE format('CREATE TABLE {schema}.fact_of_some_kind_%s AS SELECT g AS id, DATE ''2024-01-01'' + (g %% 300) AS day,
                (g * 7 %% 101)::numeric(10, 2) AS amount, ''kind '' || g %% 5 AS kind, g %% 40 AS product_no FROM generate_series(1, %s) g', i, 5 + i / 2);
                END LOOP; END $$"""
            )
        connection.execute("ANALYZE")


@pytest.mark.slow
def test_hundred_steps_over_two_thousand_tables_keep_every_prompt_small(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "recording-scout" not in plugins.available("llms"):
        plugins.register("llms", "recording-scout", lambda _settings: RecordingScout())
    monkeypatch.setenv("WAREHOUSE_CREDENTIALS", PASSWORD)
    with postgres_server().database() as database:
        make_tables(database)
        config: dict[str, Any] = postgres_server().config(database, user="postgres")
        source = Datasource(
            id="default",
            provider="postgres",
            datasets=list(SCHEMAS),
            config=config,
            allow_writable_credential="postgres",
        )
        bench = open_bench(
            store, tmp_path / "home", datasources=[source], llm=LLMConfig(provider="recording-scout")
        )
        with bench.resources:
            run = bench.new_run()
            assert bench.go(run, "--max-steps", "100", "--min-steps", "100") == 0
            result, stored = bench.result(run), bench.read(run)
    assert stored.schema_table_count == len(SCHEMAS) * TABLES_EACH
    assert stored.schema_tokens is not None
    assert stored.schema_tokens <= 20_000
    assert result.total_steps == 100
    assert stored.failed_queries == 0
    assert max(LARGEST) < 60_000
    print(f"largest prompt {max(LARGEST):,} tokens of {len(LARGEST)}, catalogue {stored.schema_tokens:,}")  # noqa: T201
