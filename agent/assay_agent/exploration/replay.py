"""Which checkpoint rows can be replayed, and the action a row stands for. Pure.

The replayable prefix is rows 1..n without a gap in which attempts never fall: what follows a hole answers a step that no longer
exists, and an older attempt's row after a newer one belongs to another exploration.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay_agent.exploration.actions import Action, Finish, Lookup, Query, Search
from assay_core.model.step import ExplorationCheckpoint, StepAction


def replayable(rows: Sequence[ExplorationCheckpoint]) -> tuple[ExplorationCheckpoint, ...]:
    """The longest prefix that a resumed run may stand on."""
    prefix: list[ExplorationCheckpoint] = []
    for row in sorted(rows, key=lambda row: row.step_number):
        follows = row.step_number == len(prefix) + 1
        if row.kind != "step" or not follows or (prefix and row.attempt < prefix[-1].attempt):
            break
        prefix.append(row)
    return tuple(prefix)


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
