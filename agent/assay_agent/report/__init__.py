"""One self-contained HTML page per run: findings, their evidence, and how they were found. Pure: values in, text out."""

from __future__ import annotations

from assay_agent.report.findings import Findings
from assay_agent.report.page import render_report

__all__ = ["Findings", "render_report"]
