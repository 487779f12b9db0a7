"""The fence: the only way an attempt writes what belongs to its run.

`mark` changes the run document on condition that run id, attempt and owner are still ours and nobody
cancelled; it is the ownership probe. `put` replaces a row unless a newer attempt wrote it; `delete` removes
only rows no newer than ours; `insert` appends rows stamped with the attempt. Used by every module of the
store that writes run-scoped data. Invariant: a superseded or cancelled attempt gets `OwnershipLost` and
changes nothing a newer attempt wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pymongo.database import Database

from assay_core import clock
from assay_core.model.document import Document
from assay_core.model.run import RunLifecycleEvent, RunStatus, StoredPhase
from assay_core.store.faults import reach
from assay_core.store.fenced_rows import FencedRows
from assay_core.store.marks import Marks, changes_of
from assay_core.store.rows import Insert, Put, batches
from assay_core.store.translate import translated

RETRY_S = 120.0
"""Seconds `mark` waits for a MongoDB that is gone: longer than an election or a pod restart takes."""


class Opened(Protocol):
    """What of the store a fence needs."""

    database: Database[dict[str, Any]]
    writes_across_collections: bool

    def lost(self) -> str | None:
        """Why the server will not come back; None while waiting for it makes sense."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Who writes: one attempt of one run, as one owner (a pod's UID, or `local:<host>:<pid>:<start>`)."""

    run_id: str
    attempt: int
    owner: str


class FencedRun:
    """The verbs of one attempt. Safe to call from several threads."""

    def __init__(self, store: Opened, fence: Fence, *, retry_s: float = RETRY_S) -> None:
        self.fence = fence
        self._store = store
        self._marks = Marks(
            store.database,
            run_id=fence.run_id,
            attempt=fence.attempt,
            owner=fence.owner,
            retry_s=retry_s,
            lost=store.lost,
        )
        self._rows = FencedRows(store.database, run_id=fence.run_id, attempt=fence.attempt)

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
        MongoDB that is gone, then `TransientError`; at once where it is lost for good. Applied exactly once
        however often it has to be sent.
        """
        reach("before:mark")
        self._marks.change(changes_of(set=set, inc=inc, push=push, raise_to=raise_to, unset=unset))
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
        changes = changes_of(set=set, inc=inc, raise_to=raise_to)
        if self._store.writes_across_collections:
            rows = [(write, self._rows.of(write)) for write in writes]
            operations = [self._rows.operation(write, row) for write, row in rows]
            written = self._marks.change_beside(
                changes, operations, otherwise=lambda: self._rows.try_write(rows)
            )
        else:
            self._marks.change(changes)
            written = self._rows.try_write([(write, self._rows.of(write)) for write in writes])
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

    # --------------------------------------------------------------------------------------------- its rows

    def put(self, collection: str, key: Mapping[str, Any], document: Document | Mapping[str, Any]) -> None:
        """Replace the row under `key`, or add it; a row of a newer attempt raises `OwnershipLost`."""
        reach("before:put")
        self._rows.put(collection, self._rows.under(key, document))
        reach("after:put")

    def insert(self, collection: str, document: Document | Mapping[str, Any]) -> None:
        """Append a row stamped with run and attempt."""
        reach("before:insert")
        with translated():
            self._store.database[collection].insert_one(self._rows.appended(document))
        reach("after:insert")

    def put_many(self, writes: Sequence[Put | Insert]) -> None:
        """Several rows of several collections, in one round trip where the server can; no order among
        them.
        """
        reach("before:put")
        if self._store.writes_across_collections and len(writes) > 1:
            for batch in batches((write, self._rows.of(write)) for write in writes):
                self._rows.write_batch(batch)
        else:
            for write in writes:
                self._rows.write(write, self._rows.of(write))
        reach("after:put")

    def amend(self, collection: str, identifier: Any, fields: Mapping[str, Any]) -> None:
        """Set fields of one of our own rows; a row of a newer attempt, or none, stays as it is."""
        self._rows.amend(collection, identifier, fields)

    def delete(self, collection: str, extra_filter: Mapping[str, Any] | None = None) -> int:
        """Remove this run's rows, never one of a newer attempt; returns how many."""
        reach("before:delete")
        return self._rows.delete(collection, extra_filter)
