"""Projects, what people said of their findings, and what is deleted with a project.

Written by the command line and the operator; the agent reads. Deleting goes from the leaves to the project
document, so that a deletion that broke off is finished by asking again.
"""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import Any

from pymongo import DESCENDING
from pymongo.database import Database

from assay_core import clock
from assay_core.model.feedback import Feedback
from assay_core.model.project import Project
from assay_core.model.run import DiscoveryRun, RunStatus
from assay_core.store import names
from assay_core.store.rows import of_tenant, storable
from assay_core.store.translate import translated

_RUNS_AT_ONCE = 500
_MAY_BE_UNSAID = ("warehouse", "llm", "blurb_llm", "embedding", "prompts")
"""Parts of a project that a person leaves out to take them back."""
_BY_RUN = (names.RUN_STEPS, names.OUTCOMES, names.CHECKPOINTS, names.AREA_CHECKPOINTS)
_BY_PROJECT = (
    *names.LOGS,
    *names.STANDALONE,
    names.DISCOVERIES,
    names.FEEDBACK,
    names.MEMORY,
    names.SCHEMA_CACHE,
    names.INDEX_PROGRESS,
    names.INDEX_RUNS,
    names.SECRETS,
)


def tell_last_run(
    database: Database[dict[str, Any]],
    project_id: str,
    *,
    status: str,
    at: datetime,
    attempt: int,
    instead_of: str | None = None,
) -> None:
    """Set `last_run_*` of a project: `at` is when its run was started. Word of an older run, or of an older attempt of the same
    run that comes late, changes nothing; with `instead_of` neither does word of an attempt of which something else is known.
    """
    known = {"last_run_status": instead_of} if instead_of else {}
    older: list[dict[str, Any]] = [
        {"last_run_at": None},
        {"last_run_at": {"$lt": at}},
        {"last_run_at": at, "last_run_attempt": {"$not": {"$gte": attempt}}},
        {"last_run_at": at, "last_run_attempt": attempt, **known},
    ]
    fields = {
        "last_run_at": at,
        "last_run_status": status,
        "last_run_attempt": attempt,
        "updated_at": clock.now(),
    }
    with translated():
        database[names.PROJECTS].update_one(
            {"_id": names.document_id(project_id), "$or": older}, {"$set": storable(fields)}
        )


class Projects:
    """The collection `projects`."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._database = database
        self._rows = database[names.PROJECTS]

    def upsert(self, project: Project) -> None:
        """Add a project, or replace what is said of it; what runs recorded on it and its first date stay."""
        at = clock.now()
        fields = names.with_id(storable(project), None)
        identifier = names.document_id(project.id)
        created = fields.pop("created_at", None) or at
        fields = {key: value for key, value in fields.items() if key != "_id"} | {"updated_at": at}
        changes: dict[str, Any] = {"$set": fields, "$setOnInsert": {"created_at": created}}
        unsaid = {name: "" for name in _MAY_BE_UNSAID if name not in fields}
        if unsaid:
            changes["$unset"] = unsaid
        with translated():
            self._rows.update_one({"_id": identifier}, changes, upsert=True)

    def get(self, project_id: str) -> Project | None:
        with translated():
            found = self._rows.find_one({"_id": names.document_id(project_id)})
        return Project.read(found) if found else None

    def list(self, limit: int = 100) -> builtins.list[Project]:
        """Latest created first."""
        with translated():
            rows = self._rows.find().sort([("created_at", DESCENDING), ("_id", DESCENDING)]).limit(limit)
            return [Project.read(row) for row in rows]

    def announce_end(self, run: DiscoveryRun, status: RunStatus) -> None:
        """Say how a running attempt is about to end. Comes before its terminal write: if that is never made, or is refused,
        another transition of the run follows or has come before, and says better.
        """
        tell_last_run(
            self._database,
            run.project_id,
            status=status,
            at=run.started_at,
            attempt=run.attempt,
            instead_of=RunStatus.RUNNING,
        )

    def set_index_status(self, project_id: str, status: str, *, error: str | None = None) -> None:
        """`schema_index_status` and its time; `error` is removed unless given."""
        at = clock.now()
        changes: dict[str, Any] = {"$set": {"schema_index_status": status, "schema_index_updated_at": at}}
        if error is None:
            changes["$unset"] = {"schema_index_error": ""}
        else:
            changes["$set"]["schema_index_error"] = error
        with translated():
            self._rows.update_one({"_id": names.document_id(project_id)}, changes)

    def delete(self, project_id: str) -> bool:
        """Remove the project and all that belongs to it; True if the project was there."""
        runs = self._database[names.RUNS]
        with translated():
            while True:  # ends: each turn removes the runs it found
                found = [
                    row["_id"]
                    for row in runs.find({"project_id": project_id}, {"_id": 1}).limit(_RUNS_AT_ONCE)
                ]
                if not found:
                    break
                for collection in _BY_RUN:
                    self._database[collection].delete_many({"run_id": {"$in": found}})
                runs.delete_many({"_id": {"$in": found}})
            for collection in _BY_PROJECT:
                self._database[collection].delete_many({"project_id": project_id})
            done = self._rows.delete_one({"_id": names.document_id(project_id)})
        return done.deleted_count == 1


class FeedbackRows:
    """The collection `feedback`: one row per (discovery, kind, target)."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._rows = database[names.FEEDBACK]

    def put(self, feedback: Feedback) -> None:
        """Say it, or say it anew of the same target."""
        key = {name: getattr(feedback, name) for name in ("discovery_id", "target_type", "target_id")}
        fields = {name: value for name, value in storable(feedback).items() if name != "id"}
        with translated():
            self._rows.update_one(key, {"$set": fields, "$setOnInsert": {"_id": feedback.id}}, upsert=True)

    def of_project(self, project_id: str, limit: int = 50, *, tenant: str | None = None) -> list[Feedback]:
        """Latest first; `tenant` leaves out what was said of any other tenant's result."""
        return self._list({"project_id": project_id, **of_tenant(tenant)}, limit)

    def of_discovery(self, discovery_id: str, limit: int = 1_000) -> list[Feedback]:
        return self._list({"discovery_id": discovery_id}, limit)

    def delete(self, feedback_id: str) -> bool:
        with translated():
            return self._rows.delete_one({"_id": feedback_id}).deleted_count == 1

    def _list(self, condition: dict[str, Any], limit: int) -> list[Feedback]:
        with translated():
            rows = (
                self._rows.find(condition)
                .sort([("created_at", DESCENDING), ("_id", DESCENDING)])
                .limit(limit)
            )
            return [Feedback.read(row) for row in rows]
