"""From findings to the page: what each section shows, then the template. Every value is escaped by the template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from assay_agent.evidence.wording import counted
from assay_agent.report.chart import chart_of
from assay_agent.report.findings import Findings
from assay_agent.report.svg import draw, number
from assay_core.model.insight import Figure, Insight, Recommendation, Severity
from assay_core.model.step import ExplorationStep, StepAction

_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False, "linkify": False})
    .enable(["table", "strikethrough"])
    .disable(["image", "link", "autolink"])
)
_KEY = re.compile(r"\s*\[[^\[\]]*\]\s*$")
_ROWS, _COLUMNS, _CELL_CHARS, _SQL_CHARS = 20, 12, 120, 6_000
_TIMELINE_STEPS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One cited step: statement, rows shown, and what is left out."""

    step: ExplorationStep
    purpose: str
    sql: str
    columns: list[str]
    rows: list[list[str]]
    numeric: list[bool]
    more_rows: int
    more_columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InsightView:
    insight: Insight
    body: Markup
    chart: Markup | None
    chart_caption: str
    evidence: list[Evidence]
    figures: list[tuple[Figure, str]]
    answered_by: list[Recommendation]


def render_report(findings: Findings) -> str:
    """The page as HTML text, without any reference to a network."""
    steps = {step.step: step for step in findings.exploration}
    discovery = findings.discovery
    ordered = sorted(discovery.insights, key=lambda insight: (insight.severity.rank, -insight.risk_score))
    page: str = _template().render(
        discovery=discovery,
        title=(findings.project.name if findings.project else "") or "Discovery",
        run=findings.run,
        css=Markup(_asset("page.css")),
        insights=[_view(insight, steps, discovery.recommendations) for insight in ordered],
        names={insight.id: insight.name for insight in ordered},
        recommendations=[
            (item, _markdown(item.description_md or item.description)) for item in discovery.recommendations
        ],
        severities=[(severity, sum(i.severity is severity for i in ordered)) for severity in Severity],
        headline=_headline(findings),
        timeline=_timeline(findings),
        phases=_phases(findings),
        usage=findings.run.usage if findings.run else [],
        areas=findings.analysis,
        advice=findings.recommendation,
        validated=_validated(ordered),
    )
    return page


@cache
def _template() -> Any:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["purpose"] = _purpose
    environment.filters["short"] = number
    environment.filters["seconds"] = _seconds
    return environment.from_string(_asset("page.html.j2"))


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _validated(insights: Sequence[Insight]) -> bool:
    return any(
        insight.validation and insight.validation.combined not in (None, "validation_disabled")
        for insight in insights
    )


def _headline(findings: Findings) -> list[tuple[str, str]]:
    """The numbers on top: what was found, and what it took."""
    queries = [step for step in findings.exploration if step.action is StepAction.QUERY_DATA]
    failed = sum(step.error is not None for step in queries)
    cost = (
        [usage.cost_usd for usage in findings.run.usage if usage.cost_usd is not None] if findings.run else []
    )
    tables = findings.run.schema_table_count if findings.run else None
    numbers = [
        _number(len(findings.discovery.insights), "finding"),
        _number(len(findings.discovery.recommendations), "recommendation"),
        _number(len(queries), "query", f", {failed or 'none'} failed"),
    ]
    if tables is not None:
        numbers.append(_number(tables, "table", " in scope"))
    numbers.append((_seconds(findings.discovery.duration / 1e9), "from start to result"))
    numbers.append((f"${sum(cost):,.2f}" if cost else "unknown", "model cost"))
    return numbers


def _number(count: int, noun: str, more: str = "") -> tuple[str, str]:
    """A count and what is counted, apart."""
    shown, what = counted(count, noun).split(" ", 1)
    return shown, what + more


def _seconds(value: float) -> str:
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _view(
    insight: Insight, steps: Mapping[int, ExplorationStep], advice: Sequence[Recommendation]
) -> InsightView:
    chart = chart_of(insight, steps)
    caption = ""
    if chart is not None:
        caption = f"{_words(chart.value_name)} by {_words(chart.label_name)}, step {chart.step}"
        caption += f"; {chart.left_out} further rows not drawn" if chart.left_out else ""
    return InsightView(
        insight=insight,
        body=_markdown(insight.description_md or insight.description),
        chart=draw(chart) if chart else None,
        chart_caption=caption,
        evidence=[_evidence(steps[number]) for number in insight.source_steps if number in steps],
        figures=[(figure, _how(figure)) for figure in insight.figures],
        answered_by=[item for item in advice if insight.id in item.related_insight_ids],
    )


def _markdown(text: str) -> Markup:
    """Markdown as HTML; raw HTML in it stays text, images and links are not made."""
    return Markup(_MARKDOWN.render(text))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _how(figure: Figure) -> str:
    """How a number follows from its step, in a line."""
    where = f" where {figure.row}" if figure.row else ""
    column = figure.column or "rows"
    match figure.kind:
        case "cell":
            return f"{column}{where}"
        case "ratio":
            return f"{column}{where} ÷ {figure.other}"
        case "diff":
            return f"{column}{where} − {figure.other}"
        case _:
            return f"{figure.kind} of {column}{where}"


def _purpose(text: str) -> str:
    return _KEY.sub("", text)


def _evidence(step: ExplorationStep) -> Evidence:
    rows = step.query_result[:_ROWS]
    names = [column.name for column in step.columns] or (list(rows[0]) if rows else [])
    shown = names[:_COLUMNS]
    return Evidence(
        step=step,
        purpose=_purpose(step.query_purpose or step.thinking),
        sql=(step.query_executed or step.query)[:_SQL_CHARS],
        columns=shown,
        rows=[[_cell(row.get(name)) for name in shown] for row in rows],
        numeric=[any(isinstance(row.get(name), int | float) for row in rows) for name in shown],
        more_rows=max(step.row_count - len(rows), 0),
        more_columns=len(names) - len(shown),
    )


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    text = value if isinstance(value, str) else _text(value)
    return text if len(text) <= _CELL_CHARS else f"{text[:_CELL_CHARS]}… ({len(text)} characters)"


def _text(value: Any) -> str:
    return (
        value.isoformat()
        if hasattr(value, "isoformat")
        else json.dumps(value, ensure_ascii=False, default=str)
    )


def _timeline(findings: Findings) -> list[dict[str, Any]]:
    """Steps in order, each with the width of its bar (percent of the slowest query)."""
    slowest = max((step.execution_time_ms for step in findings.exploration), default=0) or 1
    cited = {number for insight in findings.discovery.insights for number in insight.source_steps}
    return [
        {
            "number": step.step,
            "action": str(step.action).replace("_", " "),
            "purpose": _purpose(step.query_purpose or step.thinking),
            "rows": step.row_count,
            "ms": step.execution_time_ms,
            "width": round(100 * step.execution_time_ms / slowest, 1),
            "error": step.error,
            "fixed": step.fixed,
            "cited": step.step in cited,
            "is_query": step.action is StepAction.QUERY_DATA,
        }
        for step in findings.exploration[:_TIMELINE_STEPS]
    ]


def _phases(findings: Findings) -> list[tuple[str, str, float]]:
    timings = findings.run.phase_timings if findings.run else []
    total = sum(timing.duration_ms for timing in timings) or 1
    return [
        (timing.phase, _seconds(timing.duration_ms / 1000), round(100 * timing.duration_ms / total, 1))
        for timing in timings
    ]
