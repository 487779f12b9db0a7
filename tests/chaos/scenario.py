"""A world to break: one warehouse, a model that answers the same to the same, real stores; runs in it, killed and resumed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import duckdb

from assay_agent.adapters.qdrant import open_index
from assay_core import clock
from assay_core.errors import ResumeRefusal, ResumeRefused
from assay_core.model.project import Datasource, LLMConfig, Project
from assay_core.model.run import DiscoveryRun, RunStatus
from assay_core.resume import replayable
from assay_core.store import names
from assay_core.store.client import Store
from assay_core.store.control import resume_run
from assay_core.vectors import names as vector_names
from tests.builders import an_id
from tests.chaos.attempt import Order, ordered

ATTEMPTS_AT_MOST = 4
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VOLATILE = frozenset(
    [
        "id",
        "_id",
        "run_id",
        "discovery_id",
        "project_id",
        "attempt",
        "owner",
        "last_mark",
        "lifecycle",
        "phase_timings",
        "usage",
        "duration",
        "duration_ms",
        "execution_time_ms",
        "query_time_ms",
        "active_ms",
        "timestamp",
        "timings",
        "discovery_date",
        "first_seen",
        "last_seen",
        "remembered_runs",
        "version",
        "last_run_attempt",
        "last_resumed_at",
    ]
)
"""What two runs of the same thing may differ in: identity and time."""
_ROWS_KEPT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large the disturbed run is."""

    steps: int
    areas: tuple[str, ...]
    threads: int = 1

    @property
    def flags(self) -> list[str]:
        return ["--max-steps", str(self.steps), "--areas", ",".join(self.areas)]


@dataclass(slots=True, kw_only=True)
class Ended:
    """What became of one run: how often it was started, what was done twice, and every document it left."""

    run_id: str
    attempts: int = 0
    requeried: int = 0
    reasked: int = 0
    documents: dict[str, Any] = field(default_factory=dict)
    points: list[str] = field(default_factory=list)


