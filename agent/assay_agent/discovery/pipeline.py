"""The discovery run as one function: the table of contents of everything an attempt does."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay_agent.context import Deadline, RunContext, StopSignal
from assay_agent.discovery.analyze import Analysis, AnalysisSoFar, analyze
from assay_agent.discovery.explore import Exploration, explore
from assay_agent.discovery.index import index
from assay_agent.discovery.phase import phase
from assay_agent.discovery.recall import recall
from assay_agent.discovery.recommend import recommend
from assay_agent.discovery.save import remember, retire, save, saved_by_newer
from assay_agent.discovery.schema import load_schema
from assay_core import log
from assay_core.errors import AllAreasFailed, AssayError, BudgetExhausted, LossReason, StopRequested
from assay_core.model.discovery import DiscoveryResult
from assay_core.model.step import RecommendationStep
from assay_core.vectors import names

_logger = log.logger(__name__)


@dataclass(slots=True)
class SoFar:
    """What is done, for the case that a run ends before its end."""

    exploration: Exploration | None = None
    analysis: AnalysisSoFar | None = None
    advice: RecommendationStep | None = None
    saved: DiscoveryResult | None = None


def run_discovery(ctx: RunContext, so_far: SoFar) -> None:
    """Run every phase in order; raises what ended the run early, with what is done in `so_far`."""
    with phase(ctx, "context"):
        previous = recall(ctx)
    with phase(ctx, "schema"):
        schema = load_schema(ctx)
    with phase(ctx, "explore"):
        so_far.exploration = exploration = explore(ctx, previous, schema)
    with phase(ctx, "analyze"):
        so_far.analysis = AnalysisSoFar()
        analysis = analyze(ctx, previous, exploration, so_far.analysis)
    with phase(ctx, "recommend"):
        so_far.advice = advice = recommend(ctx, previous, analysis)
    with phase(ctx, "save"):
        so_far.saved = discovery = save(ctx, exploration, analysis, advice)
    with phase(ctx, "remember"):
        remember(ctx, discovery, exploration)
    with phase(ctx, "index"):
        index(ctx, discovery)
        tidy(ctx)


def tidy(ctx: RunContext) -> None:
    """Drop the run's own vectors; a failure leaves an orphan for the sweep, not a failed run."""
    try:
        ctx.vectors.drop(names.run(ctx.run.id))
    except AssayError as error:
        _logger.warning("run vectors not dropped", error=str(error))


def save_partial(ctx: RunContext, so_far: SoFar) -> None:
    """Save what an ended run had found, unless it is saved or had not come to any analysis.

    Has its own time budget: the run's deadline may be what ended it.
    """
    if so_far.saved or so_far.exploration is None or so_far.analysis is None or not so_far.analysis.steps:
        return
    late = replace(ctx, stop=StopSignal(), deadline=Deadline(limit_s=ctx.policy.run.save_duration_s))
    analysis: Analysis = so_far.analysis.in_order(ctx.areas)
    with phase(late, "save", detail="Saving a partial result"):
        so_far.saved = save(late, so_far.exploration, analysis, so_far.advice, ended_early=True)


def give_up(ctx: RunContext, so_far: SoFar, reason: LossReason) -> None:
    """What an attempt that has lost its run still removes: its own result where nobody will, its vectors where nobody may.

    A cancelled run keeps nothing of it. A superseded one leaves its result to the newer attempt, which retires it after
    saving its own; if that is saved already, nobody else will. A result of a run that was only marked failed stays.
    """
    if reason is LossReason.CANCELLED:
        tidy(ctx)
        ctx.store.checkpoints.delete_all(ctx.fenced)  # a step that came after the cancel's own purge
    newer = reason is LossReason.SUPERSEDED and saved_by_newer(ctx)
    if so_far.saved is not None and (newer or reason is LossReason.CANCELLED):
        retire(ctx, so_far.saved.id)


ENDED_EARLY = (BudgetExhausted, AllAreasFailed, StopRequested)
"""Ends of a run after which what is done is still saved."""
