"""Checkpoints: one row per exploration step, the exploration summary (step number 0), one row per analysed
area.

Written by the phases through the fence, read on resume, deleted when the run completes or is cancelled; a TTL
index is the backstop. The caller cuts rows and strips what a replay does not need, and treats a failed write
as lost. A row that cannot be read (edited by hand, of a kind that is not known) is as good as none: a replay ends
before it, an area is analysed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError
from pymongo import ASCENDING
from pymongo.database import Database

from assay_core import log
from assay_core.model.document import Document
from assay_core.model.run import RunStep
from assay_core.model.step import AnalysisAreaCheckpoint, ExplorationCheckpoint
from assay_core.resume import StepMark
from assay_core.store import names
from assay_core.store.fence import FencedRun
from assay_core.store.rows import Insert, Put
from assay_core.store.translate import translated

SUMMARY_STEP = 0
_STEPS_AT_MOST = 10_001
"""Rows of a run that are read: the step limit of a run, and its summary."""
_AREAS_AT_MOST = 1_000

_logger = log.logger(__name__)
Row = TypeVar("Row", bound=Document)


class Checkpoints:
    """The collections `discovery_checkpoints` and `discovery_analysis_checkpoints`."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._steps = database[names.CHECKPOINTS]
        self._areas = database[names.AREA_CHECKPOINTS]

    def write_step(self, fenced: FencedRun, checkpoint: ExplorationCheckpoint) -> None:
        fenced.put(names.CHECKPOINTS, _step_key(checkpoint), checkpoint)

    def mark_step(
        self,
        fenced: FencedRun,
        checkpoint: ExplorationCheckpoint,
        row: RunStep,
        *,
        set: Mapping[str, Any],
        inc: Mapping[str, int],
    ) -> bool:
        """Mark the run, vouching for the step before, then put the step's checkpoint and its live row.

        False where the rows could not be written: the gap ends a later replay, and a working run goes on.
        """
        return fenced.mark_and_put(
            [Put(names.CHECKPOINTS, _step_key(checkpoint), checkpoint), Insert(names.RUN_STEPS, row)],
            set=set,
            inc=inc,
            raise_to={"last_checkpoint_step": checkpoint.step_number - 1},
        )

    def write_summary(self, fenced: FencedRun, summary: ExplorationCheckpoint) -> None:
        """`summary` has step number 0 and kind `exploration_summary`."""
        if summary.step_number != SUMMARY_STEP or summary.kind != "exploration_summary":
            raise ValueError("an exploration summary has step number 0 and its own kind")
        fenced.put(names.CHECKPOINTS, _step_key(summary), summary)

    def write_area(self, fenced: FencedRun, area: AnalysisAreaCheckpoint) -> None:
        fenced.put(names.AREA_CHECKPOINTS, {"run_id": area.run_id, "area_id": area.area_id}, area)

    def steps(self, run_id: str) -> list[ExplorationCheckpoint]:
        """Step rows by number, the summary not among them; none from the first that cannot be read."""
        found: list[ExplorationCheckpoint] = []
        with translated():
            rows = self._steps.find({"run_id": run_id, "step_number": {"$gt": SUMMARY_STEP}})
            for stored in rows.sort("step_number", ASCENDING).limit(_STEPS_AT_MOST):
                row = _readable(ExplorationCheckpoint, stored)
                if row is None:
                    break
                found.append(row)
        return found

    def marks(self, run_id: str) -> list[StepMark]:
        """The step rows without their contents, for whoever only asks whether a run can be continued."""
        wanted = {"step_number": 1, "attempt": 1, "kind": 1}
        with translated():
            rows = self._steps.find({"run_id": run_id, "step_number": {"$gt": SUMMARY_STEP}}, wanted)
            found = list(rows.sort("step_number", ASCENDING).limit(_STEPS_AT_MOST))
        return [
            StepMark(
                step_number=row["step_number"],
                attempt=row.get("attempt", 1),
                kind=str(row.get("kind", "step")),
            )
            for row in found
            if isinstance(row["step_number"], int) and isinstance(row.get("attempt", 1), int)
        ]

    def summary(self, run_id: str) -> ExplorationCheckpoint | None:
        with translated():
            found = self._steps.find_one({"run_id": run_id, "step_number": SUMMARY_STEP})
        row = _readable(ExplorationCheckpoint, found) if found else None
        return row if row is not None and row.kind == "exploration_summary" else None

    def areas(self, run_id: str) -> list[AnalysisAreaCheckpoint]:
        with translated():
            rows = self._areas.find({"run_id": run_id}).sort("area_id", ASCENDING).limit(_AREAS_AT_MOST)
            found = [_readable(AnalysisAreaCheckpoint, row) for row in rows]
        return [row for row in found if row is not None]

    def any_of(self, run_id: str) -> bool:
        """Whether a row of either kind is left."""
        with translated():
            found = (rows.find_one({"run_id": run_id}, {"_id": 1}) for rows in (self._steps, self._areas))
            return any(row is not None for row in found)

    def refresh(self, run_id: str, *, up_to: int) -> None:
        """Start the retention of the first `up_to` steps, the summary and the areas anew, by the server's clock."""
        now = {"$currentDate": {"created_at": True}}
        with translated():
            self._steps.update_many({"run_id": run_id, "step_number": {"$lte": up_to}}, now)
            self._areas.update_many({"run_id": run_id}, now)

    def purge(self, run_id: str) -> int:
        """Remove both kinds of rows of a run that was cancelled; returns how many. Saying it twice is no harm."""
        with translated():
            done = [rows.delete_many({"run_id": run_id}) for rows in (self._areas, self._steps)]
        return sum(result.deleted_count for result in done)

    def delete_all(self, fenced: FencedRun) -> int:
        """Both kinds of rows of this run, areas first: area rows alone are not resumable."""
        return fenced.delete(names.AREA_CHECKPOINTS) + fenced.delete(names.CHECKPOINTS)


def _readable(model: type[Row], stored: dict[str, Any]) -> Row | None:
    try:
        return model.read(stored)
    except ValidationError as error:
        _logger.warning("checkpoint row not readable", row=str(stored.get("_id")), fields=_fields(error))
        return None


def _fields(error: ValidationError) -> str:
    return ", ".join(".".join(map(str, item["loc"])) for item in error.errors(include_input=False)[:5])


def _step_key(checkpoint: ExplorationCheckpoint) -> dict[str, Any]:
    return {"run_id": checkpoint.run_id, "step_number": checkpoint.step_number}
