"""A project's long-term memory: what its runs learned, merged with caps.

One document for each tenant of a project. Written once per run on the terminal path, through the fence and by
compare-and-swap, so that two runs of one project both count; a run that says the same twice (a resume after the write)
counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pymongo.database import Database

from assay_core import clock
from assay_core.errors import TransientError
from assay_core.model.project import ContextNote, HistoricalPattern, ProjectContext
from assay_core.store import names
from assay_core.store.fence import FencedRun
from assay_core.store.rows import storable
from assay_core.store.translate import DuplicateKey, translated

SUCCESSFUL_KEPT, FAILED_KEPT, PATTERNS_KEPT, NOTES_KEPT = 100, 50, 200, 200
SCHEMAS_KEPT = 2_000
_RUNS_REMEMBERED = 50
_TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What one run adds. `patterns` are those it saw, with `first_seen` and `last_seen` of this run."""

    at: datetime
    known_schemas: Sequence[str] = ()
    successful_queries: Sequence[str] = ()
    failed_queries: Sequence[str] = ()
    patterns: Sequence[HistoricalPattern] = ()
    notes: Sequence[ContextNote] = ()
    succeeded: bool = True


def merged(known: ProjectContext, lesson: Lesson) -> ProjectContext:
    """`known` after `lesson`: newest kept within the caps, patterns seen before become recurring. Pure."""
    return known.model_copy(
        update={
            "known_schemas": _newest([*known.known_schemas, *lesson.known_schemas], SCHEMAS_KEPT),
            "successful_queries": _newest(
                [*known.successful_queries, *lesson.successful_queries], SUCCESSFUL_KEPT
            ),
            "failed_queries": _newest([*known.failed_queries, *lesson.failed_queries], FAILED_KEPT),
            "historical_patterns": _patterns(known.historical_patterns, lesson.patterns),
            "notes": _notes(known.notes, lesson.notes),
            "total_discoveries": known.total_discoveries + (1 if lesson.succeeded else 0),
            "first_discovery_at": known.first_discovery_at or (lesson.at if lesson.succeeded else None),
            "last_discovery_at": lesson.at if lesson.succeeded else known.last_discovery_at,
            "consecutive_failures": 0 if lesson.succeeded else known.consecutive_failures + 1,
        }
    )


def _newest(texts: Iterable[str], limit: int) -> list[str]:
    """Without repetition, the last mention counting, the newest `limit`."""
    return list(dict.fromkeys(reversed(list(texts))))[:limit][::-1]


def _patterns(
    known: Sequence[HistoricalPattern], seen: Sequence[HistoricalPattern]
) -> list[HistoricalPattern]:
    by_id = {pattern.id: pattern for pattern in known}
    for pattern in {item.id: item for item in seen}.values():
        before = by_id.pop(pattern.id, None)
        by_id[pattern.id] = pattern if before is None else _seen_again(before, pattern)
    return sorted(by_id.values(), key=lambda item: (item.last_seen, item.id))[-PATTERNS_KEPT:]


def _seen_again(before: HistoricalPattern, now: HistoricalPattern) -> HistoricalPattern:
    again = {
        "first_seen": before.first_seen,
        "times_seen": before.times_seen + 1,
        "status": "recurring",
    }
    return now.model_copy(update=again)


def _notes(known: Sequence[ContextNote], new: Sequence[ContextNote]) -> list[ContextNote]:
    by_text = {note.text: note for note in [*known, *new]}
    kept = sorted(by_text.values(), key=lambda note: (note.relevance, note.created_at, note.text))[
        -NOTES_KEPT:
    ]
    return sorted(kept, key=lambda note: (note.created_at, note.text))


class Memory:
    """The collection `project_context`."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._rows = database[names.MEMORY]

    def get(self, project_id: str, tenant: str = "") -> ProjectContext:
        """Empty when nothing is remembered of this tenant."""
        return _context(self._one(_key(project_id, tenant)), project_id, tenant)

    def remember(
        self, fenced: FencedRun, project_id: str, lesson: Lesson, tenant: str = ""
    ) -> ProjectContext:
        """Merge one run's lesson; asked twice by the same run, the second time changes nothing."""
        fenced.is_mine()
        run_id, key = fenced.fence.run_id, _key(project_id, tenant)
        for _ in range(_TRIES):
            found = self._one(key)
            known = _context(found, project_id, tenant)
            runs = list((found or {}).get("remembered_runs", []))
            if run_id in runs:
                return known
            grown = merged(known, lesson)
            row = {
                **storable(grown),
                "remembered_runs": [*runs, run_id][-_RUNS_REMEMBERED:],
                "version": (found or {}).get("version", 0) + 1,
                "updated_at": clock.now(),
            }
            if self._swap(key, (found or {}).get("version"), row):
                return grown
        raise TransientError(
            "the project's memory is being written by many runs at once", dependency="mongodb"
        )

    def _one(self, key: str) -> dict[str, Any] | None:
        with translated():
            return self._rows.find_one({"_id": key})

    def _swap(self, key: str, version: int | None, row: dict[str, Any]) -> bool:
        try:
            with translated():
                done = self._rows.replace_one({"_id": key, "version": version}, row, upsert=version is None)
        except DuplicateKey:
            return False
        return done.matched_count == 1 or done.upserted_id is not None


def _key(project_id: str, tenant: str) -> str:
    return f"{project_id}:{tenant}" if tenant else project_id


def _context(found: dict[str, Any] | None, project_id: str, tenant: str) -> ProjectContext:
    return ProjectContext.read(found) if found else ProjectContext(project_id=project_id, tenant=tenant)
