"""The work queue and the cache: a key is in one place, an old body never wins, a pod that is gone is remembered."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay_operator.cache import GONE_KEPT_S, Cache
from assay_operator.workqueue import LONGEST_PAUSE_S, WorkQueue


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_key_that_is_added_while_a_worker_has_it_comes_again_afterwards() -> None:
    queue = WorkQueue[str](monotonic=Time())
    queue.add("a")
    assert queue.get(timeout_s=0) == "a"
    queue.add("a")
    assert queue.get(timeout_s=0) is None
    queue.done("a")
    assert queue.get(timeout_s=0) == "a"


def test_key_that_is_put_off_comes_in_time_and_sooner_when_something_happens() -> None:
    time = Time()
    queue = WorkQueue[str](monotonic=time)
    queue.add("a", after_s=10)
    assert queue.get(timeout_s=0) is None
    time.now = 10
    assert queue.get(timeout_s=0) == "a"
    queue.done("a", again_s=60)
    queue.add("a")
    assert queue.get(timeout_s=0) == "a"
    queue.done("a")
    time.now = 100
    assert queue.get(timeout_s=0) is None


def test_key_that_fails_comes_again_after_a_growing_pause() -> None:
    time = Time()
    queue = WorkQueue[str](monotonic=time)
    queue.add("a")
    pauses = []
    for _ in range(12):
        assert queue.get(timeout_s=0) == "a"
        queue.done("a", failed=True)
        before = time.now
        while queue.depth() == 0 and time.now < before + 2 * LONGEST_PAUSE_S:
            time.now += 0.1
            queue.add("other", after_s=0)
            other = queue.get(timeout_s=0)
            if other == "a":
                queue.add("a")
                queue.done("a")
                other = queue.get(timeout_s=0)
            if other is not None:
                queue.done(other)
        pauses.append(time.now - before)
    assert pauses[0] < 1
    assert max(pauses) <= LONGEST_PAUSE_S * 1.3
    assert pauses[-1] > pauses[0]


@given(st.lists(st.tuples(st.sampled_from(["add", "get", "done"]), st.sampled_from("abc")), max_size=60))
def test_no_key_is_ever_with_two_workers_and_none_is_lost(steps: list[tuple[str, str]]) -> None:
    queue, held, wanted = WorkQueue[str](monotonic=Time()), set[str](), set[str]()
    for step, key in steps:
        if step == "add":
            queue.add(key)
            wanted.add(key)
        elif step == "get":
            found = queue.get(timeout_s=0)
            if found is not None:
                assert found not in held
                held.add(found)
                wanted.discard(found)
        elif key in held:
            held.discard(key)
            queue.done(key)
    for key in list(held):
        queue.done(key)
    left = set()
    while (found := queue.get(timeout_s=0)) is not None:
        left.add(found)
        queue.done(found)
    assert wanted <= left


def a_body(kind: str, version: int, *, uid: str = "x", name: str = "shop") -> dict[str, Any]:
    labels = {"assay.dev/run": "shop", "assay.dev/run-uid": "u-1", "assay.dev/attempt": "1"}
    return {
        "kind": kind,
        "metadata": {"namespace": "t", "name": name, "uid": uid, "resourceVersion": str(version), "labels": labels},
        "spec": {},
    }  # fmt: skip


def test_older_body_never_replaces_a_newer_one() -> None:
    cache = Cache()
    cache.saw_run(a_body("DiscoveryRun", 9))
    cache.saw_run(a_body("DiscoveryRun", 7))
    found = cache.run(("t", "shop"))
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "9"
    cache.saw_run(a_body("DiscoveryRun", 1, uid="created-again"))
    found = cache.run(("t", "shop"))
    assert found is not None
    assert found["metadata"]["uid"] == "created-again"


def test_late_word_of_a_deletion_does_not_take_the_object_that_came_after() -> None:
    cache = Cache()
    cache.saw_run(a_body("DiscoveryRun", 2, uid="second"))
    cache.saw_run(a_body("DiscoveryRun", 1, uid="first"), deleted=True)
    assert cache.run(("t", "shop")) is not None


def test_time_at_which_a_pod_s_deletion_was_asked_for_outlives_the_kubelet_s_last_word() -> None:
    cache = Cache()
    asked, last = a_body("Pod", 2, uid="pod"), a_body("Pod", 3, uid="pod")
    asked["metadata"] |= {"deletionTimestamp": "2026-12-01T12:00:30Z", "deletionGracePeriodSeconds": 30}
    last["metadata"] |= {"deletionTimestamp": "2026-12-01T12:00:31Z", "deletionGracePeriodSeconds": 0}
    cache.saw_pod(a_body("Pod", 1, uid="pod"))
    cache.saw_pod(asked)
    cache.saw_pod(last, deleted=True)
    [(kept, gone)] = cache.pods("u-1", 1)
    assert gone
    assert kept["metadata"]["deletionTimestamp"] == "2026-12-01T12:00:30Z"
    assert kept["metadata"]["deletionGracePeriodSeconds"] == 30


def test_pod_that_is_gone_is_remembered_until_the_attempt_is_settled_or_too_old() -> None:
    time = Time()
    cache = Cache(monotonic=time)
    cache.saw_pod(a_body("Pod", 1, uid="pod"))
    cache.saw_pod(a_body("Pod", 2, uid="pod"), deleted=True)
    assert [gone for _, gone in cache.pods("u-1", 1)] == [True]
    assert cache.pods("u-1", 2) == []
    time.now = GONE_KEPT_S + 1
    cache.prune()
    assert cache.pods("u-1", 1) == []
