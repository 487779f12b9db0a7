"""The schema cache: one row per table of a project's warehouse, and how indexing went.

Written by indexing, read by the schema phase. Rows expire seven days after an index last saw their table.
`warehouse_hash` is the caller's digest of which warehouse it is: a changed warehouse finds no rows. Nothing here is
fenced: rows are keyed by table, and two indexes at once write the same.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pymongo import ASCENDING, DESCENDING, ReplaceOne, UpdateOne
from pymongo.database import Database

from assay_core import clock
from assay_core.model.document import Document
from assay_core.model.run import ModelUsage
from assay_core.model.table import CachedTable
from assay_core.store import names
from assay_core.store.rows import encoded, storable
from assay_core.store.translate import translated

_BATCH = 200
_STATES = 2_000
_STATE = dict.fromkeys(
    [
        *("warehouse_hash", "structure", "described_by", "index_id", "embedded_by", "problem", "cached_at"),
        *("table.ref", "table.datasource_id", "table.row_count"),
    ],
    1,
)
CACHE_TTL_S = 7 * 24 * 3600


TableKey = tuple[str, str]
"""Datasource and reference of a table."""


class TableFailure(Document):
    """A table that could not be indexed, or only in part, and why."""

    datasource_id: str = "default"
    ref: str
    error: str


class IndexProgress(Document):
    """How far indexing of a project is: one row per project while it lasts, one per index in the history.

    `run_id` is the id of the index: the run's where a run indexes first itself. `tables_done` counts tables in the cache;
    of those `tables_described` were described anew and `tables_unchanged` were not. `attempt` counts its starts.
    """

    project_id: str
    run_id: str = ""
    datasource_id: str = "default"
    status: Literal["running", "completed", "failed"] = "running"
    attempt: int = 1
    warehouse_hash: str = ""
    described_by: str = ""
    embedding_model: str = ""
    tables_total: int = 0
    tables_done: int = 0
    tables_described: int = 0
    tables_unchanged: int = 0
    tables_embedded: int = 0
    tables_failed: int = 0
    failures: list[TableFailure] = []
    usage: list[ModelUsage] = []
    error: str | None = None
    started_at: datetime
    updated_at: datetime | None = None
    completed_at: datetime | None = None

    @property
    def tables_seen(self) -> int:
        """Tables that are described, whether or not their vectors and rows are stored."""
        return self.tables_described + self.tables_unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTable:
    """What the cache says of a table, without the table."""

    structure: str
    described_by: str
    index_id: str
    embedded_by: str
    problem: str | None
    row_count: int | None
    cached_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTables:
    """Everything that is cached of a project: of the warehouse that was asked for, and names of tables of another."""

    tables: Mapping[TableKey, KnownTable]
    foreign: frozenset[TableKey]


class SchemaCache:
    """The collections `project_schema_cache`, `project_schema_index_progress` and
    `project_schema_index_runs`.
    """

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._rows = database[names.SCHEMA_CACHE]
        self._progress = database[names.INDEX_PROGRESS]
        self._history = database[names.INDEX_RUNS]

    def put(self, tables: Sequence[CachedTable]) -> None:
        """Add or replace rows, in batches."""
        for start in range(0, len(tables), _BATCH):
            operations: list[Any] = []
            for table in tables[start : start + _BATCH]:
                row = {"_id": _table_id(table), **storable(table)}
                operations.append(ReplaceOne({"_id": row["_id"]}, encoded(row), upsert=True))
            with translated():
                self._rows.bulk_write(operations, ordered=False)

    def tables(self, project_id: str, warehouse_hash: str, *, samples: bool = True) -> list[CachedTable]:
        """Every cached table of one warehouse, by datasource and name; without `samples` in little more than half the memory."""
        condition = {"project_id": project_id, "warehouse_hash": warehouse_hash}
        wanted = None if samples else {"table.sample": 0}
        with translated():
            rows = self._rows.find(condition, wanted, batch_size=_BATCH)
            found = [CachedTable.read(row) for row in rows]
        return sorted(found, key=lambda row: (row.table.datasource_id, row.table.ref))

    def known(self, project_id: str, warehouse_hash: str) -> KnownTables:
        """What is cached of a project's tables, in one pass: some hundred bytes for each."""
        tables: dict[TableKey, KnownTable] = {}
        foreign: set[TableKey] = set()
        with translated():
            for row in self._rows.find({"project_id": project_id}, _STATE, batch_size=_STATES):
                key = (row["table"].get("datasource_id", "default"), row["table"]["ref"])
                if row.get("warehouse_hash") == warehouse_hash:
                    tables[key] = _known(row)
                else:
                    foreign.add(key)
        return KnownTables(tables=tables, foreign=frozenset(foreign))

    def rows(self, project_id: str, warehouse_hash: str, keys: Sequence[TableKey]) -> list[CachedTable]:
        """The named tables that are cached, in the order asked."""
        ids = [_row_id(project_id, warehouse_hash, key) for key in keys]
        with translated():
            found = {row["_id"]: row for row in self._rows.find({"_id": {"$in": ids}}, batch_size=_BATCH)}
        return [CachedTable.read(found[identifier]) for identifier in ids if identifier in found]

    def touch(
        self,
        project_id: str,
        warehouse_hash: str,
        keys: Sequence[TableKey],
        *,
        at: datetime,
        row_counts: Mapping[TableKey, int | None],
    ) -> None:
        """Keep the rows of `keys` for another while; set the row counts of others, or of the same."""
        ids = [_row_id(project_id, warehouse_hash, key) for key in keys]
        counts: list[Any] = [
            UpdateOne(
                {"_id": _row_id(project_id, warehouse_hash, key)}, {"$set": {"table.row_count": row_count}}
            )
            for key, row_count in row_counts.items()
        ]
        with translated():
            if ids:
                self._rows.update_many({"_id": {"$in": ids}}, {"$set": {"cached_at": at}})
            if counts:
                self._rows.bulk_write(counts, ordered=False)

    def count(self, project_id: str, warehouse_hash: str) -> int:
        mine = {"project_id": project_id, "warehouse_hash": warehouse_hash}
        with translated():
            return int(self._rows.count_documents(mine))

    def forget_vectors(self, project_id: str) -> None:
        """Say of every row that it has no vector; comes before the vectors are dropped."""
        with translated():
            self._rows.update_many({"project_id": project_id}, {"$set": {"embedded_by": ""}})

    def forget(self, project_id: str, warehouse_hash: str, keys: Sequence[TableKey]) -> None:
        """Remove the named rows."""
        ids = [_row_id(project_id, warehouse_hash, key) for key in keys]
        with translated():
            self._rows.delete_many({"_id": {"$in": ids}})

    def forget_others(self, project_id: str, warehouse_hash: str) -> None:
        """Remove the rows of every other warehouse the project had."""
        with translated():
            self._rows.delete_many({"project_id": project_id, "warehouse_hash": {"$ne": warehouse_hash}})

    def progress(self, project_id: str) -> IndexProgress | None:
        with translated():
            found = self._progress.find_one({"_id": project_id})
        return IndexProgress.read(found) if found else None

    def report(self, progress: IndexProgress) -> None:
        """Replace the project's progress, and its row in the history."""
        row = {**storable(progress), "updated_at": clock.now()}
        run = f"{progress.project_id}:{progress.datasource_id}:{progress.run_id}"
        with translated():
            self._progress.replace_one({"_id": progress.project_id}, row, upsert=True)
            self._history.replace_one({"_id": run}, row, upsert=True)

    def history(self, project_id: str, limit: int = 20) -> list[IndexProgress]:
        """Latest started first."""
        with translated():
            rows = self._history.find({"project_id": project_id})
            rows = rows.sort([("started_at", DESCENDING), ("_id", ASCENDING)]).limit(limit)
            return [IndexProgress.read(row) for row in rows]


def _known(row: dict[str, Any]) -> KnownTable:
    """Few values are many tables': kept once."""
    return KnownTable(
        structure=str(row.get("structure", "")),
        described_by=sys.intern(str(row.get("described_by", ""))),
        index_id=sys.intern(str(row.get("index_id", ""))),
        embedded_by=sys.intern(str(row.get("embedded_by", ""))),
        problem=row.get("problem"),
        row_count=row.get("table", {}).get("row_count"),
        cached_at=row["cached_at"],
    )


def _table_id(table: CachedTable) -> str:
    return _row_id(table.project_id, table.warehouse_hash, (table.table.datasource_id, table.table.ref))


def _row_id(project_id: str, warehouse_hash: str, key: TableKey) -> str:
    return hashlib.sha256("\x1f".join((project_id, warehouse_hash, *key)).encode()).hexdigest()[:32]
