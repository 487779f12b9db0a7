"""Areas that a former attempt finished, brought back with new ids. Reads checkpoints; the re-pointing is pure."""

from __future__ import annotations

from uuid import uuid4

from assay_agent.context import RunContext
from assay_agent.discovery.explore import Exploration
from assay_core.model.insight import Insight
from assay_core.model.step import AnalysisStep
from assay_core.model.verdict import InsightValidation, StructuredVerdict


def restored_areas(ctx: RunContext, exploration: Exploration) -> dict[str, AnalysisStep]:
    """Completed areas over this very exploration; none when the run explored again."""
    if not exploration.restored:
        return {}
    wanted = {area.id for area in ctx.areas}
    return {
        row.area_id: reminted(
            AnalysisStep.model_validate({name: getattr(row, name) for name in AnalysisStep.model_fields})
        )
        for row in ctx.store.checkpoints.areas(ctx.run.id)
        if row.area_id in wanted and row.exploration_attempt == exploration.attempt
    }


def reminted(step: AnalysisStep) -> AnalysisStep:
    """The area with fresh insight ids and every reference to them re-pointed; slugs stay. Pure but for the new ids."""
    fresh = {insight.id: str(uuid4()) for insight in step.insights}

    def verdict(old: StructuredVerdict | None) -> StructuredVerdict | None:
        return old.model_copy(update={"doc_id": fresh.get(old.doc_id, old.doc_id)}) if old else None

    def validation(old: InsightValidation | None) -> InsightValidation | None:
        if old is None:
            return None
        return old.model_copy(update={"verifier": verdict(old.verifier), "refuter": verdict(old.refuter)})

    def insight(old: Insight) -> Insight:
        return old.model_copy(update={"id": fresh[old.id], "validation": validation(old.validation)})

    results = [
        result.model_copy(
            update={
                "insight_id": fresh.get(result.insight_id, result.insight_id),
                "verifier": verdict(result.verifier),
                "refuter": verdict(result.refuter),
            }
        )
        for result in step.validation_results
    ]
    return step.model_copy(
        update={"insights": [insight(old) for old in step.insights], "validation_results": results}
    )
