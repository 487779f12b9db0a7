"""The schema cache: one row per table of a project's warehouse, and how indexing went.

Written by indexing, read by the schema phase. Rows expire after seven days. `warehouse_hash` is the caller's
digest of which warehouse it is: a changed warehouse finds no rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pymongo import ASCENDING, DESCENDING, ReplaceOne
from pymongo.database import Database

from assay_core import clock
from assay_core.model.document import Document
from assay_core.model.table import CachedTable
from assay_core.store import names
from assay_core.store.rows import encoded, storable
from assay_core.store.translate import translated

_BATCH = 200
CACHE_TTL_S = 7 * 24 * 3600


class IndexProgress(Document):
    """How far indexing of a project is: one row per project while it lasts, one per run in the history."""

    project_id: str
    run_id: str = ""
    datasource_id: str = "default"
    status: Literal["running", "completed", "failed"] = "running"
    tables_total: int = 0
    tables_done: int = 0
    tables_failed: int = 0
    error: str | None = None
    started_at: datetime
    updated_at: datetime | None = None


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

    def tables(self, project_id: str, warehouse_hash: str) -> list[CachedTable]:
        """Every cached table of one warehouse, by datasource and name."""
        condition = {"project_id": project_id, "warehouse_hash": warehouse_hash}
        with translated():
            found = [CachedTable.read(row) for row in self._rows.find(condition, batch_size=_BATCH)]
        return sorted(found, key=lambda row: (row.table.datasource_id, row.table.ref))

    def forget_older(self, project_id: str, warehouse_hash: str, before: datetime) -> int:
        """Remove tables that the index begun at `before` did not see again, and rows of another warehouse."""
        stale = {"$or": [{"cached_at": {"$lt": before}}, {"warehouse_hash": {"$ne": warehouse_hash}}]}
        with translated():
            return int(self._rows.delete_many({"project_id": project_id, **stale}).deleted_count)

    def drop(self, project_id: str) -> int:
        with translated():
            return int(self._rows.delete_many({"project_id": project_id}).deleted_count)

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


def _table_id(table: CachedTable) -> str:
    parts = (table.project_id, table.warehouse_hash, table.table.datasource_id, table.table.ref)
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]
