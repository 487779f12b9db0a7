"""The reply to a recommendations prompt: a next step for each kind of finding, linked by id, promising nothing. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

_LIMIT = 8
_PRIORITY = {"critical": 1, "high": 2, "medium": 3, "low": 4}


def recommendations_reply(prompt: str) -> str:
    """`{"recommendations": […]}`: one per kind of finding, at most eight, the gravest first."""
    insights = _insights(prompt)
    made: list[dict[str, Any]] = []
    seen: dict[str, dict[str, Any]] = {}
    for insight in insights:
        kind = _kind(insight)
        if kind in seen:
            seen[kind]["related_insight_ids"].append(insight["id"])
            continue
        seen[kind] = _advice(kind, insight)
        made.append(seen[kind])
    return json.dumps({"recommendations": made[:_LIMIT]}, ensure_ascii=False)


def _insights(prompt: str) -> list[dict[str, Any]]:
    decoder = json.JSONDecoder(strict=False)
    for match in re.finditer(r'\[\s*\{\s*"id"', prompt):
        try:
            value, _ = decoder.raw_decode(prompt, match.start())
        except ValueError:
            continue
        if isinstance(value, list):
            return [item for item in value if isinstance(item, dict) and "id" in item]
    return []


def _kind(insight: dict[str, Any]) -> str:
    metrics = insight.get("metrics") or {}
    for key, kind in (
        ("share_missing_highest", "uneven gap"),
        ("share_missing", "gap"),
        ("share_duplicate", "duplicates"),
        ("share_repeated", "repeated keys"),
        ("cramers_v", "rates"),
        ("share_without_match", "orphans"),
        ("relative_spread", "trend"),
        ("share_of_largest", "concentration"),
        ("mean_highest", "groups"),
        ("eta_squared", "season"),
        ("reach_in_quartile_distances", "outliers"),
        ("pearson_r", "association"),
    ):
        if key in metrics:
            return kind
    return "other"


_TEXTS: dict[str, tuple[str, str, list[str], str]] = {
    "gap": (
        "Settle what an empty value means before averaging over it",
        "The columns named in the findings are not filled in every row. As long as nobody has said whether empty means “did not happen” or “was not recorded”, every "
        "mean and share over them is open to two readings.",
        ["Ask the owner of the source what an empty value stands for", "Write the answer into the project's profile, so that the next run reads it", "Report the number of rows behind every mean over these columns"],
        "rows without a value",
    ),
    "uneven gap": (
        "Find out why values go missing in some groups more than in others",
        "Where a gap sits in one group, comparing groups by a mean compares different selections of rows.",
        ["Compare the process of the worst group with that of the best", "Until it is mended, compare groups by counts next to means"],
        "share of missing values",
    ),
    "duplicates": (
        "Remove repeated rows, or say why they are there",
        "Exact copies inflate counts and sums. If they are meant, a column that tells them apart is missing.",
        ["Trace one pair of copies back to its source", "Add a unique key, or take the copies out when loading"],
        "repeated rows",
    ),
    "repeated keys": (
        "Make the key unique, or say what else tells the rows apart",
        "A join by a key that repeats multiplies rows, and counts of the key and of the rows differ.",
        ["Look at a few repeated values: corrections, double entries, or a second part of the key", "Keep one row per key, or name the columns that make the key complete"],
        "repeated key values",
    ),
    "rates": (
        "Look into the groups in which the outcome is most frequent",
        "The shares differ by more than chance and the groups are large enough to act on; why they differ is not in these rows yet.",
        ["Start with the group that has the highest share", "Check what else differs between these groups before blaming the grouping", "Try a change in one group and compare the share with a group left as it is"],
        "share of the outcome",
    ),
    "orphans": (
        "Close the gap between the tables before joining them",
        "An inner join drops the rows whose key finds no partner, and nothing says so.",
        ["List the keys without a partner, the most frequent first", "Load the missing records, or keep the rows by an outer join and count them", "Watch the share of keys without a partner from load to load"],
        "rows without a match",
    ),
    "trend": (
        "Plan with the movement over time, not with the yearly mean",
        "The values differ so much between periods that one mean over all of them describes none.",
        ["Show the measure by period wherever it is reported today as one number", "Check what happened in the highest and in the lowest period"],
        "values by period",
    ),
    "season": (
        "Use the recurring pattern by time",
        "Hours, weekdays or months differ in a way that comes back; what is decided for all of them at once misses the worst and burdens the best.",
        ["Look first at the time with the highest mean", "Compare what is scheduled there with what is scheduled at the best time", "Measure again after a change, at the same time"],
        "mean at the worst time",
    ),
    "concentration": (
        "Watch the few that hold most of the volume",
        "A change in the largest groups moves every total, and hides what happens in the others.",
        ["Report the largest groups one by one, the rest together", "Check how totals look without the largest"],
        "share of the largest",
    ),
    "groups": (
        "Look into the groups that stand apart",
        "The difference is too large for chance and the groups are large enough to act on; why they differ is not in these rows yet.",
        ["Start with the group that has the highest mean", "Compare it with a group of the same kind: same period, same mix", "Only then decide what to change, and for whom"],
        "mean of the group",
    ),
    "outliers": (
        "Decide how extreme values are treated",
        "A few values far from the rest pull every mean. Whether they are errors or real is a question to the source, not to statistics.",
        ["Look at the most extreme rows one by one", "Report the median next to the mean", "Reject what cannot be at the point of entry"],
        "values far from the rest",
    ),
    "association": (
        "Keep one of the measures that say the same",
        "Measures that move together count one thing twice when both go into a score or a model.",
        ["Check whether one is computed from the other", "Use one of them, or their difference"],
        "measures in use",
    ),
    "other": (
        "Follow up on the remaining findings",
        "They are leads, not yet results.",
        ["Run the exploration again with more steps on these tables"],
        "open leads",
    ),
}  # fmt: skip


def _advice(kind: str, insight: dict[str, Any]) -> dict[str, Any]:
    title, why, actions, metric = _TEXTS[kind]
    return {
        "title": title,
        "description": f"{why}",
        "category": insight.get("analysis_area", ""),
        "priority": _PRIORITY.get(str(insight.get("severity")), 3),
        "target_segment": insight.get("target_segment", ""),
        "segment_size": insight.get("affected_count", 0),
        "expected_impact": {
            "metric": metric,
            "estimated_improvement": "",
            "reasoning": "The findings show the size of the matter; what a change would bring is not estimated from them.",
        },
        "actions": actions,
        "related_insight_ids": [insight["id"]],
        "confidence": insight.get("confidence", 0.5),
        "figures": [],
    }
