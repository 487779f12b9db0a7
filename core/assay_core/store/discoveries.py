"""Results: the discovery document, its split logs, and the standalone rows that search reads.

Written by `save` and `index` through the fence, logs before the document, so that a discovery that can be
seen is complete. The id of a discovery is an ObjectId in `_id`, its hex text everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bson import ObjectId
from pymongo import ASCENDING, DESCENDING
from pymongo.database import Database

from assay_core.encoding import json_value
from assay_core.model.discovery import DiscoveryResult, StandaloneInsight, StandaloneRecommendation
from assay_core.model.document import Document
from assay_core.model.step import AnalysisStep, ExplorationStep, RecommendationStep
from assay_core.model.verdict import ValidationResult
from assay_core.store import names
from assay_core.store.fence import FencedRun
from assay_core.store.rows import Put, of_tenant, storable
from assay_core.store.translate import translated


class Logs(NamedTuple):
    """The four split logs of one discovery, each in the order it was written."""

    exploration: list[ExplorationStep]
    analysis: list[AnalysisStep]
    validation: list[ValidationResult]
    recommendation: RecommendationStep | None


class Discoveries:
    """The collection `discoveries`, its logs, `insights` and `recommendations`."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._database = database
        self._rows = database[names.DISCOVERIES]

    @staticmethod
    def new_id() -> str:
        return str(ObjectId())

    # ------------------------------------------------------------------------------------------------ writing

    def save(
        self,
        fenced: FencedRun,
        result: DiscoveryResult,
        *,
        exploration: Sequence[ExplorationStep],
        analysis: Sequence[AnalysisStep],
        validation: Sequence[ValidationResult],
        recommendation: RecommendationStep | None,
    ) -> None:
        """Write logs, then the document. Saying it twice changes nothing."""
        fenced.put_many(
            [
                *self._log_rows(names.EXPLORATION_LOG, result, exploration),
                *self._log_rows(names.ANALYSIS_LOG, result, analysis),
                *self._log_rows(names.VALIDATION_LOG, result, validation),
                *self._log_rows(names.RECOMMENDATION_LOG, result, [recommendation] if recommendation else []),
            ]
        )
        document = {key: value for key, value in result.stored().items() if key != "id"}
        fenced.put(names.DISCOVERIES, {"_id": names.document_id(result.id)}, document)

    @staticmethod
    def _log_rows(collection: str, result: DiscoveryResult, rows: Sequence[Document]) -> list[Put]:
        stamp = {
            "discovery_id": result.id,
            "project_id": result.project_id,
            "created_at": result.created_at,
        }
        return [
            Put(collection, {"_id": f"{result.id}:{number:05d}"}, row, stamp)
            for number, row in enumerate(rows, 1)
        ]

    def save_standalone(
        self,
        fenced: FencedRun,
        insights: Sequence[StandaloneInsight],
        recommendations: Sequence[StandaloneRecommendation],
    ) -> None:
        """The rows that search reads; their `_id` is the finding's UUID and the vector point's id."""
        rows = [Put(names.INSIGHTS, {"_id": row.id}, _without_id(row)) for row in insights]
        rows += [Put(names.RECOMMENDATIONS, {"_id": row.id}, _without_id(row)) for row in recommendations]
        fenced.put_many(rows)

    def mark_duplicate(
        self, fenced: FencedRun, identifier: str, *, duplicate_of: str, similarity_score: float
    ) -> None:
        """Say of a standalone row (either kind) which earlier one it repeats."""
        for collection in names.STANDALONE:
            fenced.amend(
                collection, identifier, {"duplicate_of": duplicate_of, "similarity_score": similarity_score}
            )

    def retire(self, fenced: FencedRun, discovery_id: str) -> None:
        """Remove a result that an earlier attempt of the same run left behind: rows first, the document
        last.
        """
        for collection in (*names.STANDALONE, *names.LOGS):
            fenced.delete(collection, {"discovery_id": discovery_id})
        fenced.delete(names.DISCOVERIES, {"_id": names.document_id(discovery_id)})

    # ------------------------------------------------------------------------------------------------ reading

    def get(self, discovery_id: str) -> DiscoveryResult | None:
        return _result(self._one({"_id": names.document_id(discovery_id)}))

    def latest(self, project_id: str) -> DiscoveryResult | None:
        found = self.recent(project_id, 1)
        return found[0] if found else None

    def recent(
        self,
        project_id: str,
        limit: int,
        excluding_run: str | None = None,
        *,
        tenant: str | None = None,
    ) -> list[DiscoveryResult]:
        """Latest first; `excluding_run` leaves out what that run itself saved before, `tenant` those of any other."""
        condition: dict[str, Any] = {"project_id": project_id, **of_tenant(tenant)}
        if excluding_run is not None:
            condition["run_id"] = {"$ne": excluding_run}
        with translated():
            rows = (
                self._rows.find(condition)
                .sort([("discovery_date", DESCENDING), ("_id", DESCENDING)])
                .limit(limit)
            )
            return [DiscoveryResult.read(row) for row in rows]

    def of_run(self, run_id: str) -> list[DiscoveryResult]:
        """Every result of one run, oldest first: more than one only until a resumed run retires the
        earlier.
        """
        with translated():
            rows = self._rows.find({"run_id": run_id}).sort("_id", ASCENDING).limit(100)
            return [DiscoveryResult.read(row) for row in rows]

    def ids_of_run(
        self, run_id: str, *, before_attempt: int | None = None, after_attempt: int | None = None
    ) -> list[str]:
        """Ids of the results that attempts of a run before or after one have saved, oldest first."""
        bounds = {"$lt": before_attempt, "$gt": after_attempt}
        wanted = {sign: bound for sign, bound in bounds.items() if bound is not None}
        condition: dict[str, Any] = {"run_id": run_id, **({"attempt": wanted} if wanted else {})}
        with translated():
            rows = self._rows.find(condition, {"_id": 1}).sort("_id", ASCENDING).limit(100)
            return [str(row["_id"]) for row in rows]

    def steps_taken(self, discovery_ids: Sequence[str]) -> dict[str, int]:
        """Steps of these results by id; one query for as many as there are."""
        wanted = [names.document_id(identifier) for identifier in discovery_ids]
        with translated():
            rows = self._rows.find({"_id": {"$in": wanted}}, {"total_steps": 1})
            return {str(row["_id"]): int(row.get("total_steps", 0)) for row in rows}

    def logs(self, discovery_id: str) -> Logs:
        recommendation = self._log(names.RECOMMENDATION_LOG, discovery_id)
        return Logs(
            [ExplorationStep.read(row) for row in self._log(names.EXPLORATION_LOG, discovery_id)],
            [AnalysisStep.read(row) for row in self._log(names.ANALYSIS_LOG, discovery_id)],
            [ValidationResult.read(row) for row in self._log(names.VALIDATION_LOG, discovery_id)],
            RecommendationStep.read(recommendation[0]) if recommendation else None,
        )

    def insights(self, discovery_id: str) -> list[StandaloneInsight]:
        """Standalone rows of one discovery."""
        with translated():
            rows = self._database[names.INSIGHTS].find({"discovery_id": discovery_id}).sort("_id", ASCENDING)
            return [StandaloneInsight.read(row) for row in rows]

    def recommendations(self, discovery_id: str) -> list[StandaloneRecommendation]:
        with translated():
            rows = (
                self._database[names.RECOMMENDATIONS]
                .find({"discovery_id": discovery_id})
                .sort("_id", ASCENDING)
            )
            return [StandaloneRecommendation.read(row) for row in rows]

    def raw(self, discovery_id: str) -> dict[str, Any] | None:
        """The stored document, fit for `discovery.json`: hex id as `id`, times as ISO-8601 with Z."""
        found = self._one({"_id": names.document_id(discovery_id)})
        if found is None:
            return None
        document: dict[str, Any] = json_value({"id": found.pop("_id"), **found})
        return document

    def _one(self, condition: Mapping[str, Any]) -> dict[str, Any] | None:
        with translated():
            return self._rows.find_one(condition)

    def _log(self, collection: str, discovery_id: str) -> list[dict[str, Any]]:
        with translated():
            return list(
                self._database[collection].find({"discovery_id": discovery_id}).sort("_id", ASCENDING)
            )


def _result(found: dict[str, Any] | None) -> DiscoveryResult | None:
    return DiscoveryResult.read(found) if found else None


def _without_id(row: Document) -> dict[str, Any]:
    fields: dict[str, Any] = storable(row)
    fields.pop("id", None)
    return fields
