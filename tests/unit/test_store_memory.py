"""What a project remembers after one more run: newest within the caps, nothing said twice."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from assay_core.model.project import ContextNote, HistoricalPattern, ProjectContext
from assay_core.store.memory import Lesson, merged
from tests.builders import NOON

EMPTY = ProjectContext(project_id="p")


def a_pattern(name: str, days: int = 0) -> HistoricalPattern:
    at = NOON + timedelta(days=days)
    return HistoricalPattern(id=f"a:{name}", area="a", name=name, first_seen=at, last_seen=at)


def test_the_newest_within_the_caps_are_kept() -> None:
    known = merged(EMPTY, Lesson(at=NOON, successful_queries=[f"q{n}" for n in range(150)]))
    known = merged(known, Lesson(at=NOON, successful_queries=["q149", "q60"], failed_queries=["f"] * 90))
    assert len(known.successful_queries) == 100
    assert known.successful_queries[-2:] == ["q149", "q60"]
    assert known.failed_queries == ["f"]


def test_a_pattern_seen_again_recurs_and_one_not_seen_stays() -> None:
    known = merged(EMPTY, Lesson(at=NOON, patterns=[a_pattern("x"), a_pattern("y")]))
    known = merged(known, Lesson(at=NOON, patterns=[a_pattern("x", days=3)]))
    by_name = {pattern.name: pattern for pattern in known.historical_patterns}
    assert (by_name["x"].times_seen, by_name["x"].status, by_name["x"].first_seen) == (2, "recurring", NOON)
    assert by_name["x"].last_seen == NOON + timedelta(days=3)
    assert by_name["y"].times_seen == 1


def test_the_oldest_patterns_give_way() -> None:
    known = merged(EMPTY, Lesson(at=NOON, patterns=[a_pattern(f"n{n}", days=n) for n in range(250)]))
    assert [len(known.historical_patterns), known.historical_patterns[0].name] == [200, "n50"]


def test_the_most_relevant_notes_are_kept_and_said_once() -> None:
    notes = [ContextNote(text=f"n{n % 220}", relevance=n % 220 / 220, created_at=NOON) for n in range(300)]
    known = merged(EMPTY, Lesson(at=NOON, notes=notes))
    assert len(known.notes) == 200
    assert min(note.relevance for note in known.notes) == 20 / 220


def test_failures_in_a_row_are_counted_and_forgiven() -> None:
    known = merged(merged(EMPTY, Lesson(at=NOON, succeeded=False)), Lesson(at=NOON, succeeded=False))
    assert (known.consecutive_failures, known.total_discoveries, known.first_discovery_at) == (2, 0, None)
    known = merged(known, Lesson(at=NOON))
    assert (known.consecutive_failures, known.total_discoveries, known.last_discovery_at) == (0, 1, NOON)


@given(st.lists(st.lists(st.text(max_size=3), max_size=80), max_size=6))
def test_caps_hold_whatever_is_learned(batches: list[list[str]]) -> None:
    known = EMPTY
    for batch in batches:
        lesson = Lesson(
            at=NOON, known_schemas=batch, successful_queries=batch, failed_queries=batch,
            patterns=[a_pattern(name) for name in batch],
        )  # fmt: skip
        known = merged(known, lesson)
    assert len(known.successful_queries) <= 100
    assert len(known.failed_queries) <= 50
    assert len(known.historical_patterns) <= 200
    assert len(set(known.successful_queries)) == len(known.successful_queries)
    if batches and batches[-1]:
        assert known.successful_queries[-1] == batches[-1][-1]
