"""One self-contained HTML page per run: findings, their evidence, and how they were found. Pure."""

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


def render_report(findings: Findings) -> str:
    """The page as HTML text."""
    return f"<!doctype html><title>{findings.discovery.id}</title>"
