"""Insights, recommendations, and the figures that carry their numbers."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from assay_core.model.document import Document
from assay_core.model.verdict import InsightValidation


class Severity(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 for critical … 3 for low."""
        return list(Severity).index(self)


FigureKind = Literal["cell", "sum", "count", "ratio", "diff", "ref"]
FigureUnit = Literal["count", "currency", "percent", "multiple", "plain"]


class Figure(Document):
    """A number in prose (`{{f1}}`) and how it follows from the rows of an exploration step.

    `row` filters rows (`col <op> literal AND …`, ops = != < <= > >=); `other` is the second operand of a ratio or
    difference, written `column [where <row filter>]`. `value` is what the writer claimed; `computed` is what the
    engine found, `text` how it is printed, `problem` why it could not be resolved.
    """

    id: str
    step: int | None = None
    kind: FigureKind = "cell"
    column: str | None = None
    row: str | None = None
    other: str | None = None
    value: int | float | str | None = None
    unit: FigureUnit = "plain"
    scale: Literal["thousands", "millions", "billions"] | None = None
    decimals: int | None = None
    approx: bool = False
    scope: str | None = None
    refs: list[dict[str, str]] | None = None
    computed: int | float | str | None = None
    text: str | None = None
    checked: bool = False
    problem: str | None = None


class Insight(Document):
    """A finding. `id` is a UUID minted by the attempt that writes it, `slug` the readable `{area}-{index}`."""

    id: str
    slug: str = ""
    analysis_area: str
    name: str
    description: str = ""
    description_md: str | None = None
    severity: Severity = Severity.MEDIUM
    affected_count: int = 0
    risk_score: float = Field(default=0.0, ge=0.0, le=1.0)
    confidence: float = Field(default=0.0, ge=0.0, le=1.0)
    metrics: dict[str, Any] = {}
    indicators: list[str] = []
    target_segment: str = ""
    source_steps: list[int] = []
    figures: list[Figure] = []
    figures_unresolved: list[str] = []
    unchecked_numbers: list[str] = []
    evidence_quality: str | None = None
    validation: InsightValidation | None = None
    discovered_at: datetime


class Impact(Document):
    metric: str = ""
    estimated_improvement: str = ""
    reasoning: str = ""


class Recommendation(Document):
    """An action and the insights (`related_insight_ids`, UUIDs of the same discovery) it answers. P1 is highest."""

    id: str
    category: str = ""
    title: str
    description: str = ""
    description_md: str | None = None
    priority: int = Field(default=3, ge=1, le=5)
    target_segment: str = ""
    segment_size: int = 0
    expected_impact: Impact = Impact()
    actions: list[str] = []
    related_insight_ids: list[str] = []
    confidence: float = Field(default=0.0, ge=0.0, le=1.0)
    figures: list[Figure] = []
    validation: InsightValidation | None = None
