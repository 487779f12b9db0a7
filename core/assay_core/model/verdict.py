"""Verdicts on an insight or a recommendation: what the verifier and the refuter said, and how both combine."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from assay_core.model.document import Document


class CombinedVerdict(StrEnum):
    CONFIRMED = "confirmed"
    SUPPORTED = "supported"
    REJECTED = "rejected"
    PARTIAL = "partial"
    UNVERIFIABLE = "unverifiable"
    VALIDATION_DISABLED = "validation_disabled"
    SKIPPED_BUDGET_CAP = "skipped_budget_cap"


class ClaimEvidence(Document):
    """Where a claim's verdict comes from: a row of a step, a row of a new query, or nothing."""

    kind: Literal["step_row", "warehouse_query", "none"] = "none"
    step_id: int | None = None
    query_sql: str | None = None
    row: dict[str, Any] | None = None
    additional_rows: list[dict[str, Any]] = []


class ClaimVerdict(Document):
    claim_text: str
    claim_kind: str = "headline"
    is_headline: bool = False
    status: str
    reasoning: str = ""
    evidence: ClaimEvidence = ClaimEvidence()


class StructuredVerdict(Document):
    """One agent's verdict on one document, with per-claim evidence rows."""

    doc_id: str
    doc_kind: Literal["insight", "recommendation"]
    mode: Literal["verifier", "refuter"]
    claims_considered: list[str] = []
    claim_verdicts: list[ClaimVerdict] = []
    overall: str = ""
    overall_reason: str = ""
    lookups_used: int = 0
    queries_issued: int = 0
    step_reads_used: int = 0
    llm_tokens_in: int = 0
    llm_tokens_out: int = 0
    duration_millis: int = 0
    step_read_max_offset: int | None = None
    step_read_beyond_retained: bool | None = None


class InsightValidation(Document):
    """Attached to an insight or recommendation; the legacy fields stay readable."""

    verifier: StructuredVerdict | None = None
    refuter: StructuredVerdict | None = None
    combined: CombinedVerdict | None = None
    refuter_disabled: bool = False
    validated_at: datetime | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    status: str | None = None
    original_count: int | None = None
    verified_count: int | None = None
    query: str | None = None
    reasoning: str | None = None


class ValidationResult(Document):
    """One row of `discovery_validation_results`: the legacy columns and the new verdicts side by side."""

    insight_id: str
    analysis_area: str = ""
    claimed_count: int | None = None
    verified_count: int | None = None
    status: str = ""
    reasoning: str = ""
    query: str = ""
    validated_at: datetime | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    verifier: StructuredVerdict | None = None
    refuter: StructuredVerdict | None = None
    combined: CombinedVerdict | None = None
