"""What two areas tell from the same steps stands once in a discovery."""

from __future__ import annotations

from assay_agent.discovery.insights import without_repeats
from tests.builders import an_analysis, an_insight


def test_second_telling_is_left_out_and_counted() -> None:
    first, again = (
        an_insight(name="JFK is late", source_steps=[3, 1]),
        an_insight(name="JFK  is LATE", source_steps=[1, 3]),
    )
    other = an_insight(name="JFK is late", source_steps=[2])
    one, two = without_repeats(
        [
            an_analysis("a", insights=[first], insight_count=1),
            an_analysis("b", insights=[again, other], insight_count=2),
        ]
    )
    assert [insight.id for insight in one.insights] == [first.id]
    assert [insight.id for insight in two.insights] == [other.id]
    assert (two.insight_count, two.insights_repeated, one.insights_repeated) == (1, 1, 0)


def test_areas_without_repeats_stay_as_they_are() -> None:
    areas = [an_analysis("a", insights=[an_insight()]), an_analysis("b", error="broken")]
    assert list(without_repeats(areas)) == areas
