"""Which tables an index is of: a project's datasources, and the digest of what decides what they show. Pure."""

from __future__ import annotations

import hashlib
import json

from assay_core.errors import ConfigError
from assay_core.model.project import Datasource, Project


def datasources_of(project: Project) -> tuple[Datasource, ...]:
    """The project's datasources; a legacy single `warehouse` counts as one called `default`."""
    if project.datasources:
        return tuple(project.datasources)
    if project.warehouse is not None:
        return (Datasource.model_validate({"id": "default", **project.warehouse.model_dump()}),)
    raise ConfigError(f"project {project.id} has no datasource; set `datasources` (provider and config)")


def warehouse_hash(project: Project) -> str:
    """SHA-256 over what decides which tables a project sees; secrets are not part of it."""
    parts = [
        {
            "id": source.id,
            "provider": source.provider,
            "project_id": source.project_id,
            "location": source.location,
            "datasets": sorted(source.datasets),
            "filter": [
                source.filter_field,
                source.filter_value,
                *(sorted(source.tenant_columns.items()) + [[name] for name in sorted(source.shared_tables)]),
            ],
            "config": source.config,
        }
        for source in datasources_of(project)
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
