"""A discovery run: its document, its live feed, its lifecycle, and what an attempt leaves behind."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal, NewType

from pydantic import Field

from assay_core.model.document import Document

RunId = NewType("RunId", str)


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        return self in (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


class StoredPhase(StrEnum):
    """Phase names as documents carry them."""

    INIT = "init"
    SCHEMA_DISCOVERY = "schema_discovery"
    EXPLORATION = "exploration"
    ANALYSIS = "analysis"
    VALIDATION = "validation"
    RECOMMENDATIONS = "recommendations"
    SAVING = "saving"
    EMBED_INDEX = "embed_index"
    COMPLETE = "complete"


class RunLifecycleEvent(Document):
    """One transition of a run; `llm_*` is set on the terminal event an agent writes."""

    status: RunStatus
    at: datetime
    reason: str = ""
    attempt: int = 1
    llm_provider: str | None = None
    llm_model: str | None = None


class PhaseTiming(Document):
    """How long one phase of the current attempt took."""

    phase: str
    duration_ms: int


class ModelUsage(Document):
    """Tokens and money by phase and model; `None` means the provider did not say."""

    phase: str
    model: str
    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class CredentialRecord(Document):
    """What was found of a datasource's credential when the run began. `read_only` is None where the source cannot say.

    `reasons` are why it could write; a run has them only when the datasource allows that user by name.
    """

    datasource_id: str
    user: str | None = None
    read_only: bool | None = None
    reasons: list[str] = []
    allowed_by_name: bool = False
    proof: str = ""
    checked_at: datetime


class SourceFile(Document):
    """A datasource that is a file, as it was when the run started: its size, and its time of change in nanoseconds."""

    datasource_id: str
    path: str
    bytes: int
    changed_ns: int


class RunOrigin(Document):
    """Which cluster object a run belongs to; absent on local runs."""

    cluster: str
    namespace: str
    name: str
    uid: str


class DiscoveryRun(Document):
    """Live status of one run. Written by named transitions and by the fence, never replaced whole."""

    id: str
    project_id: str
    status: RunStatus = RunStatus.PENDING
    phase: str = StoredPhase.INIT
    phase_detail: str = ""
    progress: int = Field(default=0, ge=0, le=100)
    started_at: datetime
    updated_at: datetime
    completed_at: datetime | None = None
    error: str | None = None
    total_queries: int = 0
    successful_queries: int = 0
    failed_queries: int = 0
    insights_found: int = 0
    attempt: int = 0
    owner: str | None = None
    last_resumed_at: datetime | None = None
    last_checkpoint_step: int = 0
    active_ms: int = 0
    lifecycle: list[RunLifecycleEvent] = []
    max_steps: int | None = None
    min_steps: int | None = None
    areas: list[str] = []
    effort: str | None = None
    discovery_id: str | None = None
    schema_tokens: int | None = None
    schema_table_count: int | None = None
    schema_lookup_calls: int | None = None
    schema_search_calls: int | None = None
    phase_timings: list[PhaseTiming] = []
    usage: list[ModelUsage] = []
    budget: dict[str, float] = {}
    rows_read: int = 0
    bytes_scanned: int = 0
    credentials: list[CredentialRecord] = []
    tenant: str | None = None
    """Whose rows it sees (`tenant_of`), fixed by its first attempt; None before that."""
    source_files: list[SourceFile] | None = None
    origin: RunOrigin | None = None
    suspend_requested: bool | None = None
    """The operator is about to stop the present attempt because it was asked to suspend; a resume takes it back."""


class StepType(StrEnum):
    """Row types of the live feed: the union of both specification pages."""

    QUERY = "query"
    LOOKUP_SCHEMA = "lookup_schema"
    SEARCH_TABLES = "search_tables"
    COMPLETE = "complete"
    COMPLETE_REJECTED = "complete_rejected"
    INSIGHT = "insight"
    ANALYSIS = "analysis"
    VALIDATION = "validation"
    RECOMMENDATION = "recommendation"
    ERROR = "error"


class RunStep(Document):
    """One row of the live feed (collection `discovery_run_steps`), stamped with its attempt."""

    run_id: str = ""
    attempt: int = 1
    phase: str
    step_num: int = 0
    timestamp: datetime
    type: StepType
    message: str = ""
    llm_thinking: str | None = None
    query: str | None = None
    query_result: str | None = None
    row_count: int | None = None
    query_time_ms: int | None = None
    query_fixed: bool | None = None
    insight_name: str | None = None
    insight_severity: str | None = None
    error: str | None = None


OutcomeClass = Literal[
    "Completed",
    "Agent",
    "Config",
    "Infrastructure",
    "Limit",
    "OwnershipLost",
    "Interrupted",
    "Resource",
    "Capacity",
    "Unknown",
    "Suspended",
    "Evicted",
]
"""The first seven are an agent's word; the rest, and any but Completed, may be the operator's verdict on its attempt."""


class RunOutcome(Document):
    """What one attempt left behind: the record for (attempt, owner) and the termination message, at most 2 KiB.

    The operator's verdict is such a record too, with an owner of its own; its exit code is None where none was seen.
    """

    run_id: str
    attempt: int
    owner: str
    exit_code: int | None = None
    class_: OutcomeClass = Field(alias="class")
    reason: str
    message: str = ""
    resumable: bool = False
    discovery_id: str | None = None
