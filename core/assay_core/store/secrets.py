"""Secrets of projects as they are kept: sealed values under (namespace, project, key). What seals them is the agent's.

Nothing here can read a value; listing tells keys and times only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pymongo import ASCENDING
from pymongo.database import Database

from assay_core import clock
from assay_core.store import names
from assay_core.store.translate import translated

_LISTED_AT_MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret:
    key: str
    updated_at: datetime


class Secrets:
    """The collection `secrets`."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._rows = database[names.SECRETS]

    def put(self, namespace: str, project_id: str, key: str, sealed: str) -> None:
        """Add a secret, or take its place."""
        place = _place(namespace, project_id, key)
        fields = {"value": sealed, "encrypted": True, "updated_at": clock.now()}
        with translated():
            self._rows.update_one(place, {"$set": fields}, upsert=True)

    def get(self, namespace: str, project_id: str, key: str) -> str | None:
        """The sealed value; None when there is none, or none that was sealed."""
        with translated():
            found = self._rows.find_one({**_place(namespace, project_id, key), "encrypted": True})
        return str(found["value"]) if found else None

    def listed(self, namespace: str, project_id: str) -> list[StoredSecret]:
        with translated():
            rows = self._rows.find({"namespace": namespace, "project_id": project_id}, {"value": 0})
            found = list(rows.sort("key", ASCENDING).limit(_LISTED_AT_MOST))
        return [StoredSecret(key=row["key"], updated_at=row["updated_at"]) for row in found]

    def delete(self, namespace: str, project_id: str, key: str) -> bool:
        with translated():
            return self._rows.delete_one(_place(namespace, project_id, key)).deleted_count == 1


def _place(namespace: str, project_id: str, key: str) -> dict[str, str]:
    return {"namespace": namespace, "project_id": project_id, "key": key}
