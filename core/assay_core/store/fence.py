"""The fence: the only way an attempt writes what belongs to its run.

`mark` changes the run document on condition that run id, attempt and owner are still ours and nobody
cancelled; it is the ownership probe. `put` replaces a row unless a newer attempt wrote it; `delete` removes
only rows no newer than ours; `insert` appends rows stamped with the attempt. Used by every module of the
store that writes run-scoped data. Invariant: a superseded or cancelled attempt gets `OwnershipLost` and
changes nothing a newer attempt wrote.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from bson import ObjectId
from bson.raw_bson import RawBSONDocument
from pymongo import InsertOne, ReplaceOne, UpdateOne
from pymongo.collection import Collection

from assay_core import clock
from assay_core.errors import LossReason, OwnershipLost, TransientError
from assay_core.model.document import Document
from assay_core.model.run import RunLifecycleEvent, RunStatus, StoredPhase
from assay_core.store import names
from assay_core.store.faults import reach
from assay_core.store.rows import Insert, Put, batches, encoded, row_id, storable
from assay_core.store.translate import DuplicateKey, translated

if TYPE_CHECKING:
    from assay_core.store.client import Store

Answer = TypeVar("Answer")

RETRY_S = 120.0
"""Seconds `mark` waits for a MongoDB that is gone: longer than an election or a pod restart takes."""
_BACKOFF_S = (0.25, 0.5, 1.0, 2.0, 4.0)
_LIST_LIMIT = 2_000
"""Items a pushed list of the run document keeps at most, newest last."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Who writes: one attempt of one run, as one owner (a pod's UID, or `local:<host>:<pid>:<start>`)."""

    run_id: str
    attempt: int
    owner: str


