"""From what a model wrote to insights and recommendations: coerced fields, checked figures, ids we minted. Pure.

Ids are minted here and nowhere else; a model's own id is never used. Numbers in prose come out of the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from assay_agent.discovery.markdown import split_markdown
from assay_agent.evidence import figures as figures_of
from assay_agent.evidence.caveats import evidence_quality
from assay_agent.evidence.numbers import unchecked_numbers
from assay_agent.llm import replies
from assay_core.model.insight import Figure, Impact, Insight, Recommendation, Severity
from assay_core.model.step import AnalysisStep, ExplorationStep
from assay_core.model.verdict import CombinedVerdict, InsightValidation

_FIGURES = 40
_INDICATORS = 20
_NAME_CHARS = 300
_TEXT_CHARS = 20_000


def read_insight(
    fields: Mapping[str, Any],
    *,
    area_id: str,
    number: int,
    steps: Mapping[int, ExplorationStep],
    at: datetime,
) -> Insight | None:
    """One insight of a reply; None where it has no name."""
    name = replies.text_of(fields.get("name") or fields.get("title"))[:_NAME_CHARS]
    if not name:
        return None
    figures = [figures_of.resolve(figure, steps) for figure in _figures(fields.get("figures"))]
    sources = [step for step in replies.step_numbers(fields.get("source_steps")) if step in steps]
    sources = sorted({*sources, *(figure.step for figure in figures if figure.step in steps and figure.step)})
    cited = [steps[step] for step in sources]
    description = replies.text_of(fields.get("description"))[:_TEXT_CHARS]
    indicators = replies.texts(fields.get("indicators"))[:_INDICATORS]
    segment = replies.text_of(fields.get("target_segment"))
    written = [figures_of.write(text, figures) for text in (name, description, segment, *indicators)]
    (name_text, _), (description_text, _), (segment_text, _) = written[:3]
    used = {reference for _, unresolved in written for reference in unresolved}
    problems = {figure.id for figure in figures if figure.problem}
    plain, markdown = split_markdown(description_text)
    return Insight(
        id=str(uuid4()),
        slug=f"{area_id}-{number}",
        analysis_area=area_id,
        name=split_markdown(name_text)[0],
        description=plain,
        description_md=markdown,
        severity=_severity(fields.get("severity")),
        affected_count=max(replies.whole(fields.get("affected_count")), 0),
        risk_score=replies.fraction(fields.get("risk_score")),
        confidence=replies.fraction(fields.get("confidence")),
        metrics=_metrics(fields.get("metrics")),
        indicators=[text for text, _ in written[3:]],
        target_segment=segment_text,
        source_steps=sources,
        figures=figures,
        figures_unresolved=sorted(used | problems),
        unchecked_numbers=unchecked_numbers([name, description, segment, *indicators], cited),
        evidence_quality=evidence_quality(cited),
        validation=InsightValidation(combined=CombinedVerdict.VALIDATION_DISABLED),
        discovered_at=at,
    )


def _figures(value: Any) -> list[Figure]:
    """Declared figures that have the right shape; later ones of the same id are ignored."""
    found: dict[str, Figure] = {}
    for item in (value if isinstance(value, list) else [])[:_FIGURES]:
        try:
            figure = Figure.model_validate({**item, "step": _step(item)} if isinstance(item, dict) else item)
        except ValidationError:
            continue
        # What only the engine may say is taken from nobody else.
        own = {"computed": None, "text": None, "checked": False, "problem": None}
        found.setdefault(figure.id, figure.model_copy(update=own))
    return list(found.values())


def _step(item: Mapping[str, Any]) -> int | None:
    numbers = replies.step_numbers(item.get("step"))
    return numbers[0] if numbers else None


def _severity(value: Any) -> Severity:
    word = replies.text_of(value).lower()
    return Severity(word) if word in set(Severity) else Severity.MEDIUM


def _metrics(value: Any) -> dict[str, Any]:
    items = value.items() if isinstance(value, dict) else ()
    return {str(key)[:100]: item for key, item in items if isinstance(item, int | float | str | bool)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A recommendation, or why it was dropped; `resolved_slugs` counts slugs that named an eligible insight."""

    recommendation: Recommendation | None
    dropped: str | None = None
    resolved_slugs: int = 0


