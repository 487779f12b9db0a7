"""The action a checkpoint row stands for. Pure; which rows can be replayed says `assay_core.resume`."""

from __future__ import annotations

from assay_agent.exploration.actions import Action, Finish, Lookup, Query, Search
from assay_core.model.step import ExplorationCheckpoint, StepAction


def action_of(row: ExplorationCheckpoint) -> Action | None:
    """The model's own turn of that step, None where the row does not say (then the prefix ends before it)."""
    match row.action:
        case StepAction.QUERY_DATA:
            return Query(
                sql=row.query,
                purpose=row.query_purpose,
                rationale=row.thinking,
                datasource_id=row.datasource_id,
            )
        case StepAction.LOOKUP_SCHEMA if row.lookup_schema:
            return Lookup(
                refs=tuple(row.lookup_schema), rationale=row.thinking, datasource_id=row.datasource_id
            )
        case StepAction.SEARCH_TABLES if row.search_tables:
            return Search(text=row.search_tables, top_k=row.search_top_k, rationale=row.thinking)
        case StepAction.COMPLETE_REJECTED | StepAction.COMPLETE:
            return Finish(summary=row.completion_msg or "", rationale=row.thinking)
        case _:
            return None
