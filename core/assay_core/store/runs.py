"""Run documents and their named transitions; each transition is one conditional update with its own filter.

    create ──► pending ──claim──► running ──FencedRun.finish──► completed | failed
                  │                  │ └──fail_unowned──► failed ──resume──► pending (attempt + 1) ──stand_down──► failed
                  └──request_cancel──┴──► cancelled

The command line and the operator create, cancel and resume; the agent claims. Everything an attempt writes
while it runs goes through `fence`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from pymongo import DESCENDING, ReturnDocument
from pymongo.database import Database

from assay_core import clock
from assay_core.errors import ConfigError, LossReason, OwnershipLost, TransientError
from assay_core.model.run import DiscoveryRun, RunLifecycleEvent, RunOutcome, RunStatus
from assay_core.store import names
from assay_core.store.owner import local_owner, owner_is_gone
from assay_core.store.projects import tell_last_run
from assay_core.store.rows import storable
from assay_core.store.translate import DuplicateKey, translated

__all__ = ["Outcomes", "Runs", "local_owner", "owner_is_gone"]

_ACTIVE = [RunStatus.PENDING.value, RunStatus.RUNNING.value]
_NAMED_AT_MOST = 5


class Runs:
    """The collection `discovery_runs`."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._rows = database[names.RUNS]

    def create(self, run: DiscoveryRun) -> None:
        """Add a new run; an id that is taken is a `ConfigError`."""
        try:
            with translated():
                self._rows.insert_one(names.with_id(storable(run), run.id))
        except DuplicateKey:
            raise ConfigError(f"run {run.id} exists already") from None

    def get(self, run_id: str) -> DiscoveryRun | None:
        with translated():
            found = self._rows.find_one({"_id": run_id})
        return DiscoveryRun.read(found) if found else None

    def find(self, prefix: str) -> DiscoveryRun:
        """The one run whose id starts with `prefix`; none or several is a `ConfigError` that names them."""
        if not prefix:
            raise ConfigError("a run id, or its beginning, is needed")
        with translated():
            exact = self._rows.find_one({"_id": prefix})
            rows = [exact] if exact else list(
                self._rows.find({"_id": {"$regex": "^" + re.escape(prefix)}}).limit(_NAMED_AT_MOST + 1)
            )  # fmt: skip
        if not rows:
            raise ConfigError(f"no run has an id that starts with {prefix!r}")
        if len(rows) > 1:
            named = ", ".join(str(row["_id"]) for row in rows[:_NAMED_AT_MOST])
            more = ", …" if len(rows) > _NAMED_AT_MOST else ""
            raise ConfigError(f"several runs have an id that starts with {prefix!r}: {named}{more}")
        return DiscoveryRun.read(rows[0])

    def recent(self, *, project_id: str | None = None, limit: int = 20) -> list[DiscoveryRun]:
        """Latest started first."""
        return self._list({"project_id": project_id} if project_id else {}, limit)

    def active(self, *, project_id: str | None = None, limit: int = 1_000) -> list[DiscoveryRun]:
        """Pending and running ones, latest started first."""
        condition: dict[str, Any] = {"status": {"$in": _ACTIVE}}
        if project_id is not None:
            condition["project_id"] = project_id
        return self._list(condition, limit)

    def cancelled_by_origin(self, cluster: str, *, limit: int = 1_000) -> list[DiscoveryRun]:
        """Cancelled runs of one cluster, latest started first."""
        return self._list({"origin.cluster": cluster, "status": RunStatus.CANCELLED.value}, limit)

    def stamps(self, run_ids: Sequence[str]) -> dict[str, datetime]:
        """When each of these runs was last written to; one query for as many as there are."""
        with translated():
            rows = self._rows.find({"_id": {"$in": list(run_ids)}}, {"updated_at": 1})
            return {str(row["_id"]): row["updated_at"] for row in rows if "updated_at" in row}

    def _list(self, condition: dict[str, Any], limit: int) -> list[DiscoveryRun]:
        with translated():
            rows = (
                self._rows.find(condition)
                .sort([("started_at", DESCENDING), ("_id", DESCENDING)])
                .limit(limit)
            )
            return [DiscoveryRun.read(row) for row in rows]

    # -------------------------------------------------------------------------------------------- transitions

    def claim(self, run_id: str, attempt: int, owner: str) -> DiscoveryRun:
        """Pending, this attempt, no owner → running and ours. Anything else is `OwnershipLost`, with the
        reason.
        """
        at = clock.now()
        event = RunLifecycleEvent(status=RunStatus.RUNNING, at=at, reason="started", attempt=attempt)
        changed = self._move(
            {"_id": run_id, "attempt": attempt, "status": RunStatus.PENDING.value, "owner": None},
            fields={"status": RunStatus.RUNNING, "owner": owner, "updated_at": at},
            event=event,
        )
        if changed:
            return changed
        found = self.get(run_id)
        if found is None:
            raise OwnershipLost(LossReason.MISSING, run_id=run_id)
        if found.status is RunStatus.CANCELLED:
            raise OwnershipLost(LossReason.CANCELLED, run_id=run_id)
        if (found.status, found.attempt, found.owner) == (RunStatus.RUNNING, attempt, owner):
            return found  # our claim was applied and its answer was lost
        raise OwnershipLost(LossReason.SUPERSEDED, run_id=run_id)

    def fail_unowned(self, run_id: str, *, attempt: int, owner: str | None, reason: str) -> bool:
        """Active, still this attempt and this owner → failed. For runs whose process, Job or pod is gone."""
        at = clock.now()
        event = RunLifecycleEvent(status=RunStatus.FAILED, at=at, reason=reason, attempt=attempt)
        changed = self._move(
            {"_id": run_id, "attempt": attempt, "owner": owner, "status": {"$in": _ACTIVE}},
            fields={"status": RunStatus.FAILED, "error": reason, "completed_at": at, "updated_at": at},
            event=event,
        )
        return changed is not None

    def request_cancel(self, run_id: str, *, reason: str = "cancelled by request") -> bool:
        """Active → cancelled; the attempt notices at its next mark. False when the run has ended or is
        unknown.
        """
        for _ in range(5):  # a resume between the read and the update changes the attempt
            found = self.get(run_id)
            if found is None or found.status.is_terminal:
                return False
            at = clock.now()
            event = RunLifecycleEvent(status=RunStatus.CANCELLED, at=at, reason=reason, attempt=found.attempt)
            changed = self._move(
                {"_id": run_id, "attempt": found.attempt, "status": {"$in": _ACTIVE}},
                fields={"status": RunStatus.CANCELLED, "completed_at": at, "updated_at": at},
                event=event,
            )
            if changed:
                return True
        return False

    def request_suspend(self, run_id: str, *, attempt: int) -> bool:
        """Say on an active run that its present attempt is stopped by request: whatever is seen of its end, that is why."""
        with translated():
            done = self._rows.update_one(
                {"_id": run_id, "attempt": attempt, "status": {"$in": _ACTIVE}},
                {"$set": {"suspend_requested": True, "updated_at": clock.now()}},
            )
        return done.matched_count == 1

    def resume(self, run_id: str, *, attempt: int, reason: str = "resumed") -> DiscoveryRun | None:
        """Failed and still at `attempt` → pending at the next one, with no trace of how the last one ended.

        One atomic step, so that of two who ask only one gets the run; the other gets None.
        """
        at = clock.now()
        event = RunLifecycleEvent(status=RunStatus.PENDING, at=at, reason=reason, attempt=attempt + 1)
        return self._move(
            {"_id": run_id, "attempt": attempt, "status": RunStatus.FAILED.value},
            fields={
                "status": RunStatus.PENDING,
                "attempt": attempt + 1,
                "last_checkpoint_step": 0,
                "last_resumed_at": at,
                "updated_at": at,
            },
            unset=("error", "completed_at", "discovery_id", "owner", "last_mark", "suspend_requested"),
            event=event,
        )

    def stand_down(self, resumed: DiscoveryRun, *, before: DiscoveryRun) -> bool:
        """Pending by a resume and not yet claimed → failed, as it was `before`; the attempt that never ran stays counted."""
        at = clock.now()
        reason = "stood down: another run of the project is active"
        event = RunLifecycleEvent(status=RunStatus.FAILED, at=at, reason=reason, attempt=resumed.attempt)
        kept = {
            "error": before.error,
            "completed_at": before.completed_at,
            "discovery_id": before.discovery_id,
            "last_checkpoint_step": before.last_checkpoint_step,
        }
        changed = self._move(
            {
                "_id": resumed.id,
                "attempt": resumed.attempt,
                "owner": None,
                "status": RunStatus.PENDING.value,
            },
            fields={
                "status": RunStatus.FAILED,
                "updated_at": at,
                **{k: v for k, v in kept.items() if v is not None},
            },
            event=event,
        )
        return changed is not None

    def _move(
        self,
        condition: dict[str, Any],
        *,
        fields: dict[str, Any],
        event: RunLifecycleEvent,
        unset: tuple[str, ...] = (),
    ) -> DiscoveryRun | None:
        changes: dict[str, Any] = {"$set": storable(fields), "$push": {"lifecycle": storable(event)}}
        if unset:
            changes["$unset"] = dict.fromkeys(unset, "")
        with translated():
            found = self._rows.find_one_and_update(condition, changes, return_document=ReturnDocument.AFTER)
        if found is None:
            return None
        run = DiscoveryRun.read(found)
        with suppress(TransientError):  # the transition itself is done
            tell_last_run(
                self._rows.database, run.project_id, status=run.status, at=run.started_at, attempt=run.attempt
            )
        return run


class Outcomes:
    """What each attempt left behind, under (run, attempt, owner). Written even by one that lost its run."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._rows = database[names.OUTCOMES]

    def put(self, outcome: RunOutcome) -> None:
        identifier = f"{outcome.run_id}:{outcome.attempt}:{outcome.owner}"
        row = {**storable(outcome), "_id": identifier, "created_at": clock.now()}
        with translated():
            self._rows.replace_one({"_id": identifier}, row, upsert=True)

    def get(self, run_id: str, attempt: int, owner: str) -> RunOutcome | None:
        with translated():
            found = self._rows.find_one({"_id": f"{run_id}:{attempt}:{owner}"})
        return RunOutcome.read(found) if found else None

    def of_run(self, run_id: str) -> list[RunOutcome]:
        """Oldest attempt first."""
        with translated():
            return [
                RunOutcome.read(row)
                for row in self._rows.find({"run_id": run_id}).sort("attempt", 1).limit(1_000)
            ]
