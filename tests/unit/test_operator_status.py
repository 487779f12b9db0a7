"""What the status keeps that its run document no longer says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from assay_core.model.run import DiscoveryRun, RunLifecycleEvent, RunStatus
from assay_operator.decide import Asked, Observed, decide
from assay_operator.findings import FailureClass, Finding, Going, Over, failed
from assay_operator.resource import Object
from assay_operator.status import status_of

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def a_document(*statuses: tuple[str, int, str], **said: Any) -> DiscoveryRun:
    lifecycle = [
        RunLifecycleEvent(status=RunStatus(status), at=NOW, attempt=attempt, reason=reason)
        for status, attempt, reason in statuses
    ]
    status, attempt, _ = statuses[-1]
    return DiscoveryRun(
        id="r", project_id="p", attempt=attempt, status=RunStatus(status), started_at=NOW, updated_at=NOW,
        lifecycle=lifecycle, **said,
    )  # fmt: skip


def told(
    before: dict[str, Any], document: DiscoveryRun | None, finding: Finding | None, *, nonce: int = 0
) -> dict[str, Any]:
    metadata = {"name": "shop", "namespace": "team", "uid": "u-1", "generation": 1}
    spec = {"projectRef": {"name": "p"}, "resumeNonce": nonce}
    run = Object.read({"metadata": metadata, "spec": spec, "status": before})
    seen = Observed(now=NOW, asked=Asked(resume=run.asks_resume), run=document, finding=finding)
    return status_of(run, seen, decide(seen))


def test_attempt_is_told_by_the_verdict_on_it_also_when_the_next_one_runs() -> None:
    stopped = ("failed", 1, "Interrupted: stopped on request")
    evicted = failed(9, FailureClass.INFRASTRUCTURE, "EvictionByEvictionAPI", "drained")
    first = told({}, a_document(("pending", 1, "first"), ("running", 1, "started"), stopped), evicted)
    assert first["attempts"][0]["reason"] == "EvictionByEvictionAPI"
    document = a_document(
        ("pending", 1, "first"), stopped, ("pending", 2, "retry"), ("running", 2, "started")
    )
    second = told(first, document, Going(phase="Running"))
    assert [one.get("reason") for one in second["attempts"]] == ["EvictionByEvictionAPI", None]


def test_run_that_succeeded_shows_the_step_it_came_to() -> None:
    running = told({}, a_document(("running", 1, "started"), last_checkpoint_step=7), Going(phase="Running"))
    assert running["progress"]["step"] == 7
    done = told(running, a_document(("completed", 1, "completed")), Over(row=0, result="Succeeded"))
    assert done["progress"]["step"] == 7


def test_nonce_that_an_object_is_created_with_asks_for_no_resume() -> None:
    created = told({"observedGeneration": -1}, None, None, nonce=5)
    assert created["observedResumeNonce"] == 5
    failure = failed(6, FailureClass.RESOURCE, "OOMKilled", "137")
    ended = told(created, a_document(("failed", 1, "OOMKilled")), failure, nonce=5)
    assert ended["phase"] == "Failed"


def test_resume_of_a_run_that_succeeded_is_answered_by_a_no() -> None:
    done = told({}, a_document(("completed", 1, "completed")), Over(row=0, result="Succeeded"))
    asked = told(done, a_document(("completed", 1, "completed")), Over(row=0, result="Succeeded"), nonce=1)
    assert (asked["phase"], asked["reason"], asked["observedResumeNonce"]) == ("Succeeded", "NotFailed", 1)
    again = told(asked, a_document(("completed", 1, "completed")), Over(row=0, result="Succeeded"), nonce=1)
    assert again["reason"] == "Succeeded"