class FencedRun:
    """The verbs of one attempt. Safe to call from several threads."""

    def __init__(self, store: Store, fence: Fence, *, retry_s: float = RETRY_S) -> None:
        self.store = store
        self.fence = fence
        self._retry_s = retry_s
        self._nonce = uuid4().hex[:12]
        self._marks = 0
        self._lock = threading.Lock()
        self._ids = threading.Lock()
        self._last_id = 0

    # ---------------------------------------------------------------------------------------------- the run

    def mark(
        self,
        *,
        set: Mapping[str, Any] | None = None,
        inc: Mapping[str, int] | None = None,
        push: Mapping[str, Any] | None = None,
        raise_to: Mapping[str, int] | None = None,
        unset: Sequence[str] = (),
    ) -> None:
        """Change the run document if it is still ours; with nothing given, only prove that it is.

        `inc` adds, `push` appends (a list: each), `raise_to` never lowers. Waits up to `retry_s` for a
        MongoDB that is gone, then `TransientError`. Applied exactly once however often it has to be sent.
        """
        reach("before:mark")
        self._change(_changes(set=set, inc=inc, push=push, raise_to=raise_to, unset=unset))
        reach("after:mark")

    def mark_and_put(
        self,
        writes: Sequence[Put | Insert],
        *,
        set: Mapping[str, Any] | None = None,
        inc: Mapping[str, int] | None = None,
        raise_to: Mapping[str, int] | None = None,
    ) -> bool:
        """A mark and then rows, in this order, in one round trip where the server can.

        False where the mark holds and the rows could not be written. An attempt that has lost the run learns so from the same
        answer; the rows it sent along are at most one step's, inert, and give way to a newer attempt's like any other.
        """
        reach("before:mark")
        reach("before:put")
        changes = _changes(set=set, inc=inc, raise_to=raise_to)
        if self.store.writes_across_collections:
            written = self._change_and_write(changes, [(write, self._row_of(write)) for write in writes])
        else:
            self._change(changes)
            written = self._try_put(writes)
        reach("after:mark")
        reach("after:put")
        return written

    def is_mine(self) -> None:
        """Raise `OwnershipLost` unless this attempt still owns the run."""
        self.mark()

    def finish(
        self,
        *,
        status: RunStatus,
        error: str | None = None,
        discovery_id: str | None = None,
        active_ms: int = 0,
        llm_provider: str | None = None,
        llm_model: str | None = None,
        reason: str = "",
        zero_checkpoint: bool = False,
    ) -> None:
        """The terminal mark: status, time, error, result, active time, and the event that names the model."""
        at = clock.now()
        event = RunLifecycleEvent(
            status=status,
            at=at,
            reason=reason or error or "",
            attempt=self.fence.attempt,
            llm_provider=llm_provider,
            llm_model=llm_model,
        )
        fields: dict[str, Any] = {"status": status, "completed_at": at}
        if error is not None:
            fields["error"] = error
        if discovery_id is not None:
            fields["discovery_id"] = discovery_id
        if zero_checkpoint:
            fields["last_checkpoint_step"] = 0
        if status is RunStatus.COMPLETED:
            fields |= {"phase": StoredPhase.COMPLETE, "progress": 100}
        self.mark(set=fields, inc={"active_ms": active_ms}, push={"lifecycle": event})

    def _change(self, changes: dict[str, Any]) -> None:
        with self._lock:  # a mark must not overtake an earlier one that is being sent again
            self._send(changes, self._stamp(changes), sent_before=False)

    def _stamp(self, changes: dict[str, Any]) -> str:
        """Give a mark its token: what tells whether it has been applied, however often it is sent."""
        self._marks += 1
        changes["$set"]["last_mark"] = f"{self._nonce}:{self._marks}"
        return str(changes["$set"]["last_mark"])

    def _send(self, changes: dict[str, Any], token: str, *, sent_before: bool) -> None:
        again = sent_before

        def send() -> bool:
            nonlocal again
            guard = {"last_mark": {"$ne": token}} if again else {}
            again = True
            with translated():
                done = self._runs.update_one({**self._ours(), **guard}, changes)
            return done.matched_count == 1

        if not _patiently(send, limit_s=self._retry_s):
            self._not_matched(token)

    def _change_and_write(
        self, changes: dict[str, Any], rows: Sequence[tuple[Put | Insert, RawBSONDocument]]
    ) -> bool:
        database = self.store.database
        with self._lock:
            token = self._stamp(changes)
            mark = UpdateOne(self._ours(), changes, namespace=f"{database.name}.{names.RUNS}")
            operations = [mark, *(self._operation(write, row) for write, row in rows)]
            try:
                with translated():
                    done = database.client.bulk_write(operations, ordered=True, verbose_results=True)
            except DuplicateKey:
                # The mark comes first and was applied; a row collided, and the row itself says why.
                return self._try_write(rows)
            except TransientError:
                self._send(changes, token, sent_before=True)
                return self._try_write(rows)
            if done.update_results[0].matched_count == 0:
                self._not_matched(token)
        return True

    def _try_put(self, writes: Sequence[Put | Insert]) -> bool:
        return self._try_write([(write, self._row_of(write)) for write in writes])

    def _try_write(self, rows: Sequence[tuple[Put | Insert, RawBSONDocument]]) -> bool:
        try:
            for write, row in rows:
                self._write_one(write, row)
        except TransientError:
            return False
        return True

    def _not_matched(self, token: str) -> None:
        """One read says why; a mark whose answer was lost on the way turns out to have been applied."""
        fence = self.fence
        found = _patiently(self._look, limit_s=self._retry_s)
        if found is None:
            raise OwnershipLost(LossReason.MISSING, run_id=fence.run_id)
        if found.get("status") == RunStatus.CANCELLED:
            raise OwnershipLost(LossReason.CANCELLED, run_id=fence.run_id)
        same = found.get("attempt") == fence.attempt and found.get("owner") == fence.owner
        if same and found.get("last_mark") == token:
            return
        raise OwnershipLost(LossReason.SUPERSEDED, run_id=fence.run_id)

    def _look(self) -> dict[str, Any] | None:
        with translated():
            return self._runs.find_one(
                {"_id": self.fence.run_id}, {"status": 1, "attempt": 1, "owner": 1, "last_mark": 1}
            )

    def _ours(self) -> dict[str, Any]:
        fence = self.fence
        return {
            "_id": fence.run_id,
            "attempt": fence.attempt,
            "owner": fence.owner,
            "status": RunStatus.RUNNING.value,
        }

    @property
    def _runs(self) -> Collection[dict[str, Any]]:
        return self.store.database[names.RUNS]

    # --------------------------------------------------------------------------------------------- its rows

    def put(self, collection: str, key: Mapping[str, Any], document: Document | Mapping[str, Any]) -> None:
        """Replace the row under `key`, or add it; a row of a newer attempt raises `OwnershipLost`."""
        reach("before:put")
        self._put(collection, self._row(key, document))
        reach("after:put")

    def insert(self, collection: str, document: Document | Mapping[str, Any]) -> None:
        """Append a row stamped with run and attempt."""
        reach("before:insert")
        with translated():
            self.store.database[collection].insert_one(self._row({"_id": self._next_id()}, document))
        reach("after:insert")

    def put_many(self, writes: Sequence[Put | Insert]) -> None:
        """Several rows of several collections, in one round trip where the server can; no order among
        them.
        """
        reach("before:put")
        if self.store.writes_across_collections and len(writes) > 1:
            for batch in batches((write, self._row_of(write)) for write in writes):
                self._put_batch(batch)
        else:
            for write in writes:
                self._write_one(write, self._row_of(write))
        reach("after:put")

    def amend(self, collection: str, identifier: Any, fields: Mapping[str, Any]) -> None:
        """Set fields of one of our own rows; a row of a newer attempt, or none, stays as it is."""
        with translated():
            self.store.database[collection].update_one(
                {"_id": identifier, **self._not_newer()}, {"$set": storable(fields)}
            )

    def delete(self, collection: str, extra_filter: Mapping[str, Any] | None = None) -> int:
        """Remove this run's rows, never one of a newer attempt; returns how many."""
        reach("before:delete")
        with translated():
            done = self.store.database[collection].delete_many({**(extra_filter or {}), **self._not_newer()})
        return int(done.deleted_count)

    def _not_newer(self) -> dict[str, Any]:
        return {"run_id": self.fence.run_id, "attempt": {"$lte": self.fence.attempt}}

    def _row(
        self,
        key: Mapping[str, Any],
        document: Document | Mapping[str, Any],
        extra: Mapping[str, Any] | None = None,
    ) -> RawBSONDocument:
        fields = {**storable(document), **storable(extra or {})}
        fields.pop("_id", None)
        stamp = {"run_id": self.fence.run_id, "attempt": self.fence.attempt}
        named = {name: value for name, value in key.items() if name != "_id"}
        return encoded({"_id": row_id(key), **fields, **named, **stamp})

    def _row_of(self, write: Put | Insert) -> RawBSONDocument:
        if isinstance(write, Insert):
            return self._row({"_id": self._next_id()}, write.document)
        return self._row(write.key, write.document, write.extra)

    def _next_id(self) -> ObjectId:
        """An id above every one given before, even when the clock has jumped back: readers go on from the last they saw."""
        with self._ids:
            fresh = int.from_bytes(ObjectId().binary)
            self._last_id = max(fresh, self._last_id + 1)
            return ObjectId(self._last_id.to_bytes(12))

    def _put(self, collection: str, row: RawBSONDocument) -> None:
        target = self.store.database[collection]
        condition = {"_id": row["_id"], "attempt": {"$lte": self.fence.attempt}}
        for last in (False, True):
            try:
                with translated():
                    target.replace_one(condition, row, upsert=True)
                return
            except DuplicateKey:
                # A newer row is there, or two upserts of our own met: the row itself tells.
                if last or self._newer_exists(collection, row["_id"]):
                    raise OwnershipLost(LossReason.SUPERSEDED, run_id=self.fence.run_id) from None

    def _newer_exists(self, collection: str, identifier: Any) -> bool:
        with translated():
            found = self.store.database[collection].find_one(
                {"_id": identifier, "attempt": {"$gt": self.fence.attempt}}, {"_id": 1}
            )
        return found is not None

    def _write_one(self, write: Put | Insert, row: RawBSONDocument) -> None:
        if isinstance(write, Put):
            self._put(write.collection, row)
            return
        # An identifier that is taken is this very row, sent before.
        with suppress(DuplicateKey), translated():
            self.store.database[write.collection].insert_one(row)

    def _operation(self, write: Put | Insert, row: RawBSONDocument) -> Any:
        namespace = f"{self.store.database.name}.{write.collection}"
        if isinstance(write, Insert):
            return InsertOne(row, namespace=namespace)
        condition = {"_id": row["_id"], "attempt": {"$lte": self.fence.attempt}}
        return ReplaceOne(condition, row, upsert=True, namespace=namespace)

    def _put_batch(self, rows: Sequence[tuple[Put | Insert, RawBSONDocument]]) -> None:
        operations = [self._operation(write, row) for write, row in rows]
        try:
            with translated():
                self.store.client.bulk_write(operations, ordered=False)
        except DuplicateKey:
            # Rows that went through are replaced by themselves; the one that collided says why.
            for write, row in rows:
                if isinstance(write, Put):
                    self._put(write.collection, row)


