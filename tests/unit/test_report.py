"""The report escapes what it shows, links both ways, and draws what the finding cites."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from assay_agent.report import render_report
from assay_agent.report.chart import chart_of
from assay_agent.report.svg import draw, number
from assay_core.model.discovery import Summary
from assay_core.model.insight import Figure
from tests.unit.report_findings import a_query, an_insight, findings


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Tags()
    parser.feed(page)
    return parser.tags


def test_no_cell_name_or_text_becomes_markup() -> None:
    seen = tags(render_report(findings()))
    assert not [tag for tag, _ in seen if tag in ("script", "img", "iframe", "object", "link")]
    assert not [name for _, attributes in seen for name in attributes if name.startswith("on")]
    assert not [a for _, a in seen if (a.get("href") or "").startswith(("javascript", "http"))]


def test_page_refers_to_nothing_outside_itself() -> None:
    page = render_report(findings())
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert "url(" not in page


def test_insights_and_recommendations_link_to_each_other() -> None:
    seen = tags(render_report(findings()))
    targets = {attributes["id"] for _, attributes in seen if attributes.get("id")}
    links = {(attributes.get("href") or "")[1:] for tag, attributes in seen if tag == "a"}
    assert {"i-00000000-0000-0000-0000-000000000001", "r-00000000-0000-0000-0000-000000000099"} <= links
    assert links <= targets


def test_gravest_insight_stands_first_and_the_label_says_not_validated() -> None:
    page = render_report(findings())
    assert page.index("Finding 1") < page.index("Finding 2")
    assert "not validated" in page
    assert "trends: the model was unavailable" in page


def test_key_of_the_scout_is_not_shown() -> None:
    page = render_report(findings())
    assert "Question 1" in page
    assert "[key:main.t]" not in page


def test_an_empty_discovery_says_that_nothing_stood_out() -> None:
    empty = findings().discovery.model_copy(
        update={"insights": [], "recommendations": [], "summary": Summary()}
    )
    page = render_report(
        findings(discovery=empty, run=None, project=None, recommendation=None, exploration=(), analysis=())
    )
    assert "Nothing stood out" in page


def test_categories_make_bars_and_the_cited_one_is_marked() -> None:
    given = findings()
    chart = chart_of(given.discovery.insights[0], {step.step: step for step in given.exploration})
    assert chart is not None
    assert (chart.kind, chart.label_name, chart.value_name) == ("bar", "carrier", "mean_delay")
    assert [chart.labels[index] for index in chart.marked] == ["F9"]


def test_months_make_a_line_in_their_order() -> None:
    given = findings()
    chart = chart_of(given.discovery.insights[1], {step.step: step for step in given.exploration})
    assert chart is not None
    assert chart.kind == "line"
    assert list(chart.labels) == sorted(chart.labels)
    assert [chart.labels[index] for index in chart.marked] == ["2013-07-01"]


def test_rows_without_numbers_or_too_few_make_no_chart() -> None:
    assert chart_of(an_insight(1, figures=[]), {1: a_query(1, [{"a": "x", "b": "y"}] * 5)}) is None
    assert chart_of(an_insight(1, figures=[]), {1: a_query(1, [{"a": "x", "b": 1}])}) is None


def test_numbers_read_short() -> None:
    assert [number(value) for value in (1234, 0.01234, 12.34, 4.5e6, 123456.0, -5.0)] == [
        "1,234",
        "0.0123",
        "12.3",
        "4.5M",
        "123.5K",
        "-5",
    ]


def test_column_that_names_groups_by_number_labels_the_bars() -> None:
    rows = [
        {"kind": kind, "n_rows": 900 - kind, "mean_size": size}
        for kind, size in ((3, 9.5), (1, 4.0), (2, 2.5))
    ]
    figures = [
        Figure(id="f1", step=1, column="kind", row='"kind" = 3'),
        Figure(id="f2", step=1, column="mean_size", row='"kind" = 3'),
    ]
    chart = chart_of(an_insight(1, figures=figures), {1: a_query(1, rows)})
    assert chart is not None
    assert (chart.label_name, chart.value_name) == ("kind", "mean_size")
    assert (chart.labels, chart.values) == (("3", "1", "2"), (9.5, 4.0, 2.5))


def test_shares_are_drawn_as_percentages() -> None:
    rows = [{"kind": kind, "share_missing": share} for kind, share in (("a", 0.557), ("b", 0.2), ("c", 0.0))]
    figures = [Figure(id="f1", step=1, column="share_missing", row="\"kind\" = 'a'", unit="percent")]
    chart = chart_of(an_insight(1, figures=figures), {1: a_query(1, rows)})
    assert chart is not None
    assert "55.7%" in draw(chart)
