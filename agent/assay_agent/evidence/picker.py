"""Which steps an analysis area sees, and how large each is shown. Pure.

Ranked by the vector score of the step against the area, a verbatim keyword lifting a step; then fitted to the token budget by
showing fewer rows, and at last by leaving one-line breadcrumbs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay_agent.policy import AnalysisPolicy, DigestPolicy, estimate_tokens
from assay_core.model.step import ExplorationStep, StepAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """`entries` is the JSON array for the prompt; steps in step order; dropped ones have a breadcrumb."""

    entries: str
    steps: tuple[int, ...]
    dropped: tuple[int, ...]
    breadcrumbs: tuple[str, ...]


def rank(
    steps: Sequence[ExplorationStep],
    scores: Mapping[int, float],
    *,
    keywords: Sequence[str],
    policy: AnalysisPolicy,
) -> list[tuple[float, ExplorationStep]]:
    """Steps with rows that score high enough, best first; ties in step order."""
    words = [word.lower() for word in keywords if word.strip()]
    ranked: list[tuple[float, ExplorationStep]] = []
    for step in steps:
        if step.action is not StepAction.QUERY_DATA or step.error is not None:
            continue
        score = scores.get(step.step, 0.0)
        text = f"{step.query_purpose} {step.query_executed or step.query} {step.thinking}".lower()
        if any(word in text for word in words):
            score = max(score, policy.keyword_score)
        if score >= policy.min_score:
            ranked.append((score, step))
    ranked.sort(key=lambda item: (-item[0], item[1].step))
    return ranked


def pick(
    ranked: Sequence[tuple[float, ExplorationStep]],
    *,
    room_tokens: int,
    policy: AnalysisPolicy,
    digest: DigestPolicy,
) -> Picked:
    """Fit the ranked steps into `room_tokens`: first rows shrink, lowest scores first, then steps drop out."""
    chosen = [step for _, step in ranked]
    shown = {step.step: entry(step, policy=digest) for step in chosen}
    costs = {number: estimate_tokens(text) + 1 for number, text in shown.items()}
    total = sum(costs.values())
    for step in reversed(chosen):
        if total <= room_tokens:
            break
        smaller = entry(step, policy=digest, compact=True)
        total += estimate_tokens(smaller) + 1 - costs[step.step]
        shown[step.step], costs[step.step] = smaller, estimate_tokens(smaller) + 1
    dropped: list[ExplorationStep] = []
    for step in reversed(chosen):
        if total <= room_tokens:
            break
        total -= costs[step.step]
        del shown[step.step]
        dropped.append(step)
    crumbs = [_breadcrumb(step, chars=policy.breadcrumb_chars) for step in reversed(dropped)][
        : policy.breadcrumbs
    ]
    ordered = sorted(shown)
    return Picked(
        entries="[" + ",\n".join(shown[number] for number in ordered) + "]",
        steps=tuple(ordered),
        dropped=tuple(sorted(step.step for step in dropped)),
        breadcrumbs=tuple(crumbs),
    )


def _breadcrumb(step: ExplorationStep, *, chars: int) -> str:
    return (
        f"step {step.step}: {' '.join((step.query_purpose or step.query).split())} ({step.row_count} rows)"[
            :chars
        ]
    )


def entry(step: ExplorationStep, *, policy: DigestPolicy, compact: bool = False) -> str:
    """One step as the analysis prompt shows it: the statement that ran, the digest, and caveats, as JSON."""
    fields: dict[str, Any] = {
        "step": step.step,
        "purpose": step.query_purpose or step.thinking,
        "query": step.query_executed or step.query,
        "row_count": step.row_count,
    }
    if step.datasource_id:
        fields["datasource_id"] = step.datasource_id
    if step.digest is not None:
        digest = step.digest.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        digest.pop("row_count", None)
        fields.update(_shrunk(digest, policy=policy) if compact else digest)
    if step.caveats:
        fields["caveats"] = [caveat.text for caveat in step.caveats]
    return json.dumps(fields, ensure_ascii=False, default=str)


def _shrunk(digest: dict[str, Any], *, policy: DigestPolicy) -> dict[str, Any]:
    """The same digest with two head and two tail rows, or the first six of a small result."""
    rows = digest.get("rows")
    few = policy.overflow_rows
    if rows and len(rows) > policy.overflow_rows * 3:
        digest = {**digest, "rows": rows[: few * 3], "rows_left_out": len(rows) - few * 3}
    if digest.get("head"):
        digest = {**digest, "head": digest["head"][:few], "tail": digest.get("tail", [])[-few:]}
    return digest
