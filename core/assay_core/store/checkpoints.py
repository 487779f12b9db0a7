"""Checkpoints: one row per exploration step, the exploration summary (step number 0), one row per analysed
area.

Written by the phases through the fence, read on resume, deleted when the run completes or is cancelled; a TTL
index is the backstop. The caller cuts rows and strips what a replay does not need, and treats a failed write
as lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pymongo import ASCENDING
from pymongo.database import Database

from assay_core.model.run import RunStep
from assay_core.model.step import AnalysisAreaCheckpoint, ExplorationCheckpoint
from assay_core.store import names
from assay_core.store.fence import FencedRun
from assay_core.store.rows import Insert, Put
from assay_core.store.translate import translated

SUMMARY_STEP = 0


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
        """Step rows by number, the summary not among them."""
        with translated():
            rows = self._steps.find({"run_id": run_id, "step_number": {"$gt": SUMMARY_STEP}})
            return [ExplorationCheckpoint.read(row) for row in rows.sort("step_number", ASCENDING)]

    def summary(self, run_id: str) -> ExplorationCheckpoint | None:
        with translated():
            found = self._steps.find_one({"run_id": run_id, "step_number": SUMMARY_STEP})
        return ExplorationCheckpoint.read(found) if found else None

    def areas(self, run_id: str) -> list[AnalysisAreaCheckpoint]:
        with translated():
            rows = self._areas.find({"run_id": run_id})
            return [AnalysisAreaCheckpoint.read(row) for row in rows.sort("area_id", ASCENDING)]

    def delete_all(self, fenced: FencedRun) -> int:
        """Both kinds of rows of this run, areas first: area rows alone are not resumable."""
        return fenced.delete(names.AREA_CHECKPOINTS) + fenced.delete(names.CHECKPOINTS)


def _step_key(checkpoint: ExplorationCheckpoint) -> dict[str, Any]:
    return {"run_id": checkpoint.run_id, "step_number": checkpoint.step_number}
