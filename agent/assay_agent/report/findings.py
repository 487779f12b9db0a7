"""What a report is made of."""

from __future__ import annotations

from dataclasses import dataclass

from assay_core.model.discovery import DiscoveryResult
from assay_core.model.project import Project
from assay_core.model.run import DiscoveryRun
from assay_core.model.step import AnalysisStep, ExplorationStep, RecommendationStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything a report shows; `run` and `project` are None where they have been deleted."""

    discovery: DiscoveryResult
    exploration: tuple[ExplorationStep, ...]
    analysis: tuple[AnalysisStep, ...]
    recommendation: RecommendationStep | None
    run: DiscoveryRun | None
    project: Project | None
