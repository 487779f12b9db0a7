"""Steps: of exploration, of analysis, of recommending; the digest of a result; and the checkpoints of both kinds."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from assay_core.model.document import Document
from assay_core.model.insight import Insight, Recommendation
from assay_core.model.verdict import ValidationResult


class StepAction(StrEnum):
    QUERY_DATA = "query_data"
    LOOKUP_SCHEMA = "lookup_schema"
    SEARCH_TABLES = "search_tables"
    GET_CORRELATIONS = "get_correlations"
    COMPLETE = "complete"
    COMPLETE_REJECTED = "complete_rejected"


class FixAttempt(Document):
    """One call of the self-healing loop, applied or not (`fixer_error` says why not)."""

    step: int
    attempt: int
    prompt_in: str = ""
    response_out: str = ""
    sql_before: str = ""
    sql_after: str = ""
    error_in: str = ""
    fixer_error: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    duration_ms: int = 0
    timestamp: datetime


class CaveatKind(StrEnum):
    WITHHELD = "withheld"
    SAMPLED = "sampled"
    TRUNCATED = "truncated"
    RESTRICTED = "restricted"
    CONVERTED = "converted"


class Caveat(Document):
    """Something a reader of the rows must know: what was cut, converted or held back."""

    kind: CaveatKind
    text: str


class ResultColumn(Document):
    """A result column: its name as rows carry it (de-duplicated) and the warehouse's type as a label."""

    name: str
    type: str = "unknown"


class TopValue(Document):
    value: Any = None
    count: int


class ColumnDigest(Document):
    """Statistics of one column of a result, computed over the rows kept (at most the row cap)."""

    name: str
    kind: Literal["number", "string", "boolean", "timestamp", "null", "mixed"]
    null_count: int = 0
    distinct: int | None = None
    min: Any = None
    p25: float | None = None
    median: float | None = None
    p75: float | None = None
    max: Any = None
    top: list[TopValue] = []


class Digest(Document):
    """A result made small: all rows when there are at most 20, else statistics with head and tail rows.

    Rows are dicts keyed by column name, JSON-safe. `row_count` is what the query returned up to the row cap.
    """

    row_count: int
    columns: list[ColumnDigest] = []
    rows: list[dict[str, Any]] = []
    head: list[dict[str, Any]] = []
    tail: list[dict[str, Any]] = []
    truncated: bool = False


class ExplorationStep(Document):
    """One step of exploration: what was asked, what ran, what came back. `query` is the model's proposal."""

    step: int
    timestamp: datetime
    action: StepAction
    thinking: str = ""
    query_purpose: str = ""
    query: str = ""
    query_executed: str | None = None
    query_result: list[dict[str, Any]] = []
    columns: list[ResultColumn] = []
    digest: Digest | None = None
    caveats: list[Caveat] = []
    row_count: int = 0
    execution_time_ms: int = 0
    error: str | None = None
    fix_attempts: int = 0
    fixed: bool = False
    fix_history: list[FixAttempt] = []
    tokens_in: int | None = None
    tokens_out: int | None = None
    datasource_id: str | None = None


class AnalysisStep(Document):
    """The whole dialogue of one analysis area and what came of it."""

    area_id: str
    area_name: str
    run_at: datetime
    prompt: str = ""
    response: str = ""
    relevant_queries: int = 0
    picked_steps: list[int] = []
    dropped_steps: list[int] = []
    tokens_in: int | None = None
    tokens_out: int | None = None
    duration_ms: int = 0
    insight_count: int = 0
    insights: list[Insight] = []
    insights_dropped_parse: int = 0
    insights_repeated: int = 0
    parse_retries: int = 0
    validation_results: list[ValidationResult] = []
    error: str | None = None


class RecommendationStep(Document):
    """The whole dialogue of the recommendation phase; one row per discovery."""

    run_at: datetime
    prompt: str = ""
    insight_count: int = 0
    response: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    duration_ms: int = 0
    recommendations: list[Recommendation] = []
    status: str = ""
    recommendations_dropped: int = 0
    recommendations_dropped_parse: int = 0
    recommendations_dropped_missing_ids: int = 0
    recommendations_dropped_unknown_id: int = 0
    recommendations_dropped_unresolved_figures: int = 0
    recommendations_resolved_slugs: int = 0
    recommendation_parse_retries: int = 0
    error: str | None = None


class ExplorationCheckpoint(ExplorationStep):
    """A row of `discovery_checkpoints`: a step reduced for replay, or (`step_number` 0) the exploration summary."""

    step: int = 0
    run_id: str
    project_id: str
    step_number: int
    attempt: int = 1
    kind: Literal["step", "exploration_summary"] = "step"
    created_at: datetime
    lookup_schema: list[str] | None = None
    search_tables: str | None = None
    search_top_k: int | None = None
    correlation_a: str | None = None
    correlation_b: str | None = None
    reject_reason: str | None = None
    completed: bool | None = None
    completion_msg: str | None = None
    total_steps: int | None = None
    exploration_duration_ms: int | None = None


class AnalysisAreaCheckpoint(AnalysisStep):
    """A row of `discovery_analysis_checkpoints`: one completed area, whole."""

    run_id: str
    project_id: str
    attempt: int
    exploration_attempt: int
    insights_validated: int = 0
    created_at: datetime
