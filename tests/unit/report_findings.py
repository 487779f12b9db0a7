"""A discovery with everything a report can show, hostile text included."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from assay_agent.report import Findings
from assay_core.model.discovery import DiscoveryResult, Summary
from assay_core.model.insight import Figure, Impact, Insight, Recommendation, Severity
from assay_core.model.project import Project
from assay_core.model.run import DiscoveryRun, ModelUsage, PhaseTiming
from assay_core.model.step import (
    AnalysisStep,
    Caveat,
    CaveatKind,
    ExplorationStep,
    RecommendationStep,
    ResultColumn,
    StepAction,
)

AT = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \u202eright\u202c 🙂 {{7*7}} " + "w" * 300


def a_query(number: int, rows: list[dict[str, Any]], **fields: Any) -> ExplorationStep:
    return ExplorationStep(
        **{
            "step": number,
            "timestamp": AT + timedelta(seconds=number),
            "action": StepAction.QUERY_DATA,
            "query_purpose": f"Question {number} [key:main.t]",
            "query": "SELECT carrier, avg(delay) AS mean_delay FROM main.flights GROUP BY carrier ORDER BY 2 DESC",
            "query_result": rows,
            "columns": [ResultColumn(name=name) for name in (rows[0] if rows else {})],
            "row_count": len(rows),
            "execution_time_ms": 12 * number,
            **fields,
        }
    )


def an_insight(number: int, **fields: Any) -> Insight:
    return Insight(
        **{
            "id": f"00000000-0000-0000-0000-{number:012d}",
            "slug": f"anomalies-{number}",
            "analysis_area": "anomalies",
            "name": f"Finding {number}: F9 is late by 21.9 minutes",
            "description": "F9 is late.",
            "description_md": "**F9 is late** by 21.9 minutes.\n\n- over 685 flights\n- more than any other",
            "severity": list(Severity)[number % 4],
            "affected_count": 685,
            "confidence": 0.8,
            "indicators": ["mean delay 21.9 min"],
            "target_segment": "carrier F9",
            "source_steps": [1],
            "figures": [
                Figure(
                    id="f1",
                    step=1,
                    column="mean_delay",
                    row="carrier = 'F9'",
                    computed=21.9,
                    text="21.9",
                    checked=True,
                ),
                Figure(id="f2", step=1, column="nope", problem="column nope is not in the result"),
            ],
            "discovered_at": AT,
            **fields,
        }
    )


def findings(**fields: Any) -> Findings:
    """A report's worth of findings; a keyword replaces a part."""
    by_carrier = [
        {"carrier": name, "mean_delay": 22.0 - n * 2.3, "n": 685 + n}
        for n, name in enumerate(["F9", "EV", "YV", "FL", "WN", "9E", "B6", "VX", "OO", "UA", "MQ", "AS"])
    ]
    by_month = [
        {"month": f"2013-{n:02d}-01T00:00:00Z", "flights": 27000 + (n * 917) % 3000} for n in range(1, 13)
    ]
    hostile = [{"name <b>": HOSTILE, "x": n, "y": float(n)} for n in range(4)]
    insights = [
        an_insight(1),
        an_insight(
            2,
            source_steps=[2],
            figures=[
                Figure(
                    id="f1",
                    step=2,
                    column="flights",
                    row="month = '2013-07-01'",
                    computed=27419,
                    text="27,419",
                    checked=True,
                )
            ],
        ),
        an_insight(
            3,
            name=HOSTILE,
            description=HOSTILE,
            description_md=f"## {HOSTILE}\n\n[link](javascript:alert(3)) ![i](http://example.test/x.png)",
            source_steps=[3],
            figures_unresolved=["f9"],
            unchecked_numbers=["12%"],
            evidence_quality="truncated result",
        ),
    ]
    advice = Recommendation(
        id="00000000-0000-0000-0000-000000000099",
        title="Look at F9",
        description="Ask why.",
        priority=1,
        actions=["Ask", "Measure"],
        expected_impact=Impact(metric="mean_delay", estimated_improvement="not estimated"),
        related_insight_ids=[insights[0].id],
    )
    discovery = DiscoveryResult(
        id="6b0e26a76ac5e5980d48fda4",
        project_id="p",
        run_id="r",
        run_type="partial",
        discovery_date=AT,
        total_steps=5,
        duration=12_300_000_000,
        insights=insights,
        recommendations=[advice],
        summary=Summary(
            total_insights=3,
            total_recommendations=1,
            queries_executed=4,
            errors=["trends: the model was unavailable"],
        ),
        analyst="scout/scout-1",
        created_at=AT,
        updated_at=AT,
    )
    steps = (
        a_query(1, by_carrier),
        a_query(2, by_month),
        a_query(
            3, hostile, caveats=[Caveat(kind=CaveatKind.TRUNCATED, text="only the first 4 rows were kept")]
        ),
        a_query(4, [], error="column nope does not exist", query="SELECT nope"),
        ExplorationStep(step=5, timestamp=AT, action=StepAction.COMPLETE, query_purpose="seen enough"),
    )
    run = DiscoveryRun(
        id="r",
        project_id="p",
        started_at=AT,
        updated_at=AT,
        schema_table_count=5,
        phase_timings=[
            PhaseTiming(phase="explore", duration_ms=9000),
            PhaseTiming(phase="analyze", duration_ms=3000),
        ],
        usage=[
            ModelUsage(
                phase="exploration",
                model="scout/scout-1",
                calls=5,
                input_tokens=0,
                output_tokens=0,
                cost_usd=0.0,
            )
        ],
    )
    defaults: dict[str, Any] = {
        "discovery": discovery,
        "exploration": steps,
        "analysis": (
            AnalysisStep(
                area_id="anomalies", area_name="Anomalies", run_at=AT, relevant_queries=3, insight_count=3
            ),
        ),
        "recommendation": RecommendationStep(run_at=AT),
        "run": run,
        "project": Project(id="p", name="Flights & <co>"),
    }
    return Findings(**{**defaults, **fields})