def _changes(
    *,
    set: Mapping[str, Any] | None = None,
    inc: Mapping[str, int] | None = None,
    push: Mapping[str, Any] | None = None,
    raise_to: Mapping[str, int] | None = None,
    unset: Sequence[str] = (),
) -> dict[str, Any]:
    """The update document of a mark."""
    changes: dict[str, Any] = {"$set": {**storable(set or {}), "updated_at": clock.now()}}
    if inc:
        changes["$inc"] = dict(inc)
    if push:
        changes["$push"] = {field: _pushed(value) for field, value in push.items()}
    if raise_to:
        changes["$max"] = dict(raise_to)
    if unset:
        changes["$unset"] = dict.fromkeys(unset, "")
    return changes


def _pushed(value: Any) -> dict[str, Any]:
    items = value if isinstance(value, list) else [value]
    return {"$each": [storable(item) for item in items], "$slice": -_LIST_LIMIT}


def _patiently(send: Callable[[], Answer], *, limit_s: float) -> Answer:
    """Call until MongoDB answers or `limit_s` seconds are over; then its `TransientError`."""
    deadline = time.monotonic() + limit_s
    tries = 0
    while True:
        try:
            return send()
        except TransientError:
            pause = _BACKOFF_S[min(tries, len(_BACKOFF_S) - 1)]
            if time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)
            tries += 1
