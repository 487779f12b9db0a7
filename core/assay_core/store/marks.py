"""The conditional write of the run document: it holds only while run, attempt and owner are ours, and is applied exactly once.

Used by `fence`. A mark carries a token, so that one whose answer was lost is recognised as applied when it is sent again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from pymongo import UpdateOne
from pymongo.collection import Collection
from pymongo.database import Database

from assay_core import clock
from assay_core.errors import LossReason, OwnershipLost, TransientError
from assay_core.model.run import RunStatus
from assay_core.store import names
from assay_core.store.rows import storable
from assay_core.store.translate import DuplicateKey, translated

Answer = TypeVar("Answer")

_BACKOFF_S = (0.25, 0.5, 1.0, 2.0, 4.0)
_LIST_LIMIT = 2_000
"""Items a pushed list of the run document keeps at most, newest last."""


class Marks:
    """The marks of one attempt, one at a time. Waits up to `retry_s` for a MongoDB that is gone, and not at
    all once `lost` says why it will not come back.
    """

    def __init__(
        self,
        database: Database[dict[str, Any]],
        *,
        run_id: str,
        attempt: int,
        owner: str,
        retry_s: float,
        lost: Callable[[], str | None],
    ) -> None:
        self._database, self._retry_s, self._lost = database, retry_s, lost
        self._run_id, self._attempt, self._owner = run_id, attempt, owner
        self._nonce = uuid4().hex[:12]
        self._count = 0
        self._lock = threading.Lock()

    def change(self, changes: dict[str, Any]) -> None:
        """Apply an update document of `changes_of`, or raise why it may not be."""
        with self._lock:  # a mark must not overtake an earlier one that is being sent again
            self._send(changes, self._stamp(changes), sent_before=False)

    def change_beside(
        self, changes: dict[str, Any], operations: Sequence[Any], *, otherwise: Callable[[], bool]
    ) -> bool:
        """The mark and then `operations` in one ordered command. Where that did not go through, the mark is made alone, and
        `otherwise` writes what stood beside it and says whether it could.
        """
        with self._lock:
            token = self._stamp(changes)
            mark = UpdateOne(self._ours(), changes, namespace=f"{self._database.name}.{names.RUNS}")
            try:
                with translated():
                    done = self._database.client.bulk_write(
                        [mark, *operations], ordered=True, verbose_results=True
                    )
            except DuplicateKey:
                # The mark comes first and was applied; a row collided, and the row itself says why.
                return otherwise()
            except TransientError:
                self._send(changes, token, sent_before=True)
                return otherwise()
            if done.update_results[0].matched_count == 0:
                self._not_matched(token)
        return True

    def _stamp(self, changes: dict[str, Any]) -> str:
        """Give a mark its token: what tells whether it has been applied, however often it is sent."""
        self._count += 1
        changes["$set"]["last_mark"] = f"{self._nonce}:{self._count}"
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

        if not _patiently(send, limit_s=self._retry_s, lost=self._lost):
            self._not_matched(token)

    def _not_matched(self, token: str) -> None:
        """One read says why; a mark whose answer was lost on the way turns out to have been applied."""
        found = _patiently(self._look, limit_s=self._retry_s, lost=self._lost)
        if found is None:
            raise OwnershipLost(LossReason.MISSING, run_id=self._run_id)
        if found.get("status") == RunStatus.CANCELLED:
            raise OwnershipLost(LossReason.CANCELLED, run_id=self._run_id)
        same = found.get("attempt") == self._attempt and found.get("owner") == self._owner
        if same and found.get("last_mark") == token:
            return
        raise OwnershipLost(LossReason.SUPERSEDED, run_id=self._run_id)

    def _look(self) -> dict[str, Any] | None:
        with translated():
            return self._runs.find_one(
                {"_id": self._run_id}, {"status": 1, "attempt": 1, "owner": 1, "last_mark": 1}
            )

    def _ours(self) -> dict[str, Any]:
        return {
            "_id": self._run_id,
            "attempt": self._attempt,
            "owner": self._owner,
            "status": RunStatus.RUNNING.value,
        }

    @property
    def _runs(self) -> Collection[dict[str, Any]]:
        return self._database[names.RUNS]


def changes_of(
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


def _patiently(send: Callable[[], Answer], *, limit_s: float, lost: Callable[[], str | None]) -> Answer:
    """Call until MongoDB answers, is `lost` for good, or `limit_s` seconds are over; then a `TransientError`."""
    deadline = time.monotonic() + limit_s
    tries = 0
    while True:
        try:
            return send()
        except TransientError as error:
            why = lost()
            if why is not None:
                raise TransientError(why, dependency=error.dependency) from error
            pause = _BACKOFF_S[min(tries, len(_BACKOFF_S) - 1)]
            if time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)
            tries += 1
