"""Events tell each change of a run once, under a documented reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from assay_operator.notices import REASONS, event_of, notices
from assay_operator.resource import Object


def run_with(status: Mapping[str, Any], **spec: Any) -> Object:
    metadata = {"name": "shop", "namespace": "team", "uid": "u-1", "generation": 3}
    return Object.read(
        {"metadata": metadata, "spec": {"projectRef": {"name": "p"}, **spec}, "status": dict(status)}
    )


def stalled(truth: str) -> list[dict[str, str]]:
    return [{"type": "Stalled", "status": truth}]


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("AttemptStarted", {}, {"phase": "Starting", "attempt": 1, "job": {"name": "shop-a1"}}, "Job shop-a1"),
    ("Succeeded", {"phase": "Running"}, {"phase": "Succeeded", "reason": "Succeeded"}, "the discovery is saved"),
    ("Failed", {"phase": "Running"}, {"phase": "Failed", "reason": "OOMKilled", "message": "137", "conditions": stalled("True")}, "OOMKilled: 137"),
    ("Retrying", {"phase": "Running"}, {"phase": "Retrying", "reason": "Backoff", "message": "soon"}, "Backoff: soon"),
    ("Cancelled", {"phase": "Cancelling"}, {"phase": "Cancelled", "reason": "Cancelled"}, REASONS["Cancelled"]),
    ("Suspended", {"phase": "Suspending"}, {"phase": "Suspended", "reason": "Suspended"}, REASONS["Suspended"]),
    ("Stalled", {"phase": "Starting"}, {"phase": "Starting", "reason": "QuotaExceeded", "message": "pods=0", "conditions": stalled("True")}, "QuotaExceeded: pods=0"),
    ("Unstalled", {"phase": "Starting", "conditions": stalled("True")}, {"phase": "Running", "reason": "Running", "conditions": stalled("False")}, "Running"),
    ("Waiting", {"phase": "Pending"}, {"phase": "Pending", "reason": "ProjectBusy", "message": "its turn"}, "ProjectBusy: its turn"),
    ("ResumeRefused", {"phase": "Failed", "observedResumeNonce": 0}, {"phase": "Failed", "reason": "NoCheckpoint", "message": "no rows", "observedResumeNonce": 1}, "NoCheckpoint: no rows"),
    ("PurgeFailed", {"phase": "Cancelling"}, {"phase": "Cancelling", "purge": {"error": "mongo"}}, "mongo"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "before", "after", "text"), CHANGES, ids=[one[0] for one in CHANGES])
def test_each_change_is_told_once(
    reason: str, before: dict[str, Any], after: dict[str, Any], text: str
) -> None:
    nonce = after.get("observedResumeNonce", 0)
    [notice] = notices(run_with(before, resumeNonce=nonce), after)
    assert (notice.reason, notice.message) == (reason, text)
    assert notices(run_with(after, resumeNonce=nonce), after) == []


def test_every_documented_reason_has_a_case() -> None:
    assert {one[0] for one in CHANGES} | {"ResumeNonceIgnored"} == set(REASONS)


def test_lower_nonce_is_told_when_it_is_written() -> None:
    status = {"phase": "Succeeded", "observedResumeNonce": 5, "observedGeneration": 2}
    [notice] = notices(run_with(status, resumeNonce=2), {**status, "observedGeneration": 3})
    assert notice.reason == "ResumeNonceIgnored"
    assert "5 was answered already" in notice.message
    assert notices(run_with({**status, "observedGeneration": 3}, resumeNonce=2), status) == []


def test_same_change_has_the_same_name_and_another_attempt_another() -> None:
    run = run_with({"phase": "Running"})
    [notice] = notices(run, {"phase": "Failed", "reason": "OOMKilled"})
    first, again, later = (event_of(run, attempt, notice, at="2026-12-01T12:00:00Z") for attempt in (1, 1, 2))
    assert first == again
    assert first["metadata"]["name"] != later["metadata"]["name"]
    assert first["involvedObject"]["uid"] == "u-1"
