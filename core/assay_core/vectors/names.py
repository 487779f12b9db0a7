"""Names of vector collections, ids of points, and the payload fields both programs rely on. Pure.

Ids are UUIDs, because Qdrant takes nothing else that is text, and derive from what a point stands for, so
that writing it twice is writing it once.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final
from uuid import UUID

RUN_PREFIX: Final = "assay_run_"
SCHEMA_PREFIX: Final = "assay_schema_"

# Payload of a finding.
TYPE: Final = "type"
PROJECT_ID: Final = "project_id"
TENANT: Final = "tenant"
DISCOVERY_ID: Final = "discovery_id"
EMBEDDING_MODEL: Final = "embedding_model"
CONFIDENCE: Final = "confidence"
CREATED_AT: Final = "created_at"
SEVERITY: Final = "severity"
ANALYSIS_AREA: Final = "analysis_area"
INSIGHT: Final = "insight"
RECOMMENDATION: Final = "recommendation"

# Payload of an exploration step.
STEP: Final = "step"
PURPOSE: Final = "purpose"
ROW_COUNT: Final = "row_count"
HAS_ERROR: Final = "has_error"
DATASOURCE: Final = "datasource"

# Payload of a table.
TABLE: Final = "table"
DATASET: Final = "dataset"
DESCRIPTION: Final = "description"
KEYWORDS: Final = "keywords"
COLUMN_COUNT: Final = "column_count"
BLURB_MODEL: Final = "blurb_model"
KIND: Final = "kind"


def findings(dims: int) -> str:
    """Insights and recommendations of one embedding size; permanent."""
    return f"assay_{dims}"


def schema(project_id: str) -> str:
    """Tables of a project; dropped and rebuilt by indexing."""
    return SCHEMA_PREFIX + _safe(project_id)


def run(run_id: str) -> str:
    """Exploration steps of a run; dropped at its end."""
    return RUN_PREFIX + _safe(run_id)


def run_of(collection: str) -> str | None:
    """The run a collection belongs to, as far as its name tells; None for any other collection."""
    return collection.removeprefix(RUN_PREFIX) if collection.startswith(RUN_PREFIX) else None


def run_point_id(run_id: str, step: int) -> str:
    return _point_id(run_id, str(step))


def table_point_id(project_id: str, datasource: str, ref: str) -> str:
    return _point_id(project_id, datasource, ref)


def _point_id(*parts: str) -> str:
    return str(UUID(bytes=hashlib.sha256("::".join(parts).encode()).digest()[:16]))


def _safe(text: str) -> str:
    """Letters, digits, `-` and `_`; what had to change is told apart by a digest."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", text)[:150]
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
