"""The reply to an analysis prompt: which exhibits belong to the area, what they show, ranked by size of effect. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from assay_agent.scout.writer import quality, rates, shape, time
from assay_agent.scout.writer.evidence import Exhibit, exhibit_of

_WRITERS: dict[str, Callable[[Exhibit], Iterator[dict[str, Any]]]] = {
    "missing": quality.missing,
    "notnum": quality.other_than_numbers,
    "gap": quality.gap,
    "dup": quality.duplicates,
    "orphan": quality.orphans,
    "trend": time.trend,
    "season": time.season,
    "conc": shape.concentration,
    "sep": shape.separation,
    "group": shape.group,
    "outlier": shape.outliers,
    "corr": shape.correlation,
    "rate": rates.rate,
    "dupkey": quality.repeated_keys,
}
_AREAS = {
    "data_quality": ("missing", "notnum", "gap", "dup", "dupkey", "orphan"),
    "trends": ("trend", "season"),
    "concentration": ("conc",),
    "anomalies": ("outlier",),
    "relationships": ("sep", "group", "rate", "corr"),
}
_OTHER_AREAS = tuple(_WRITERS)
"""In an area the scout does not know anything may bear on it; what an earlier area tells too, the engine leaves out."""
_PARTS = {
    "missing": 1,
    "notnum": 1,
    "dup": 1,
    "corr": 1,
    "gap": 3,
    "orphan": 3,
    "season": 3,
    "group": 3,
    "rate": 3,
}
"""Parts of a family's key, two where nothing is said; a purpose of another model may look like a key and is passed over."""
_AREA = re.compile(r"^Area: (\S+)$", re.MULTILINE)
_MAX = re.compile(r"^At most (\d+) insights", re.MULTILINE)
_LEAST_EFFECT = 0.12
_PER_SUBJECT = {"missing": 1, "notnum": 1, "trend": 3, "corr": 3, "gap": 1}
"""Findings of one exhibit at most, two where nothing is said."""


def analysis_reply(prompt: str) -> str:
    """`{"insights": […]}` for the area the prompt names."""
    area = _AREA.search(prompt)
    families = _AREAS.get(area.group(1) if area else "", _OTHER_AREAS)
    limit = _MAX.search(prompt)
    exhibits = [
        exhibit for entry in entries(prompt) if (exhibit := exhibit_of(entry)) and exhibit.family in families
    ]
    found = [
        (exhibit, insight)
        for exhibit in exhibits
        if exhibit.rows and len(exhibit.parts) == _PARTS.get(exhibit.family, 2)
        for insight in _WRITERS[exhibit.family](exhibit)
    ]
    ranked = sorted(found, key=lambda item: (-item[1]["risk_score"], item[0].step))
    kept: list[dict[str, Any]] = []
    per_subject: dict[tuple[str, ...], int] = {}
    echoes: set[tuple[str, ...]] = set()
    for exhibit, insight in ranked:
        subject, echo = _subject(exhibit), set(insight.pop("echoes"))
        most = _PER_SUBJECT.get(exhibit.family, 2)
        if insight["risk_score"] < _LEAST_EFFECT or per_subject.get(subject, 0) >= most or echo & echoes:
            continue
        echoes |= echo
        per_subject[subject] = per_subject.get(subject, 0) + 1
        kept.append(insight)
    return json.dumps({"insights": kept[: int(limit.group(1)) if limit else 12]}, ensure_ascii=False)


def _subject(exhibit: Exhibit) -> tuple[str, ...]:
    """What a finding is about: two about the same grouping of a table are enough."""
    if exhibit.family in ("group", "rate", "season", "gap"):
        return (exhibit.family, exhibit.table, exhibit.parts[1])
    return (exhibit.family, *exhibit.parts)


def entries(prompt: str) -> list[dict[str, Any]]:
    """The digests in a prompt: the JSON array whose objects carry a step."""
    decoder = json.JSONDecoder(strict=False)
    for match in re.finditer(r'\[\s*\{"step"', prompt):
        try:
            value, _ = decoder.raw_decode(prompt, match.start())
        except ValueError:
            continue
        if isinstance(value, list):
            return [item for item in value if isinstance(item, dict) and "step" in item]
    return []
