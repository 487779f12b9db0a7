"""Which steps an area sees, and what gives way when there is too little room."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from assay_agent.evidence.caveats import evidence_quality
from assay_agent.evidence.picker import pick, rank
from assay_agent.policy import AnalysisPolicy, DigestPolicy, estimate_tokens
from assay_core.model.step import Caveat, CaveatKind, ColumnDigest, Digest, ExplorationStep, StepAction

POLICY, DIGEST = AnalysisPolicy(), DigestPolicy()


def a_step(number: int, *, rows: int = 15, **fields: Any) -> ExplorationStep:
    table = [{"carrier": f"C{n}", "delay": n * 1.5} for n in range(rows)]
    return ExplorationStep(
        **{
            "step": number,
            "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
            "action": StepAction.QUERY_DATA,
            "query_purpose": f"purpose {number}",
            "query": f"SELECT {number}",
            "row_count": rows,
            "digest": Digest(row_count=rows, columns=[ColumnDigest(name="delay", kind="number")], rows=table),
            **fields,
        }
    )


def test_steps_are_ranked_by_score_and_lifted_by_a_keyword() -> None:
    steps = [a_step(1), a_step(2, query_purpose="missing values"), a_step(3)]
    ranked = rank(steps, {1: 0.4, 2: 0.1, 3: 0.2}, keywords=["missing"], policy=POLICY)
    assert [(score, step.step) for score, step in ranked] == [(0.55, 2), (0.4, 1)]


def test_failed_steps_and_steps_without_rows_to_show_are_left_out() -> None:
    steps = [a_step(1, error="boom"), a_step(2, action=StepAction.LOOKUP_SCHEMA), a_step(3)]
    assert [step.step for _, step in rank(steps, {1: 0.9, 2: 0.9, 3: 0.9}, keywords=[], policy=POLICY)] == [3]


def test_entries_are_json_in_step_order_with_what_ran() -> None:
    picked = pick(
        [(0.9, a_step(3, query_executed="SELECT 33")), (0.5, a_step(1))],
        room_tokens=10_000,
        policy=POLICY,
        digest=DIGEST,
    )
    entries = json.loads(picked.entries)
    assert [entry["step"] for entry in entries] == [1, 3]
    assert entries[1]["query"] == "SELECT 33"
    assert len(entries[0]["rows"]) == 15


def test_rows_shrink_before_steps_drop_and_the_lowest_score_drops_first() -> None:
    ranked = [(1 - number / 100, a_step(number)) for number in range(1, 21)]
    roomy = pick(ranked, room_tokens=6_500, policy=POLICY, digest=DIGEST)
    assert roomy.steps == tuple(range(1, 21))
    assert estimate_tokens(roomy.entries) <= 6_500
    tight = pick(ranked, room_tokens=1_500, policy=POLICY, digest=DIGEST)
    assert tight.steps == tuple(range(1, len(tight.steps) + 1))
    assert tight.dropped
    assert len(tight.breadcrumbs) <= POLICY.breadcrumbs
    assert all(len(crumb) <= POLICY.breadcrumb_chars for crumb in tight.breadcrumbs)


def test_no_room_leaves_breadcrumbs_only() -> None:
    picked = pick([(0.9, a_step(1))], room_tokens=0, policy=POLICY, digest=DIGEST)
    assert (picked.steps, picked.dropped) == ((), (1,))


def test_gravest_caveat_labels_the_evidence() -> None:
    cut = a_step(1, caveats=[Caveat(kind=CaveatKind.TRUNCATED, text="cut")])
    held = a_step(
        2,
        caveats=[Caveat(kind=CaveatKind.WITHHELD, text="held"), Caveat(kind=CaveatKind.CONVERTED, text="x")],
    )
    assert evidence_quality([cut, held]) == "rows withheld"
    assert evidence_quality([cut]) == "truncated result"
    assert evidence_quality([a_step(3)]) is None
