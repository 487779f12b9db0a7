"""No row filter and no figure can crash the engine."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assay_agent.evidence.figures import resolve
from assay_agent.evidence.filters import FilterError, matching
from assay_core.model.insight import Figure
from assay_core.model.step import ExplorationStep, StepAction

cells = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
rows = st.lists(st.fixed_dictionaries({"a": cells, "b": cells}), max_size=5)
words = st.sampled_from(
    ["a", "b", "=", "!=", "<", ">=", "AND", "'x'", "''", "1", "1.5", "IS NULL", '"a"', "c", "null", " "]
)
filters = st.lists(words, max_size=6).map(" ".join) | st.text(max_size=20)


@given(rows, filters)
@settings(max_examples=300, deadline=None)
def test_filter_gives_rows_of_the_result_or_says_why_not(table: list[dict[str, Any]], text: str) -> None:
    try:
        left = matching(table, text)
    except FilterError as error:
        assert str(error)
    else:
        assert all(row in table for row in left)


@given(
    rows,
    st.sampled_from(["cell", "sum", "count", "ratio", "diff", "ref"]),
    st.sampled_from(["count", "currency", "percent", "multiple", "plain"]),
    st.none() | filters,
    st.none() | st.sampled_from(["a", "b", "c"]),
    cells,
)
@settings(max_examples=300, deadline=None)
def test_figure_has_a_text_or_a_problem(
    table: list[dict[str, Any]], kind: str, unit: str, row: str | None, column: str | None, value: Any
) -> None:
    step = ExplorationStep(
        step=1,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        action=StepAction.QUERY_DATA,
        query_result=table,
        row_count=len(table),
    )
    claimed = value if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    figure = resolve(
        Figure.model_validate(
            {
                "id": "f",
                "step": 1,
                "kind": kind,
                "unit": unit,
                "row": row,
                "column": column,
                "other": column,
                "value": claimed,
            }
        ),
        {1: step},
    )
    assert (figure.text is not None) or figure.problem
    assert not (figure.checked and figure.problem)