class World:
    """Owns the server of attempts; as a context manager it ends it."""

    def __init__(self, store: Store, uri: str, folder: Path, size: Size) -> None:
        self.store = store
        self.size = size
        self._uri = uri
        self._folder = folder
        self._warehouse = _warehouse(folder / "orders.duckdb")
        self._runs = 0
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.attempt"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(timeout=30)

    def run(self, *, kill: str | None = None) -> Ended:
        """One run in a project and a home of its own, from its creation to its completion, dying once at `kill`."""
        self._runs += 1
        home = self._folder / f"home-{self._runs}"
        home.mkdir()
        project = self._project()
        run = self._new_run(project)
        ended = Ended(run_id=run.id)
        asked: set[str] = set()
        accepted: set[str] = set()
        while ended.attempts < ATTEMPTS_AT_MOST:
            ended.attempts += 1
            trace = home / f"trace-{ended.attempts}"
            status = self._attempt(home, run, trace, kill=kill if ended.attempts == 1 else None)
            told = _told(trace)
            queries = [line["query"] for line in told if "query" in line]
            requests = [line["asked"] for line in told if "asked" in line]
            ended.requeried += sum(query in accepted for query in queries)
            ended.reasked += sum(request in asked for request in requests)
            asked |= set(requests)
            ended.points += [line["point"] for line in told if "point" in line]
            after = self._read(run)
            if after.status is RunStatus.COMPLETED:
                ended.documents = self._documents(project, run, home)
                return ended
            assert status == -9, (
                f"attempt {ended.attempts} ended with {status}: {(home / 'log').read_text()[-2000:]}"
            )
            accepted = {row.query for row in replayable(self.store.checkpoints.steps(run.id)) if row.query}
            run = self._reopened(project, after)
        raise AssertionError(f"not complete after {ATTEMPTS_AT_MOST} attempts")

    def _attempt(self, home: Path, run: DiscoveryRun, trace: Path, *, kill: str | None) -> int:
        order = Order(
            uri=self._uri,
            database=self.store.database.name,
            home=str(home),
            project_id=run.project_id,
            run_id=run.id,
            attempt=run.attempt,
            trace=str(trace),
            kill=kill,
            flags=[*self.size.flags, *(["--resume"] if run.attempt > 1 else [])],
            threads=self.size.threads,
        )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(ordered(order))
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def _reopened(self, project: Project, dead: DiscoveryRun) -> DiscoveryRun:
        """As a user's next command does it: the run of a process that is gone is failed, then resumed; or begun anew."""
        if dead.status is RunStatus.PENDING:
            return dead
        if dead.status is RunStatus.RUNNING:
            self.store.runs.fail_unowned(
                dead.id, attempt=dead.attempt, owner=dead.owner, reason="its process is gone"
            )
        try:
            return resume_run(self.store, dead.id)
        except ResumeRefused as refused:
            assert refused.reason is ResumeRefusal.NO_CHECKPOINT, refused
            return self._new_run(project)

    def _read(self, run: DiscoveryRun) -> DiscoveryRun:
        found = self.store.runs.get(run.id)
        assert found is not None
        return found

    def _project(self) -> Project:
        project = Project(
            id=an_id(),
            name="orders",
            datasources=[Datasource(id="default", provider="duckdb", config={"path": str(self._warehouse)})],
            llm=LLMConfig(provider="watched", model="scout-1"),
            llm_config_version=1,
        )
        self.store.projects.upsert(project)
        return project

    def _new_run(self, project: Project) -> DiscoveryRun:
        at = clock.now()
        run = DiscoveryRun(id=an_id(), project_id=project.id, attempt=1, started_at=at, updated_at=at)
        self.store.runs.create(run)
        return run

    # ------------------------------------------------------------------------------------------------ what is left

    def _documents(self, project: Project, run: DiscoveryRun, home: Path) -> dict[str, Any]:
        """Every document of the run, identity and time taken out; ids in texts numbered by first appearance."""
        [discovery] = self.store.discoveries.of_run(run.id)
        database = self.store.database
        left: dict[str, Any] = {"discovery": database[names.DISCOVERIES].find_one({"run_id": run.id})}
        for collection in names.LOGS:
            left[collection] = list(database[collection].find({"discovery_id": discovery.id}).sort("_id", 1))
        for collection in names.STANDALONE:
            rows = list(database[collection].find({"project_id": project.id}))
            left[collection] = sorted(rows, key=lambda row: str(row.get("name") or row.get("title")))
        left["run"] = database[names.RUNS].find_one({"_id": run.id})
        left["project"] = database[names.PROJECTS].find_one({"_id": project.id})
        left["memory"] = database[names.MEMORY].find_one({"_id": project.id})
        left["feed"] = [row.stored() for row in self.store.feed.rows(run.id, attempt=run.attempt)]
        vectors = open_index(None, home / "vectors")
        try:
            left["run vectors"] = vector_names.run(run.id) in vectors.collections()
            left["findings"] = vectors.count(vector_names.findings(256))
        finally:
            vectors.close()
        numbered: dict[str, str] = {}
        plain: dict[str, Any] = json.loads(
            _UUID.sub(
                lambda match: numbered.setdefault(match.group(), f"<{len(numbered) + 1}>"),
                json.dumps(_stripped(left), default=str, sort_keys=True),
            )
        )
        return plain


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _stripped(item[:_ROWS_KEPT] if key == "query_result" and isinstance(item, list) else item)
            for key, item in value.items()
            if key not in _VOLATILE and not key.endswith("_at")
        }
    return [_stripped(item) for item in value] if isinstance(value, list) else value


def _told(trace: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []


def _warehouse(path: Path) -> Path:
    """Two tables with a gap, a trend and keys without a partner; small, so that results fit a checkpoint."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT i AS order_id, i % 12 AS customer_id, CASE WHEN i % 5 = 0 THEN NULL ELSE (i * 7919) % 100 / 4.0 END AS amount, "
            "['web', 'shop', 'phone'][1 + i % 3] AS channel, DATE '2025-01-01' + CAST(i % 90 AS INTEGER) AS ordered_on FROM range(1, 601) t(i)"
        )
        connection.execute(
            "CREATE TABLE customers AS SELECT i AS customer_id, 'c' || i AS name, i % 2 = 0 AS active FROM range(0, 10) t(i)"
        )
    return path


def distinct(points: list[str]) -> list[str]:
    """Every point of a run, in the order it is passed first."""
    return list(Counter(points))


def differences(left: Any, right: Any, path: str = "") -> list[str]:
    """Where two documents differ, a line each."""
    if isinstance(left, dict) and isinstance(right, dict):
        return [
            line
            for key in sorted({*left, *right})
            for line in differences(left.get(key), right.get(key), f"{path}.{key}")
        ]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [
            line
            for number, (a, b) in enumerate(zip(left, right, strict=True))
            for line in differences(a, b, f"{path}[{number}]")
        ]
    return [] if left == right else [f"{path}: {str(left)[:200]!r} != {str(right)[:200]!r}"]