def read_recommendation(fields: Mapping[str, Any], *, eligible: Sequence[Insight]) -> Read:
    """One recommendation of a reply, or the counter it falls under."""
    title = replies.text_of(fields.get("title") or fields.get("name"))[:_NAME_CHARS]
    if not title:
        return Read(recommendation=None, dropped="parse")
    cited = replies.texts(fields.get("related_insight_ids"))
    if not cited:
        return Read(recommendation=None, dropped="missing_ids")
    by_id = {insight.id: insight for insight in eligible}
    by_slug = {insight.slug: insight.id for insight in eligible}
    ids = [by_slug.get(reference, reference) for reference in cited]
    if any(reference not in by_id for reference in ids):
        return Read(recommendation=None, dropped="unknown_id")
    figures = _resolved_references(fields.get("figures"), by_id=by_id, by_slug=by_slug)
    actions = replies.texts(fields.get("actions"))
    impact = _impact(fields.get("expected_impact"))
    prose = [title, replies.text_of(fields.get("description"))[:_TEXT_CHARS], *actions]
    prose += [replies.text_of(fields.get("target_segment")), impact.estimated_improvement, impact.reasoning]
    written = [figures_of.write(text, figures) for text in prose]
    if any(unresolved for _, unresolved in written):
        return Read(recommendation=None, dropped="unresolved_figures")
    texts = [text for text, _ in written]
    plain, markdown = split_markdown(texts[1])
    recommendation = Recommendation(
        id=str(uuid4()),
        category=replies.text_of(fields.get("category")) or by_id[ids[0]].analysis_area,
        title=split_markdown(texts[0])[0],
        description=plain,
        description_md=markdown,
        priority=replies.priority(fields.get("priority")),
        target_segment=texts[-3],
        segment_size=max(replies.whole(fields.get("segment_size")), 0),
        expected_impact=impact.model_copy(
            update={"estimated_improvement": texts[-2], "reasoning": texts[-1]}
        ),
        actions=texts[2 : 2 + len(actions)],
        related_insight_ids=list(dict.fromkeys(ids)),
        confidence=replies.fraction(fields.get("confidence")),
        figures=figures,
        validation=InsightValidation(combined=CombinedVerdict.VALIDATION_DISABLED),
    )
    slugs = sum(1 for reference in cited if reference in by_slug and reference not in by_id)
    return Read(recommendation=recommendation, resolved_slugs=slugs)


def _resolved_references(
    value: Any, *, by_id: Mapping[str, Insight], by_slug: Mapping[str, str]
) -> list[Figure]:
    known = {insight.id: {figure.id: figure for figure in insight.figures} for insight in by_id.values()}
    known |= {slug: known[identifier] for slug, identifier in by_slug.items()}
    return [figures_of.resolve_reference(figure, known) for figure in _figures(value)]


def _impact(value: Any) -> Impact:
    """A bare text becomes the reasoning."""
    if isinstance(value, str):
        return Impact(reasoning=value.strip())
    if not isinstance(value, dict):
        return Impact()
    return Impact(
        **{
            name: replies.text_of(value.get(name))
            for name in ("metric", "estimated_improvement", "reasoning")
        }
    )


def without_repeats(steps: Sequence[AnalysisStep]) -> tuple[AnalysisStep, ...]:
    """The areas in order, an insight that an earlier area told from the same steps left out and counted. Pure."""
    told: set[tuple[str, tuple[int, ...]]] = set()
    kept: list[AnalysisStep] = []
    for step in steps:
        new: list[Insight] = []
        for insight in step.insights:
            said = (" ".join(insight.name.casefold().split()), tuple(sorted(insight.source_steps)))
            if said not in told:
                told.add(said)
                new.append(insight)
        repeated = len(step.insights) - len(new)
        ids = {insight.id for insight in new}
        changes = {
            "insights": new,
            "insight_count": len(new),
            "insights_repeated": repeated,
            "validation_results": [result for result in step.validation_results if result.insight_id in ids],
        }
        kept.append(step.model_copy(update=changes) if repeated else step)
    return tuple(kept)
