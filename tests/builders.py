"""Builders of documents for tests: each gives a valid one, and takes by name what a test cares about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from assay_core.model.discovery import DiscoveryResult, StandaloneInsight, StandaloneRecommendation
from assay_core.model.insight import Insight, Recommendation
from assay_core.model.project import Project
from assay_core.model.run import DiscoveryRun, RunStep, StepType
from assay_core.model.step import (
    AnalysisAreaCheckpoint,
    AnalysisStep,
    ExplorationCheckpoint,
    ExplorationStep,
    StepAction,
)
from assay_core.model.table import CachedTable, ColumnSchema, TableSchema
from assay_core.store.client import Store
from assay_core.store.fence import Fence, FencedRun

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
ROW: dict[str, Any] = {"carrier": "AA", "origin": "JFK", "flights": 12_345, "delay": 12.5}


def an_id() -> str:
    return str(uuid4())


def a_run(**fields: Any) -> DiscoveryRun:
    given: dict[str, Any] = {
        "id": an_id(), "project_id": "project", "attempt": 1, "started_at": NOON, "updated_at": NOON,
    }  # fmt: skip
    return DiscoveryRun(**given | fields)


def a_fenced_run(
    store: Store, *, run: DiscoveryRun | None = None, owner: str = "owner-1", retry_s: float = 5.0
) -> FencedRun:
    """A run that exists and is claimed by `owner`."""
    made = run or a_run()
    store.runs.create(made)
    store.runs.claim(made.id, made.attempt, owner)
    return FencedRun(store, Fence(made.id, made.attempt, owner), retry_s=retry_s)


def a_successor(store: Store, fenced: FencedRun, *, owner: str = "owner-2") -> FencedRun:
    """The next attempt of a run, after its present one was found dead."""
    fence = fenced.fence
    store.runs.fail_unowned(fence.run_id, attempt=fence.attempt, owner=fence.owner, reason="gone")
    store.runs.resume(fence.run_id, attempt=fence.attempt)
    store.runs.claim(fence.run_id, fence.attempt + 1, owner)
    return FencedRun(store, Fence(fence.run_id, fence.attempt + 1, owner), retry_s=5.0)


def a_step(step: int = 1, **fields: Any) -> ExplorationStep:
    given: dict[str, Any] = {
        "step": step, "timestamp": NOON, "action": StepAction.QUERY_DATA, "thinking": "look",
        "query_purpose": "delays", "query": "SELECT 1", "query_result": [ROW], "row_count": 1,
    }  # fmt: skip
    return ExplorationStep(**given | fields)


def a_checkpoint(run_id: str, step: int = 1, **fields: Any) -> ExplorationCheckpoint:
    given: dict[str, Any] = a_step(step).stored() | {
        "run_id": run_id, "project_id": "project", "step_number": step, "attempt": 1, "created_at": NOON,
    }  # fmt: skip
    return ExplorationCheckpoint(**given | fields)


def an_area(run_id: str, area_id: str = "delays", **fields: Any) -> AnalysisAreaCheckpoint:
    given: dict[str, Any] = {
        "area_id": area_id, "area_name": area_id.title(), "run_at": NOON, "run_id": run_id, "created_at": NOON,
        "project_id": "project", "attempt": 1, "exploration_attempt": 1, "insights": [an_insight()],
    }  # fmt: skip
    return AnalysisAreaCheckpoint(**given | fields)


def an_analysis(area_id: str = "delays", **fields: Any) -> AnalysisStep:
    given: dict[str, Any] = {"area_id": area_id, "area_name": area_id.title(), "run_at": NOON}
    return AnalysisStep(**given | fields)


def a_feed_row(step: int = 1, **fields: Any) -> RunStep:
    given: dict[str, Any] = {
        "phase": "exploration", "step_num": step, "timestamp": NOON, "type": StepType.QUERY, "message": "look",
    }  # fmt: skip
    return RunStep(**given | fields)


def an_insight(**fields: Any) -> Insight:
    given: dict[str, Any] = {
        "id": an_id(), "analysis_area": "delays", "name": "JFK is late", "discovered_at": NOON,
        "source_steps": [1], "metrics": {"delay": 12.5},
    }  # fmt: skip
    return Insight(**given | fields)


def a_recommendation(**fields: Any) -> Recommendation:
    return Recommendation(**{"id": an_id(), "title": "Add slack"} | fields)


def a_standalone_insight(discovery_id: str, **fields: Any) -> StandaloneInsight:
    given: dict[str, Any] = an_insight().stored() | {
        "project_id": "project", "discovery_id": discovery_id, "created_at": NOON,
    }  # fmt: skip
    return StandaloneInsight(**given | fields)


def a_standalone_recommendation(discovery_id: str, **fields: Any) -> StandaloneRecommendation:
    given: dict[str, Any] = a_recommendation().stored() | {
        "project_id": "project", "discovery_id": discovery_id, "created_at": NOON,
    }  # fmt: skip
    return StandaloneRecommendation(**given | fields)


def a_discovery(**fields: Any) -> DiscoveryResult:
    given: dict[str, Any] = {
        "id": uuid4().hex[:24], "project_id": "project", "run_type": "full", "discovery_date": NOON,
        "created_at": NOON, "updated_at": NOON, "insights": [an_insight()],
    }  # fmt: skip
    return DiscoveryResult(**given | fields)


def a_project(**fields: Any) -> Project:
    return Project(**{"id": "project", "name": "Flights"} | fields)


def a_cached_table(ref: str = "main.flights", **fields: Any) -> CachedTable:
    table = TableSchema(
        ref=ref, columns=[ColumnSchema(name="delay", type="DOUBLE")], row_count=3, sample=[ROW]
    )
    given: dict[str, Any] = {
        "project_id": "project",
        "warehouse_hash": "h1",
        "table": table,
        "cached_at": NOON,
    }
    return CachedTable(**given | fields)
