"""Nothing that is read of an object is lost by keeping less of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_operator.kept import kept_job, kept_pod, kept_run
from assay_operator.resource import Object
from assay_operator.seen import job_seen, pod_seen

TEXT = st.sampled_from(
    ["", "agent", "OOMKilled", "2026-12-01T12:00:00Z", "✓ \ud800", "Failed", "True", "u-1"]
)
NUMBER = st.integers(0, 255)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


STATE = some(
    waiting=some(reason=TEXT, message=TEXT),
    running=some(startedAt=TEXT),
    terminated=some(exitCode=NUMBER, reason=TEXT, message=TEXT, finishedAt=TEXT),
)
CONTAINER = some(name=TEXT, state=STATE, lastState=STATE, imageID=TEXT)
CONDITION = some(type=TEXT, status=TEXT, reason=TEXT, message=TEXT, lastTransitionTime=TEXT)
METADATA = st.fixed_dictionaries(
    {"name": TEXT, "namespace": TEXT, "uid": TEXT},
    optional={
        "resourceVersion": st.sampled_from(["1", "20", "x"]),
        "labels": st.dictionaries(st.sampled_from(["assay.dev/run-uid", "kueue.x-k8s.io/queue-name"]), TEXT),
        "ownerReferences": st.lists(some(uid=TEXT, name=TEXT), max_size=2),
        "creationTimestamp": TEXT,
        "deletionTimestamp": TEXT,
        "deletionGracePeriodSeconds": NUMBER,
        "managedFields": st.lists(some(manager=TEXT), max_size=1),
        "annotations": st.dictionaries(TEXT, TEXT, max_size=2),
    },
)
PODS = st.fixed_dictionaries(
    {"metadata": METADATA},
    optional={
        "spec": some(
            nodeName=TEXT,
            containers=st.lists(some(name=TEXT, image=TEXT, resources=some(limits=some(memory=TEXT))), max_size=2),
        ),
        "status": some(
            phase=TEXT, reason=TEXT, message=TEXT, startTime=TEXT, podIP=TEXT,
            conditions=st.lists(CONDITION, max_size=2),
            containerStatuses=st.lists(CONTAINER, max_size=2),
            initContainerStatuses=st.lists(CONTAINER, max_size=1),
        ),
    },
)  # fmt: skip
JOBS = st.fixed_dictionaries(
    {"metadata": METADATA},
    optional={
        "spec": some(suspend=st.booleans(), template=some(spec=some(nodeName=TEXT))),
        "status": some(startTime=TEXT, active=NUMBER, conditions=st.lists(CONDITION, max_size=2)),
    },
)


@given(PODS)
def test_pod_reads_the_same(body: dict[str, Any]) -> None:
    assert pod_seen(kept_pod(body).body) == pod_seen(body)


@given(JOBS)
def test_job_reads_the_same(body: dict[str, Any]) -> None:
    assert job_seen(kept_job(body).body, owner_uid="u-1") == job_seen(body, owner_uid="u-1")


def test_run_reads_the_same_and_leaves_the_bookkeeping_of_its_writers_out() -> None:
    body = {
        "metadata": {
            "name": "shop", "namespace": "team", "uid": "u-1", "generation": 2, "resourceVersion": "7",
            "finalizers": ["assay.dev/purge"], "managedFields": [{"manager": "kubectl"}],
            "annotations": {
                "assay.dev/resume-requested-at": "now",
                "kubectl.kubernetes.io/last-applied-configuration": "{…}",
            },
        },
        "spec": {"projectRef": {"name": "p"}},
        "status": {"phase": "Running"},
    }  # fmt: skip
    kept = kept_run(body)
    assert Object.read(kept.body) == Object.read({**body, "metadata": kept.body["metadata"]})
    assert kept.body["metadata"]["annotations"] == {"assay.dev/resume-requested-at": "now"}
    assert "managedFields" not in kept.body["metadata"]
    assert (kept.uid, kept.version, kept.phase) == ("u-1", 7, "Running")


@pytest.mark.parametrize(("old", "new", "older"), [("9", "10", True), ("10", "9", False), ("x", "10", False)])
def test_versions_are_compared_as_numbers(old: str, new: str, *, older: bool) -> None:
    first, second = (kept_job({"metadata": {"uid": "u", "resourceVersion": one}}) for one in (old, new))
    assert first.older(second) is older
