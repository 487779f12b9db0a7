"""Which indexes the collections need, and how they are brought into place.

`ensure` is called by whoever creates the store's first documents (command line, operator) and by the agent at
start. An index whose options changed (server codes 85 and 86) is dropped and built anew only when asked for: by
whoever owns the settings of the whole installation, not by every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import OperationFailure

from assay_core.store import names
from assay_core.store.schema import CACHE_TTL_S
from assay_core.store.translate import translated

TTL_CHECKPOINTS = "ttl_discovery_checkpoint"
TTL_AREA_CHECKPOINTS = "ttl_discovery_analysis_checkpoint"
_CONFLICT = {85, 86}


@dataclass(frozen=True, slots=True)
class Index:
    """One index; `keys` names fields, a leading `-` meaning descending. `ttl_s` makes rows expire."""

    collection: str
    keys: tuple[str, ...]
    name: str | None = None
    unique: bool = False
    ttl_s: int | None = None

    def model(self) -> IndexModel:
        pairs = [(key.lstrip("-"), DESCENDING if key.startswith("-") else ASCENDING) for key in self.keys]
        options: dict[str, Any] = {"name": self.called}
        if self.unique:
            options["unique"] = True
        if self.ttl_s is not None:
            options["expireAfterSeconds"] = self.ttl_s
        return IndexModel(pairs, **options)

    @property
    def called(self) -> str:
        return self.name or "_".join(f"{k.lstrip('-')}_{-1 if k.startswith('-') else 1}" for k in self.keys)


def needed(*, checkpoint_retention_s: float) -> tuple[Index, ...]:
    """Every index of the built collections.

    Each one costs every write of its collection: rows written at each step have no more than they are read by.
    """
    retention = int(checkpoint_retention_s)
    return (
        Index(names.RUNS, ("project_id", "-started_at")),
        Index(names.RUNS, ("project_id", "status", "-started_at")),
        Index(names.RUNS, ("status", "-started_at")),
        Index(names.RUNS, ("-started_at",)),
        Index(names.RUN_STEPS, ("run_id", "timestamp")),
        Index(names.OUTCOMES, ("run_id", "attempt")),
        Index(names.CHECKPOINTS, ("run_id", "step_number"), unique=True),
        Index(names.CHECKPOINTS, ("created_at",), name=TTL_CHECKPOINTS, ttl_s=retention),
        Index(names.AREA_CHECKPOINTS, ("run_id", "area_id"), unique=True),
        Index(names.AREA_CHECKPOINTS, ("created_at",), name=TTL_AREA_CHECKPOINTS, ttl_s=retention),
        Index(names.DISCOVERIES, ("project_id", "-discovery_date")),
        Index(names.DISCOVERIES, ("run_id",)),
        Index(names.DISCOVERIES, ("created_at",)),
        Index(names.EXPLORATION_LOG, ("discovery_id", "step")),
        Index(names.EXPLORATION_LOG, ("project_id", "created_at")),
        Index(names.ANALYSIS_LOG, ("discovery_id", "run_at")),
        Index(names.ANALYSIS_LOG, ("project_id",)),
        Index(names.VALIDATION_LOG, ("discovery_id", "validated_at")),
        Index(names.VALIDATION_LOG, ("project_id",)),
        Index(names.RECOMMENDATION_LOG, ("discovery_id",), unique=True),
        Index(names.RECOMMENDATION_LOG, ("project_id",)),
        Index(names.INSIGHTS, ("project_id", "created_at")),
        Index(names.INSIGHTS, ("project_id", "analysis_area")),
        Index(names.INSIGHTS, ("project_id", "severity")),
        Index(names.INSIGHTS, ("discovery_id",)),
        Index(names.INSIGHTS, ("embedding_model",)),
        Index(names.RECOMMENDATIONS, ("project_id", "created_at")),
        Index(names.RECOMMENDATIONS, ("project_id", "recommendation_category")),
        Index(names.RECOMMENDATIONS, ("discovery_id",)),
        Index(names.RECOMMENDATIONS, ("embedding_model",)),
        Index(names.PROJECTS, ("created_at",)),
        Index(names.PROJECTS, ("domain",)),
        Index(names.PROJECTS, ("status",)),
        Index(names.MEMORY, ("project_id",)),
        Index(names.FEEDBACK, ("discovery_id", "target_type", "target_id"), unique=True),
        Index(names.FEEDBACK, ("project_id", "-created_at")),
        Index(names.SECRETS, ("namespace", "project_id", "key"), unique=True),
        Index(names.DOMAIN_PACKS, ("slug",), unique=True),
        Index(names.SCHEMA_CACHE, ("project_id", "warehouse_hash")),
        Index(names.SCHEMA_CACHE, ("cached_at",), name="ttl_schema_cache", ttl_s=CACHE_TTL_S),
        Index(names.INDEX_PROGRESS, ("project_id",), unique=True),
        Index(names.INDEX_RUNS, ("project_id", "datasource_id", "run_id"), unique=True),
    )


def ensure(database: Database[dict[str, Any]], *, checkpoint_retention_s: float, rebuild: bool) -> None:
    """Create what is missing. An index whose options differ is replaced with `rebuild`, else left as it is."""
    by_collection: dict[str, list[Index]] = {}
    for index in needed(checkpoint_retention_s=checkpoint_retention_s):
        by_collection.setdefault(index.collection, []).append(index)
    with translated():
        for collection, indexes in by_collection.items():
            if not _created(database[collection], indexes):
                for index in indexes:
                    _one(database[collection], index, rebuild=rebuild)


def _one(rows: Collection[dict[str, Any]], index: Index, *, rebuild: bool) -> None:
    if _created(rows, [index]) or not rebuild:
        return
    wanted = dict(index.model().document["key"])
    for name, existing in rows.index_information().items():
        if name == index.called or dict(existing["key"]) == wanted:
            rows.drop_index(name)
    rows.create_indexes([index.model()])


def _created(rows: Collection[dict[str, Any]], indexes: list[Index]) -> bool:
    """False when one of them exists with other options."""
    try:
        rows.create_indexes([index.model() for index in indexes])
    except OperationFailure as error:
        if error.code in _CONFLICT:
            return False
        raise
    return True
