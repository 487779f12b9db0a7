"""Numbers in prose come from the rows of a step and from nowhere else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from assay_agent.evidence.figures import resolve, resolve_reference, write
from assay_agent.evidence.filters import FilterError, matching
from assay_agent.evidence.numbers import unchecked_numbers
from assay_core.model.insight import Figure
from assay_core.model.step import Caveat, CaveatKind, ExplorationStep, StepAction

ROWS: list[dict[str, Any]] = [
    {"carrier": "UA", "flights": 58665, "share": 0.1742, "mean": 3.56, "first": "2013-01-01T00:00:00Z"},
    {"carrier": "B6", "flights": 54635, "share": 0.1622, "mean": 9.46, "first": "2013-01-01T00:00:00Z"},
    {"carrier": "O'Hare", "flights": 12, "share": 0.0001, "mean": None, "first": "2013-02-03T04:05:00Z"},
]


def a_step(number: int = 4, **fields: Any) -> ExplorationStep:
    defaults: dict[str, Any] = {"query_result": ROWS, "row_count": len(ROWS)}
    return ExplorationStep(
        step=number,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        action=StepAction.QUERY_DATA,
        **{**defaults, **fields},
    )


def resolved(source: ExplorationStep | None = None, **fields: Any) -> Figure:
    return resolve(Figure.model_validate({"id": "f1", "step": 4, **fields}), {4: source or a_step()})


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"column": "flights", "row": "carrier = 'UA'", "unit": "count"}, "58,665"),
        ({"column": "share", "row": "carrier = 'UA'", "unit": "percent"}, "17.4%"),
        ({"column": "mean", "row": "carrier = 'B6'", "unit": "plain"}, "9.46"),
        ({"column": "flights", "row": "carrier = 'O''Hare'"}, "12"),
        ({"kind": "sum", "column": "flights", "unit": "count"}, "113,312"),
        ({"kind": "count", "row": "flights > 100"}, "2"),
        ({"kind": "count", "row": "mean IS NULL"}, "1"),
        (
            {
                "kind": "diff",
                "column": "mean",
                "row": "carrier = 'B6'",
                "other": "mean where carrier = 'UA'",
                "decimals": 1,
            },
            "5.9",
        ),
        (
            {
                "kind": "ratio",
                "column": "flights",
                "row": "carrier = 'UA'",
                "other": "flights where carrier = 'B6'",
                "unit": "multiple",
                "decimals": 2,
            },
            "1.07×",
        ),
        (
            {
                "kind": "ratio",
                "column": "flights",
                "row": "carrier = 'UA'",
                "other": "flights where flights > 0",
                "unit": "percent",
            },
            "51.8%",
        ),
        (
            {
                "column": "flights",
                "row": "carrier = 'UA'",
                "scale": "thousands",
                "decimals": 1,
                "approx": True,
            },
            "~58.7K",
        ),
        ({"column": "carrier", "row": "flights >= 58665"}, "UA"),
        ({"column": "first", "row": "carrier = 'UA'"}, "2013-01-01"),
        ({"kind": "count", "row": "first = '2013-01-01'"}, "2"),
    ],
)
def test_figure_is_computed_from_the_rows(fields: dict[str, Any], text: str) -> None:
    figure = resolved(**fields)
    assert (figure.text, figure.checked, figure.problem) == (text, True, None)


@pytest.mark.parametrize("claimed", [17.4, 0.174, 17.42, "17.4"])
def test_claim_within_the_last_printed_place_agrees_as_percentage_or_fraction(claimed: object) -> None:
    assert resolved(column="share", row="carrier = 'UA'", unit="percent", value=claimed).checked


def test_a_wrong_claim_is_replaced_and_named() -> None:
    figure = resolved(column="flights", row="carrier = 'UA'", unit="count", value=60000)
    assert figure.text == "58,665"
    assert not figure.checked
    assert "60000" in str(figure.problem)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"step": 9, "column": "flights"}, "step 9"),
        ({"column": "flights"}, "3 rows"),
        ({"column": "planes", "row": "carrier = 'UA'"}, "planes"),
        ({"column": "flights", "row": "carrier = 'ZZ'"}, "no row"),
        ({"column": "mean", "row": "carrier = 'O''Hare'"}, "empty"),
        ({"kind": "sum", "column": "carrier"}, "numbers only"),
        ({"column": "flights", "row": "carrier ~ 'UA'"}, "not understood"),
        ({"kind": "ratio", "column": "flights", "row": "carrier = 'UA'"}, "other"),
    ],
)
def test_figure_that_cannot_be_computed_says_why(fields: dict[str, Any], why: str) -> None:
    figure = resolved(**fields)
    assert figure.text is None
    assert why in str(figure.problem)


def test_a_cut_result_is_never_counted_or_summed() -> None:
    cut = a_step(caveats=[Caveat(kind=CaveatKind.TRUNCATED, text="cut")])
    assert "only part" in str(resolved(cut, kind="sum", column="flights").problem)
    assert resolved(cut, column="flights", row="carrier = 'UA'").checked


def test_references_are_written_and_missing_ones_reported() -> None:
    figures = [resolved(column="flights", row="carrier = 'UA'", unit="count")]
    assert write("{{f1}} flights, {{ f1 }} again, {{f2}} lost", figures) == (
        "58,665 flights, 58,665 again, [?] lost",
        ["f2"],
    )


def test_recommendation_figures_refer_to_insight_figures() -> None:
    insight = {"i1": {"f1": resolved(column="flights", row="carrier = 'UA'", unit="count")}}
    one = resolve_reference(
        Figure.model_validate({"id": "r", "kind": "ref", "refs": [{"insight": "i1", "figure": "f1"}]}),
        insight,
    )
    assert (one.text, one.checked) == ("58,665", True)
    two = [{"insight": "i1", "figure": "f1"}] * 2
    assert (
        resolve_reference(Figure.model_validate({"id": "r", "kind": "sum", "refs": two}), insight).text
        == "117,330"
    )
    lost = resolve_reference(
        Figure.model_validate({"id": "r", "refs": [{"insight": "x", "figure": "f1"}]}), insight
    )
    assert lost.text is None
    assert lost.problem


def test_typed_numbers_are_unchecked_unless_a_cell_shows_them() -> None:
    prose = ["UA flew 58,665 times in 2013, 17.4% of all, 3 carriers, but 12.5% were late and 999 were not"]
    assert unchecked_numbers(prose, [a_step()]) == ["12.5%", "999"]


def test_row_filter_terms_are_joined_and_columns_may_be_quoted() -> None:
    rows = [{"a b": 1, "c": "x AND y"}, {"a b": 2, "c": "z"}]
    assert matching(rows, "\"a b\" >= 1 AND c = 'x AND y'") == [rows[0]]
    assert matching(rows, None) == rows
    with pytest.raises(FilterError):
        matching(rows, "nope = 1")
