"""The live feed: one row per event of a run, stamped with its attempt; readers see one attempt only.

A superseded attempt may still append; its rows carry its own number and are never served. Ids rise within one
process, so a reader may go on after the last id it has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson import ObjectId
from pymongo import ASCENDING
from pymongo.database import Database

from assay_core.errors import ConfigError
from assay_core.model.run import RunStep
from assay_core.store import names
from assay_core.store.fence import FencedRun
from assay_core.store.rows import Insert
from assay_core.store.translate import translated


class FeedRow(RunStep):
    """A row as read: `id` is the cursor to go on from."""

    id: str


class Feed:
    """The collection `discovery_run_steps`."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._rows = database[names.RUN_STEPS]

    def append(self, fenced: FencedRun, row: RunStep) -> None:
        fenced.insert(names.RUN_STEPS, row)

    def append_all(self, fenced: FencedRun, rows: Sequence[RunStep]) -> None:
        """Several rows in order, in as few round trips as can be."""
        fenced.put_many([Insert(names.RUN_STEPS, row) for row in rows])

    def rows(
        self, run_id: str, *, attempt: int, since_id: str | None = None, limit: int = 1_000
    ) -> list[FeedRow]:
        """Rows of one attempt after `since_id`, oldest first. A row without an attempt belongs to the
        first.
        """
        condition: dict[str, Any] = {
            "run_id": run_id,
            "attempt": attempt if attempt != 1 else {"$in": [1, None]},
        }
        if since_id is not None:
            if not ObjectId.is_valid(since_id):
                raise ConfigError(f"{since_id!r} is not the id of a feed row")
            condition["_id"] = {"$gt": ObjectId(since_id)}
        with translated():
            rows = self._rows.find(condition).sort("_id", ASCENDING).limit(limit)
            return [FeedRow.read(row) for row in rows]
