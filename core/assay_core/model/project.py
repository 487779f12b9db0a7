"""A project: which warehouse, which models, which pack, and what a user overrode. `assay.yaml` has the same shape."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pydantic import Field

from assay_core.model.document import Document

_TENANT_KEY = 16
"""Characters of a tenant's key: enough to tell the tenants of one project apart."""


class WarehouseConfig(Document):
    """`provider` names an adapter's entry point; `config` is the adapter's own, without secrets.

    With `filter_field` and `filter_value` only rows of that tenant are seen. `tenant_columns` (table → column) names the
    column where it is called otherwise; a table without one is not seen at all, unless it is one of `shared_tables`.
    """

    provider: str = ""
    project_id: str | None = None
    datasets: list[str] = []
    location: str | None = None
    filter_field: str | None = None
    filter_value: str | None = None
    tenant_columns: dict[str, str] = {}
    shared_tables: list[str] = []
    config: dict[str, Any] = {}


class Datasource(WarehouseConfig):
    """One of several warehouses of a project; queries name its `id`."""

    id: str = "default"
    allow_writable_credential: str | None = None


def tenant_of(sources: Iterable[Datasource]) -> str:
    """Whose rows runs on these datasources see, as a short key; empty where none is filtered.

    What one run found reaches later runs of the same key only. The column's other names and shared tables do not change
    whose rows they are. Pure.
    """
    filters = sorted(
        (source.id, source.filter_field, source.filter_value)
        for source in sources
        if source.filter_field and source.filter_value
    )
    return hashlib.sha256(json.dumps(filters).encode()).hexdigest()[:_TENANT_KEY] if filters else ""


class LLMConfig(Document):
    provider: str = ""
    model: str = ""
    config: dict[str, Any] = {}


class LLMProviderEntry(Document):
    """One named connection. `config` holds connection fields only."""

    id: str = Field(pattern=r"^[A-Za-z0-9_-]{1,32}$")
    label: str = ""
    provider: str
    config: dict[str, Any] = {}


class LayerModel(Document):
    """One layer's choice; `config` (model-scoped settings) is merged over the connection's."""

    provider_id: str = "default"
    model: str = ""
    config: dict[str, Any] = {}


class AreaOverride(Document):
    """An analysis area as a project keeps it, copied from the pack or made by the user."""

    name: str = ""
    description: str = ""
    keywords: list[str] = []
    prompt: str = ""
    is_base: bool = False
    is_custom: bool = False
    priority: int = 100
    enabled: bool = True


class ProjectPrompts(Document):
    exploration: str | None = None
    recommendations: str | None = None
    base_context: str | None = None
    analysis_areas: dict[str, AreaOverride] = {}


class EmbeddingConfig(Document):
    provider: str = ""
    model: str = ""
    config: dict[str, Any] = {}


class Project(Document):
    """Configuration of one project."""

    id: str
    name: str = ""
    description: str = ""
    domain: str = "generic"
    category: str = "tabular"
    warehouse: WarehouseConfig | None = None
    datasources: list[Datasource] = []
    llm: LLMConfig | None = None
    blurb_llm: LLMConfig | None = None
    llm_providers: list[LLMProviderEntry] = []
    layer_models: dict[str, LayerModel] = {}
    llm_config_version: int = 0
    embedding: EmbeddingConfig | None = None
    profile: dict[str, Any] = {}
    prompts: ProjectPrompts | None = None
    language: str = "English"
    validation_enabled: bool = True
    recommendation_verdicts: list[str] = ["confirmed", "supported"]
    schema_index_status: str | None = None
    schema_index_error: str | None = None
    schema_index_updated_at: datetime | None = None
    namespace: str | None = None
    """The Kubernetes namespace whose runs may use it; None for a project of the command line."""
    status: str = "ready"
    last_run_at: datetime | None = None
    last_run_status: str | None = None
    last_run_attempt: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


class HistoricalPattern(Document):
    """`id` is `area:name`; kept active while later runs see it again."""

    id: str
    area: str
    name: str
    severity: str = "medium"
    first_seen: datetime
    last_seen: datetime
    times_seen: int = 1
    status: str = "active"


class ContextNote(Document):
    text: str
    relevance: float = 0.5
    created_at: datetime


class ProjectContext(Document):
    """Long-term memory of a project (collection `project_context`), written only on the terminal path.

    One for each tenant of the project (`tenant_of`). Kept at most: 100 successful and 50 failed queries, 200 patterns, 200 notes.
    """

    project_id: str
    tenant: str = ""
    known_schemas: list[str] = []
    successful_queries: list[str] = []
    failed_queries: list[str] = []
    historical_patterns: list[HistoricalPattern] = []
    notes: list[ContextNote] = []
    total_discoveries: int = 0
    first_discovery_at: datetime | None = None
    last_discovery_at: datetime | None = None
    consecutive_failures: int = 0
