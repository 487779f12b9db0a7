"""The result of a run, and the standalone rows that search reads."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from assay_core.model.document import Document
from assay_core.model.insight import Insight, Recommendation

RunType = Literal["full", "partial", "failed"]


class Summary(Document):
    total_insights: int = 0
    total_recommendations: int = 0
    queries_executed: int = 0
    errors: list[str] = []
    limitations: list[str] | None = None
    """What the findings do not cover; absent where there is nothing to say."""


class DiscoveryResult(Document):
    """A complete result. Its logs live in split collections keyed by `discovery_id`, never on this document."""

    id: str
    project_id: str
    run_id: str | None = None
    tenant: str = ""
    """Whose rows it rests on (`tenant_of`); empty without a filter."""
    domain: str = ""
    category: str = ""
    run_type: RunType
    areas_requested: list[str] = []
    discovery_date: datetime
    total_steps: int = 0
    duration: int = 0
    """Nanoseconds."""
    insights: list[Insight] = []
    recommendations: list[Recommendation] = []
    summary: Summary = Summary()
    analyst: str = ""
    """Which model wrote it, as `provider/model`; the rule-based analyst is named `scout/…`."""
    created_at: datetime
    updated_at: datetime


class StandaloneInsight(Insight):
    """A row of `insights`: the embedded insight, denormalised for search. `id` is also the vector point's id."""

    project_id: str
    discovery_id: str
    tenant: str = ""
    domain: str = ""
    category: str = ""
    embedding_text: str = ""
    embedding_model: str = ""
    duplicate_of: str | None = None
    similarity_score: float | None = None
    created_at: datetime


class StandaloneRecommendation(Recommendation):
    """A row of `recommendations`: as for insights."""

    project_id: str
    discovery_id: str
    tenant: str = ""
    recommendation_category: str = ""
    embedding_text: str = ""
    embedding_model: str = ""
    duplicate_of: str | None = None
    similarity_score: float | None = None
    created_at: datetime
