"""Rows that belong to a run, stamped with its attempt: a row of a newer attempt is never replaced nor removed.

Used by `fence`. The id of a row follows from its key, so what keeps an older attempt out is a collision of ids.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from bson import ObjectId
from bson.raw_bson import RawBSONDocument
from pymongo import InsertOne, ReplaceOne
from pymongo.database import Database

from assay_core.errors import LossReason, OwnershipLost, TransientError
from assay_core.model.document import Document
from assay_core.store.rows import Insert, Put, encoded, row_id, storable
from assay_core.store.translate import DuplicateKey, translated


class FencedRows:
    """Rows of one attempt. Safe to call from several threads."""

    def __init__(self, database: Database[dict[str, Any]], *, run_id: str, attempt: int) -> None:
        self._database = database
        self._run_id, self._attempt = run_id, attempt
        self._ids = threading.Lock()
        self._last_id = 0

    def of(self, write: Put | Insert) -> RawBSONDocument:
        """The row of a write as it is stored."""
        if isinstance(write, Insert):
            return self.appended(write.document)
        return self.under(write.key, write.document, write.extra)

    def appended(self, document: Document | Mapping[str, Any]) -> RawBSONDocument:
        """A row that has an id of its own."""
        return self.under({"_id": self._next_id()}, document)

    def under(
        self,
        key: Mapping[str, Any],
        document: Document | Mapping[str, Any],
        extra: Mapping[str, Any] | None = None,
    ) -> RawBSONDocument:
        """A row under its key."""
        fields = {**storable(document), **storable(extra or {})}
        fields.pop("_id", None)
        stamp = {"run_id": self._run_id, "attempt": self._attempt}
        named = {name: value for name, value in key.items() if name != "_id"}
        return encoded({"_id": row_id(key), **fields, **named, **stamp})

    def put(self, collection: str, row: RawBSONDocument) -> None:
        """Replace the row of this id, or add it; a newer one raises `OwnershipLost`."""
        target = self._database[collection]
        condition = {"_id": row["_id"], "attempt": {"$lte": self._attempt}}
        for last in (False, True):
            try:
                with translated():
                    target.replace_one(condition, row, upsert=True)
                return
            except DuplicateKey:
                # A newer row is there, or two upserts of our own met: the row itself tells.
                if last or self._newer_exists(collection, row["_id"]):
                    raise OwnershipLost(LossReason.SUPERSEDED, run_id=self._run_id) from None

    def write(self, write: Put | Insert, row: RawBSONDocument) -> None:
        """Put or append, once however often it is sent."""
        if isinstance(write, Put):
            self.put(write.collection, row)
            return
        # An identifier that is taken is this very row, sent before.
        with suppress(DuplicateKey), translated():
            self._database[write.collection].insert_one(row)

    def try_write(self, rows: Sequence[tuple[Put | Insert, RawBSONDocument]]) -> bool:
        """Write them one by one; whether the server took them all."""
        try:
            for write, row in rows:
                self.write(write, row)
        except TransientError:
            return False
        return True

    def operation(self, write: Put | Insert, row: RawBSONDocument) -> Any:
        """The write as a part of one command."""
        namespace = f"{self._database.name}.{write.collection}"
        if isinstance(write, Insert):
            return InsertOne(row, namespace=namespace)
        condition = {"_id": row["_id"], "attempt": {"$lte": self._attempt}}
        return ReplaceOne(condition, row, upsert=True, namespace=namespace)

    def write_batch(self, rows: Sequence[tuple[Put | Insert, RawBSONDocument]]) -> None:
        """All of them in one command, in no order."""
        operations = [self.operation(write, row) for write, row in rows]
        try:
            with translated():
                self._database.client.bulk_write(operations, ordered=False)
        except DuplicateKey:
            # Rows that went through are replaced by themselves; the one that collided says why.
            for write, row in rows:
                if isinstance(write, Put):
                    self.put(write.collection, row)

    def amend(self, collection: str, identifier: Any, fields: Mapping[str, Any]) -> None:
        """Set fields of one of our own rows; a row of a newer attempt, or none, stays as it is."""
        with translated():
            self._database[collection].update_one(
                {"_id": identifier, **self._not_newer()}, {"$set": storable(fields)}
            )

    def delete(self, collection: str, extra_filter: Mapping[str, Any] | None = None) -> int:
        """Remove this run's rows, never one of a newer attempt; returns how many."""
        with translated():
            done = self._database[collection].delete_many({**(extra_filter or {}), **self._not_newer()})
        return int(done.deleted_count)

    def _not_newer(self) -> dict[str, Any]:
        return {"run_id": self._run_id, "attempt": {"$lte": self._attempt}}

    def _next_id(self) -> ObjectId:
        """An id above every one given before, even when the clock has jumped back: readers go on from the last they saw."""
        with self._ids:
            fresh = int.from_bytes(ObjectId().binary)
            self._last_id = max(fresh, self._last_id + 1)
            return ObjectId(self._last_id.to_bytes(12))

    def _newer_exists(self, collection: str, identifier: Any) -> bool:
        with translated():
            found = self._database[collection].find_one(
                {"_id": identifier, "attempt": {"$gt": self._attempt}}, {"_id": 1}
            )
        return found is not None
