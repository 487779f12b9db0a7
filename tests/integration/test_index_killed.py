"""`assay index` as a process that dies by kill -9: the same command goes on, and pays for no stored description again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assay_agent.adapters.qdrant import open_index
from assay_core.model.table import CachedTable
from assay_core.store.client import Store
from assay_core.store.schema import IndexProgress
from assay_core.vectors import names

ASSAY = [sys.executable, "-c", "from assay_agent.cli import main; main()"]
LIMIT_S = 90
TABLES = 150
WORKERS = 4
REPLY = '{"description": "Something that was paid for.", "keywords": ["things"]}'


class Shop:
    """A warehouse of 150 tables, a model that has a given number of answers, and the stores of the test."""

    def __init__(self, store: Store, uri: str, place: Path) -> None:
        self.store = store
        self.place = place
        self._environment = {
            **os.environ,
            "MONGODB_URI": uri,
            "MONGODB_DB": store.database.name,
            "EMBEDDING_PROVIDER": "hashing",
            "BLURB_WORKERS": str(WORKERS),
        }
        with duckdb.connect(str(place / "shop.duckdb")) as connection:
            for number in range(TABLES):
                connection.execute(f"CREATE TABLE t_{number:03} AS SELECT {number} AS id, 'k' AS kind")

    def index(self, *flags: str, answers: int, kill: str = "") -> subprocess.CompletedProcess[str]:
        """The command, with a model that can be asked `answers` times and then fails."""
        (self.place / "script.json").write_text(json.dumps({"table_descriptions": [REPLY] * answers}))
        config = {"llm": {"provider": "scripted", "config": {"script": str(self.place / "script.json")}}}
        (self.place / "assay.yaml").write_text(json.dumps({**config, "llm_config_version": 1}))
        return subprocess.run(
            [*ASSAY, "index", "shop.duckdb", "--config", "assay.yaml", *flags],
            cwd=self.place, capture_output=True, text=True, timeout=LIMIT_S, check=False,
            env={**self._environment, **({"ASSAY_FAULT": kill} if kill else {})},
        )  # fmt: skip

    def rows(self) -> list[CachedTable]:
        found: list[dict[str, Any]] = list(self.store.database["project_schema_cache"].find())
        return [CachedTable.read(row) for row in found]

    def progress(self) -> IndexProgress:
        [project] = self.store.projects.list()
        found = self.store.schema.progress(project.id)
        assert found is not None
        return found

    def vectors(self) -> int:
        [project] = self.store.projects.list()
        index = open_index(None, self.place / ".assay" / "vectors")
        try:
            return index.count(names.schema(project.id))
        finally:
            index.close()


@pytest.fixture
def shop(store: Store, mongo_uri: str, tmp_path: Path) -> Shop:
    return Shop(store, mongo_uri, tmp_path)


@pytest.mark.parametrize(
    ("kill", "stored"),
    [
        ("after:description:1", 1),
        ("after:description:90", 90),
        ("before:tables:2", 128),
        ("after:tables:2", 128),
    ],
)
def test_index_killed_in_the_middle_goes_on_and_asks_for_no_stored_description(
    shop: Shop, kill: str, stored: int
) -> None:
    died = shop.index(answers=TABLES, kill=kill)
    assert died.returncode == -9, died.stderr
    before = shop.rows()
    assert stored <= len(before) < stored + WORKERS
    first = shop.progress()
    assert first.status == "running"
    again = shop.index("--json", answers=TABLES - len(before))
    assert again.returncode == 0, again.stderr
    done = IndexProgress.model_validate_json(again.stdout)
    assert (done.run_id, done.attempt, done.status) == (first.run_id, 2, "completed")
    # The server may carry out a write of the dead process after its rows were counted.
    assert len(before) <= done.tables_unchanged < stored + WORKERS
    assert (done.tables_done, done.tables_described) == (TABLES, TABLES - done.tables_unchanged)
    rows = shop.rows()
    assert len(rows) == shop.vectors() == TABLES
    assert {row.description for row in rows} == {"Something that was paid for."}
    assert all(row.embedded_by and row.problem is None for row in rows)


def test_what_the_command_prints_and_how_it_ends(shop: Shop) -> None:
    ran = shop.index(answers=TABLES)
    assert ran.returncode == 0, ran.stderr
    assert (
        ran.stdout == f"{TABLES} tables are indexed: {TABLES} described by scripted, 0 unchanged, 0 failed\n"
    )
    assert "Indexing tables" in ran.stderr
    quiet = shop.index("--quiet", answers=0)
    assert (quiet.returncode, quiet.stderr) == (0, "")
    failed = shop.index("--refresh", answers=1)
    assert failed.returncode == 10
    [line] = [line for line in failed.stderr.splitlines() if line.startswith("error:")]
    assert line.startswith("error: the script has no further reply for table_descriptions")
    (shop.place / "shop.duckdb").rename(shop.place / "elsewhere.duckdb")
    gone = shop.index("--json", answers=0)
    assert (gone.returncode, gone.stdout) == (10, "")
    assert shop.index("--project", "nobody", answers=0).returncode == 10
    assert shop.index("--max-tokens", "none", answers=0).returncode == 10
