"""However many attempts wait, the API server is asked about them at a bounded rate."""

from __future__ import annotations

from typing import Any, cast

from assay_operator.cluster import Cluster
from assay_operator.events import AGAIN_S, PER_S, Events


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Asked:
    """Counts questions; the answer names the question's number."""

    def __init__(self) -> None:
        self.uids: list[str] = []

    def events(self, _namespace: str, uid: str) -> list[dict[str, Any]]:
        self.uids.append(uid)
        return [{"reason": "FailedMount", "message": str(len(self.uids)), "lastTimestamp": ""}]


def test_object_is_asked_about_again_after_a_while_and_the_answer_holds_between() -> None:
    clock, asked = Clock(), Asked()
    events = Events(cast(Cluster, asked), monotonic=clock)
    [first] = events.about("team", "u-1")
    clock.now += AGAIN_S / 2
    assert events.about("team", "u-1") == (first,)
    clock.now += AGAIN_S
    [second] = events.about("team", "u-1")
    assert (first.message, second.message) == ("1", "2")


def test_thousands_that_wait_are_asked_about_a_few_times_a_second() -> None:
    clock, asked = Clock(), Asked()
    events = Events(cast(Cluster, asked), monotonic=clock)
    seconds = 60
    for _ in range(seconds):
        for number in range(1_000):
            events.about("team", f"u-{number}")
        clock.now += 1.0
    assert PER_S * (seconds - 2) <= len(asked.uids) <= PER_S * (seconds + 2)
    assert len(set(asked.uids)) >= PER_S * AGAIN_S
