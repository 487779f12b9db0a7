"""The schema index over real warehouses and real stores: what is done once, what is done again, and how it ends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assay_agent import plugins
from assay_agent.adapters.hashing import HashEmbedder
from assay_agent.indexing.scope import warehouse_hash
from assay_agent.ports import Completion, CompletionRequest
from assay_agent.settings import AgentSettings
from assay_core.errors import QueryError, TransientError
from assay_core.model.project import Datasource, Project
from assay_core.model.table import CachedTable
from assay_core.store.client import Store
from assay_core.store.schema import IndexProgress
from assay_core.vectors import names
from tests.integration.discovery import DONE, SHARE, Bench, open_bench, turn, whole

TABLES = 40
QUALITY = ("--areas", "data_quality")


class Faulty:
    """A warehouse with what a test breaks of it: called before `sample`, `describe` and `check`."""

    breaks: Callable[[str, Any], None] | None = None
    sampled: list[str] = []

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _reach(self, what: str, about: Any) -> None:
        if Faulty.breaks is not None:
            Faulty.breaks(what, about)

    def sample(self, ref: str, **limits: Any) -> Any:
        self._reach("sample", ref)
        Faulty.sampled.append(ref)
        return self._inner.sample(ref, **limits)

    def describe(self, refs: Any) -> Any:
        self._reach("describe", refs)
        return self._inner.describe(refs)

    def check(self) -> str:
        self._reach("check", None)
        return str(self._inner.check())


if "in-test-faulty" not in plugins.available("warehouse_middleware"):
    plugins.register("warehouse_middleware", "in-test-faulty", lambda inner, _context: Faulty(inner))
    plugins.register("embedders", "in-test-small", lambda _settings: HashEmbedder(dimensions=32))


def faulty(**fields: Any) -> AgentSettings:
    given = {"embedding_provider": "in-test", "assay_warehouse_middleware": "in-test-faulty", **fields}
    return AgentSettings.load().model_copy(update=given)


def many(path: Path, *statements: str) -> Path:
    """A file of forty tables, or what the statements make of it."""
    made = statements or [f"CREATE TABLE t_{i:02} AS SELECT {i} AS id, 'k' AS kind" for i in range(TABLES)]
    if path.suffix == ".duckdb":
        with duckdb.connect(str(path)) as connection:
            for statement in made:
                connection.execute(statement)
    else:
        with closing(sqlite3.connect(path)) as native, native:
            for statement in made:
                native.execute(statement)
    return path


@pytest.fixture(params=["duckdb", "sqlite"])
def bench(store: Store, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    Faulty.breaks, Faulty.sampled = None, []
    path = many(tmp_path / f"many.{request.param}")
    source = Datasource(id="default", provider=request.param, config={"path": str(path)})
    opened = open_bench(store, tmp_path / "home", datasources=[source], llm=None)
    with opened.resources:
        yield opened
    Faulty.breaks = None


def change(bench: Bench, *statements: str) -> None:
    many(Path(bench.project.datasources[0].config["path"]), *statements)


def described(bench: Bench, **fields: Any) -> list[CompletionRequest]:
    """Let a model describe the tables from now on; returns what it is asked."""

    def reply(request: CompletionRequest) -> str:
        table = request.messages[0].content.split("Table: ")[1].split("\n")[0]
        return json.dumps({"description": f"All about {table}.", "keywords": ["things"]})

    given = {
        **bench.project.model_dump(),
        "blurb_llm": {"provider": "in-test", "model": bench.project.id},
        "llm": {"provider": "scout"},
        "llm_config_version": 1,
        **fields,
    }
    bench.project = Project.model_validate(given)
    bench.store.projects.upsert(bench.project)
    return bench.script({"table_descriptions": [reply]}, repeat_last=True).requests


def rows(bench: Bench) -> dict[str, CachedTable]:
    found = bench.store.schema.tables(bench.project.id, warehouse_hash(bench.project))
    return {row.table.ref: row for row in found}


def progress(bench: Bench) -> IndexProgress:
    found = bench.store.schema.progress(bench.project.id)
    assert found is not None
    return found


def vectors(bench: Bench) -> int:
    return int(bench.vectors.count(names.schema(bench.project.id)))


def counts(bench: Bench) -> tuple[int, int, int, int]:
    done = progress(bench)
    return done.tables_done, done.tables_described, done.tables_unchanged, done.tables_failed


# ------------------------------------------------------------------------------------------------- what is done, and done once


def test_index_leaves_rows_vectors_progress_and_the_projects_word(bench: Bench) -> None:
    assert bench.index("--job-id", "first") == 0
    cached = rows(bench)
    assert len(cached) == vectors(bench) == TABLES
    row = cached["main.t_07"]
    assert row.description == "t 07: 2 columns. Attributes: id, kind."
    assert row.table.sample == [{"id": 7, "kind": "k"}]
    assert (row.described_by, row.embedded_by, row.problem) == ("rules", HashEmbedder().model, None)
    done = progress(bench)
    assert (done.run_id, done.status, done.attempt, done.error) == ("first", "completed", 1, None)
    assert counts(bench) == (TABLES, TABLES, 0, 0)
    assert [past.run_id for past in bench.store.schema.history(bench.project.id)] == ["first"]
    project = bench.store.projects.get(bench.project.id)
    assert project
    assert (project.schema_index_status, project.schema_index_error) == ("ready", None)


def test_unchanged_tables_are_neither_sampled_nor_described_nor_embedded_again(bench: Bench) -> None:
    asked = described(bench)
    assert bench.index(settings=faulty()) == 0
    assert len(asked) == len(Faulty.sampled) == TABLES
    before = rows(bench)
    assert before["main.t_03"].description == "All about main.t_03."
    assert before["main.t_03"].keywords == ["things"]
    Faulty.sampled.clear()
    assert bench.index(settings=faulty()) == 0
    assert (len(asked), Faulty.sampled) == (TABLES, [])
    assert counts(bench) == (TABLES, 0, TABLES, 0)
    assert progress(bench).tables_embedded == 0
    after = rows(bench)
    assert all(after[ref].cached_at >= row.cached_at for ref, row in before.items())
    unstamped = [{**row.stored(), "cached_at": None} for row in before.values()]
    assert [{**row.stored(), "cached_at": None} for row in after.values()] == unstamped
    assert [past.status for past in bench.store.schema.history(bench.project.id)] == ["completed"] * 2


def test_only_what_changed_is_described_and_what_is_gone_is_forgotten(bench: Bench) -> None:
    asked = described(bench)
    bench.index()
    change(
        bench,
        "ALTER TABLE t_01 ADD COLUMN price INTEGER",
        "DROP TABLE t_02",
        "INSERT INTO t_03 VALUES (99, 'new')",
        "CREATE TABLE fresh AS SELECT 1 AS id",
    )
    asked.clear()
    assert bench.index() == 0
    tables = sorted(request.messages[0].content.split("Table: ")[1].split("\n")[0] for request in asked)
    assert tables == ["main.fresh", "main.t_01"]
    cached = rows(bench)
    assert "main.t_02" not in cached
    assert len(cached) == vectors(bench) == TABLES
    assert cached["main.t_03"].table.row_count == 2
    assert [column.name for column in cached["main.t_01"].table.columns] == ["id", "kind", "price"]
    assert counts(bench) == (TABLES, 2, TABLES - 2, 0)


def test_refresh_describes_every_table_again(bench: Bench) -> None:
    asked = described(bench)
    bench.index()
    assert bench.index("--refresh") == 0
    assert len(asked) == 2 * TABLES


def test_a_model_takes_the_place_of_rules_and_rules_never_that_of_a_model(bench: Bench) -> None:
    assert bench.index() == 0
    asked = described(bench)
    assert bench.index() == 0
    assert len(asked) == TABLES
    bench.project = bench.project.model_copy(update={"blurb_llm": None})
    bench.store.projects.upsert(bench.project)
    assert bench.index() == 0
    assert rows(bench)["main.t_00"].description == "All about main.t_00."
    assert counts(bench) == (TABLES, 0, TABLES, 0)


def test_another_embedder_or_lost_vectors_embed_again_and_ask_nobody(bench: Bench) -> None:
    asked = described(bench)
    bench.index()
    small = AgentSettings.load().model_copy(update={"embedding_provider": "in-test-small"})
    assert bench.index(settings=small) == 0
    assert (vectors(bench), progress(bench).tables_embedded) == (TABLES, TABLES)
    assert {row.embedded_by for row in rows(bench).values()} == {HashEmbedder(dimensions=32).model}
    bench.vectors.drop(names.schema(bench.project.id))
    assert bench.index(settings=small) == 0
    assert vectors(bench) == TABLES
    assert counts(bench) == (TABLES, 0, TABLES, 0)
    assert len(asked) == TABLES


def test_another_warehouse_leaves_nothing_of_the_one_before(bench: Bench, tmp_path: Path) -> None:
    bench.index()
    other = many(
        tmp_path / "other.duckdb", "CREATE TABLE t_00 AS SELECT 1 AS id", "CREATE TABLE x AS SELECT 1 AS a"
    )
    source = Datasource(id="default", provider="duckdb", config={"path": str(other)})
    bench.project = bench.project.model_copy(update={"datasources": [source]})
    bench.store.projects.upsert(bench.project)
    assert bench.index() == 0
    assert sorted(rows(bench)) == ["main.t_00", "main.x"]
    assert vectors(bench) == 2
    assert bench.store.database["project_schema_cache"].count_documents({}) == 2


def test_tables_of_one_name_in_two_datasources_are_two(bench: Bench, tmp_path: Path) -> None:
    other = many(tmp_path / "second.sqlite", "CREATE TABLE t_00 (id INTEGER, other TEXT)")
    second = Datasource(id="second", provider="sqlite", config={"path": str(other)})
    bench.project = bench.project.model_copy(update={"datasources": [*bench.project.datasources, second]})
    bench.store.projects.upsert(bench.project)
    assert bench.index() == 0
    assert vectors(bench) == progress(bench).tables_done == TABLES + 1


# ------------------------------------------------------------------------------------------------------------- failures


def unreadable(*refs: str, error: Exception | None = None) -> Callable[[str, Any], None]:
    def breaks(what: str, about: Any) -> None:
        if what == "sample" and about in refs:
            raise error or QueryError(f"permission denied for {about}")

    return breaks


def test_a_twentieth_may_fail_is_listed_and_alone_tried_again(bench: Bench) -> None:
    Faulty.breaks = unreadable("main.t_05", "main.t_11")
    assert bench.index(settings=faulty()) == 0
    assert counts(bench) == (TABLES, TABLES, 0, 2)
    assert [(failure.ref, failure.error) for failure in progress(bench).failures] == [
        ("main.t_05", "cannot be read: permission denied for main.t_05"),
        ("main.t_11", "cannot be read: permission denied for main.t_11"),
    ]
    assert rows(bench)["main.t_05"].problem
    Faulty.breaks = None
    Faulty.sampled.clear()
    assert bench.index(settings=faulty()) == 0
    assert Faulty.sampled == ["main.t_05", "main.t_11"]
    assert counts(bench) == (TABLES, 2, TABLES - 2, 0)


def test_one_more_fails_the_index_in_one_line(bench: Bench) -> None:
    Faulty.breaks = unreadable("main.t_05", "main.t_11", "main.t_12")
    said: list[str] = []
    assert bench.index(settings=faulty(), said=said) == 10
    [line] = said
    assert line == (
        "3 of 40 tables could not be indexed, more than the 5% that may fail; the first, main.t_05: "
        "cannot be read: permission denied for main.t_05"
    )
    assert (progress(bench).status, progress(bench).error) == ("failed", line)
    project = bench.store.projects.get(bench.project.id)
    assert project
    assert (project.schema_index_status, project.schema_index_error) == ("failed", line)


def test_a_table_that_cannot_be_described_is_lost_alone(bench: Bench) -> None:
    def breaks(what: str, about: Any) -> None:
        if what == "describe" and "main.t_17" in about:
            raise QueryError("no such table: main.t_17")

    Faulty.breaks = breaks
    assert bench.index(settings=faulty()) == 0
    assert counts(bench) == (TABLES - 1, TABLES - 1, 0, 1)
    assert "main.t_17" not in rows(bench)
    assert [failure.ref for failure in progress(bench).failures] == ["main.t_17"]


def test_one_table_that_does_not_answer_is_its_own_failure(bench: Bench) -> None:
    Faulty.breaks = unreadable("main.t_05", error=TransientError("locked", dependency="warehouse"))
    assert bench.index(settings=faulty()) == 0
    assert counts(bench) == (TABLES, TABLES, 0, 1)


def test_a_warehouse_that_goes_away_is_no_fault_of_its_tables_and_the_same_index_goes_on(
    bench: Bench,
) -> None:
    asked = described(bench)
    away: list[str] = []

    def breaks(what: str, about: Any) -> None:
        if (what == "sample" and about >= "main.t_20") or (away and what == "check"):
            away.append(what)
            raise TransientError("the warehouse does not answer", dependency="warehouse")

    Faulty.breaks = breaks
    said: list[str] = []
    assert bench.index(settings=faulty(blurb_workers=1), said=said) == 11
    assert said == ["the warehouse does not answer"]
    first = progress(bench)
    assert (first.status, first.tables_failed, len(rows(bench)), len(asked)) == ("failed", 0, 20, 20)
    Faulty.breaks = None
    assert bench.index(settings=faulty()) == 0
    assert len(asked) == TABLES
    again = progress(bench)
    assert (again.run_id, again.attempt, again.started_at) == (first.run_id, 2, first.started_at)
    assert counts(bench) == (TABLES, 20, 20, 0)
    assert vectors(bench) == TABLES


def test_a_model_that_is_away_ends_the_index_and_blames_no_table(bench: Bench) -> None:
    described(bench)
    bench.script({"table_descriptions": [TransientError("no answer", dependency="model")]}, repeat_last=True)
    assert bench.index() == 11
    assert (progress(bench).status, progress(bench).tables_failed) == ("failed", 0)


def test_what_a_model_declines_is_described_by_rules_and_counted(bench: Bench) -> None:
    described(bench)

    def reply(request: CompletionRequest) -> str | Completion:
        if "main.t_30" in request.messages[0].content:
            return Completion(text="", finish="refusal")
        return '{"description": "Things."}'

    bench.script({"table_descriptions": [reply]}, repeat_last=True)
    assert bench.index() == 0
    assert counts(bench) == (TABLES, TABLES, 0, 1)
    assert rows(bench)["main.t_30"].description.startswith("t 30: 2 columns")
    assert "declined" in progress(bench).failures[0].error


def test_a_budget_ends_the_index_with_what_is_done_and_holds_for_all_its_starts(bench: Bench) -> None:
    asked = described(bench)
    one = faulty(blurb_workers=1)
    assert bench.index("--max-tokens", "10000", settings=one) == 12
    half = len(asked)
    assert 5 < half < TABLES
    assert len(rows(bench)) == half
    [usage] = progress(bench).usage
    assert (usage.phase, usage.calls) == ("table_descriptions", half)
    assert bench.index("--max-tokens", "10000", settings=one) == 12
    assert len(asked) == half
    assert bench.index(settings=one) == 0
    assert len(asked) == TABLES
    assert progress(bench).usage[0].calls == TABLES


def test_asked_to_stop_it_ends_where_nothing_is_half_written(bench: Bench) -> None:
    def breaks(what: str, about: Any) -> None:
        if what == "sample" and about == "main.t_09":
            bench.stop.request(143)

    Faulty.breaks = breaks
    assert bench.index(settings=faulty()) == 143
    assert (progress(bench).status, progress(bench).error) == ("failed", "asked to stop (exit 143)")


def test_an_empty_warehouse_and_an_unknown_project_are_one_line(bench: Bench) -> None:
    change(bench, *(f"DROP TABLE t_{i:02}" for i in range(TABLES)))
    said: list[str] = []
    assert bench.index(said=said) == 10
    assert "has no tables that this user can see" in said[0]
    assert bench.index("--project-id", "nobody", said=said) == 10
    assert said[1] == "--project-id nobody names no stored project"


# ------------------------------------------------------------------------------------------------------------ in a run


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Iterator[Bench]:
    Faulty.breaks, Faulty.sampled = None, []
    opened = open_bench(store, tmp_path / "home")
    with opened.resources:
        yield opened


def test_a_run_uses_a_fresh_index_and_reads_no_catalogue(shop: Bench) -> None:
    described(shop, llm={"provider": "in-test", "model": shop.project.id})
    assert shop.index() == 0
    indexed = progress(shop)
    model = shop.script(whole(exploration=[turn(search_tables="all about orders"), SHARE, DONE]))
    run = shop.new_run()
    assert shop.go(run, *QUALITY, "--require-index", settings=faulty()) == 0
    assert Faulty.sampled == []
    assert progress(shop) == indexed
    found = model.requests[1].messages[-1].content
    assert "All about main.orders." in found
    assert "| 100 rows |" in found


def test_a_run_without_an_index_says_why_or_indexes_first(shop: Bench) -> None:
    shop.script(whole())
    run = shop.new_run()
    assert shop.go(run, *QUALITY, "--require-index") == 10
    assert "no schema index that can be used (nothing was indexed yet); run `assay index`" in (
        shop.read(run).error or ""
    )
    shop.script(whole())
    run = shop.new_run()
    assert shop.go(run, *QUALITY) == 0
    assert (progress(shop).run_id, progress(shop).status) == (run.id, "completed")
    shop.store.schema.report(progress(shop).model_copy(update={"status": "running"}))
    shop.script(whole())
    assert shop.go(shop.new_run(), *QUALITY, "--require-index") == 10


def test_a_run_finishes_what_an_index_left_and_keeps_its_descriptions(shop: Bench) -> None:
    described(shop, llm={"provider": "in-test", "model": shop.project.id})
    assert shop.index() == 0
    path = Path(shop.project.datasources[0].config["path"])
    many(path, "CREATE TABLE later AS SELECT 1 AS id")
    shop.store.schema.report(progress(shop).model_copy(update={"status": "running"}))
    shop.project = shop.project.model_copy(update={"blurb_llm": None})
    shop.store.projects.upsert(shop.project)
    shop.script(whole())
    run = shop.new_run()
    assert shop.go(run, *QUALITY) == 0
    cached = rows(shop)
    assert cached["main.orders"].description == "All about main.orders."
    assert cached["main.later"].described_by == "rules"
    assert shop.read(run).schema_table_count == 3


def test_tokens_of_descriptions_in_a_run_are_the_runs(shop: Bench) -> None:
    described(shop, llm={"provider": "in-test", "model": shop.project.id})
    reply = '{"description": "Things."}'
    shop.script(whole(table_descriptions=[reply, reply]))
    run = shop.new_run()
    assert shop.go(run, *QUALITY) == 0
    calls = {usage.phase: usage.calls for usage in shop.read(run).usage}
    assert calls["table_descriptions"] == 2
