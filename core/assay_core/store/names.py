"""Names of the collections, and how an id is kept. Everything that reads or writes MongoDB takes names
from here.
"""

from __future__ import annotations

from typing import Any

from bson import ObjectId

RUNS = "discovery_runs"
RUN_STEPS = "discovery_run_steps"
OUTCOMES = "discovery_run_outcomes"
CHECKPOINTS = "discovery_checkpoints"
AREA_CHECKPOINTS = "discovery_analysis_checkpoints"
DISCOVERIES = "discoveries"
EXPLORATION_LOG = "discovery_exploration_steps"
ANALYSIS_LOG = "discovery_analysis_steps"
VALIDATION_LOG = "discovery_validation_results"
RECOMMENDATION_LOG = "discovery_recommendation_log"
INSIGHTS = "insights"
RECOMMENDATIONS = "recommendations"
PROJECTS = "projects"
MEMORY = "project_context"
FEEDBACK = "feedback"
SECRETS = "secrets"
DOMAIN_PACKS = "domain_packs"
SCHEMA_CACHE = "project_schema_cache"
INDEX_PROGRESS = "project_schema_index_progress"
INDEX_RUNS = "project_schema_index_runs"

LOGS = (EXPLORATION_LOG, ANALYSIS_LOG, VALIDATION_LOG, RECOMMENDATION_LOG)
STANDALONE = (INSIGHTS, RECOMMENDATIONS)


def document_id(text: str) -> ObjectId | str:
    """The stored `_id` of a project or a discovery: an ObjectId when the text is one, else the text
    itself.
    """
    return ObjectId(text) if len(text) == 24 and ObjectId.is_valid(text) else text


def with_id(document: dict[str, Any], identifier: Any) -> dict[str, Any]:
    """A model's stored form with its `id` moved to `_id`."""
    return {"_id": identifier, **{key: value for key, value in document.items() if key != "id"}}
