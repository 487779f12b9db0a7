"""Phase 1: what earlier discoveries and people's feedback say, as text for every prompt. Reads only.

Only of runs that saw the same tenant's rows: what was found for one never reaches the prompts of another.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from assay_agent.context import RunContext
from assay_agent.policy import RecallPolicy
from assay_core.model.discovery import DiscoveryResult
from assay_core.model.feedback import Feedback
from assay_core.model.project import ContextNote

_LINE_CHARS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """The base context of this run, rendered, and the text of earlier findings within it."""

    text: str
    discoveries: int


def recall(ctx: RunContext) -> Previous:
    """Read the last discoveries (never one of this run's own), feedback and notes."""
    policy = ctx.policy.recall
    earlier = ctx.store.discoveries.recent(
        ctx.project.id, policy.discoveries, excluding_run=ctx.run.id, tenant=ctx.tenant
    )
    feedback = ctx.store.feedback.of_project(ctx.project.id, policy.feedback, tenant=ctx.tenant)
    notes = ctx.store.memory.get(ctx.project.id, ctx.tenant).notes
    return Previous(text=render_previous(earlier, feedback, notes, policy=policy), discoveries=len(earlier))


def render_previous(
    earlier: Sequence[DiscoveryResult],
    feedback: Sequence[Feedback],
    notes: Sequence[ContextNote],
    *,
    policy: RecallPolicy,
) -> str:
    """The text for `{{PREVIOUS_CONTEXT}}`; empty when there is nothing to say. Newest first. Pure."""
    if not earlier and not feedback:
        return ""
    titles = {insight.id: insight.name for result in earlier for insight in result.insights}
    titles |= {item.id: item.title for result in earlier for item in result.recommendations}
    sections = [f"This is run number {len(earlier) + 1} or later on this data."]
    found = [
        f"- {insight.name} ({insight.analysis_area}, {insight.severity}, {result.discovery_date:%Y-%m-%d})"
        for result in earlier
        for insight in result.insights
    ]
    advised = [f"- {item.title}" for result in earlier for item in result.recommendations]
    sections += _section("Found before; say it again only if it changed:", found[: policy.insights])
    sections += _section(
        "Recommended before; do not repeat unless something changed:", advised[: policy.recommendations]
    )
    for rating, heading in (("dislike", "AVOID similar conclusions:"), ("like", "MONITOR for changes:")):
        lines = [
            f"- {titles.get(item.target_id) or item.target_title or item.target_id}{_comment(item)}"
            for item in feedback
            if item.rating == rating
        ]
        sections += _section(heading, lines)
    kept = [f"- {note.text}" for note in notes if note.relevance >= policy.note_relevance]
    sections += _section("Notes:", kept[: policy.notes])
    return "\n\n".join(sections)


def _comment(item: Feedback) -> str:
    return f" (a person said: {json.dumps(item.comment, ensure_ascii=False)})" if item.comment else ""


def _section(heading: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return ["\n".join([heading, *(" ".join(line.split())[:_LINE_CHARS] for line in lines)])]
