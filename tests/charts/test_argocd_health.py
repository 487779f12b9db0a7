"""Argo CD's health check of the chart and a kstatus reader agree on every status that the operator can write."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from assay_core.model.run import DiscoveryRun, RunStatus
from assay_operator.decide import Asked, Observed, decide
from assay_operator.findings import FailureClass, Finding, Going, Over, failed, stalled
from assay_operator.resource import Object
from assay_operator.status import status_of
from tests.kstatus import AGREES, argocd, kstatus

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
FINDINGS: dict[str, Finding | None] = {
    "nothing": None,
    "queued": Going(phase="Queued"),
    "starting": Going(phase="Starting"),
    "running": Going(phase="Running"),
    "stalled": stalled(22, FailureClass.CAPACITY, "QuotaExceeded", "pods=0"),
    "failed": failed(6, FailureClass.RESOURCE, "OOMKilled", "137"),
    "suspended": Over(row=1, result="Suspended"),
    "succeeded": Over(row=0, result="Succeeded"),
    "cancelled": Over(row=0, result="Cancelled"),
}


def body_of(status: str | None, finding: Finding | None, *, suspend: bool, cancel: bool) -> dict[str, Any]:
    metadata = {"name": "shop", "namespace": "team", "uid": "u-1", "generation": 3}
    body: dict[str, Any] = {
        "metadata": metadata,
        "spec": {"projectRef": {"name": "p"}, "suspend": suspend, "cancel": cancel},
    }
    run = None
    if status is not None:
        run = DiscoveryRun(
            id="r", project_id="p", attempt=1, status=RunStatus(status), started_at=NOW, updated_at=NOW
        )
    seen = Observed(now=NOW, asked=Asked(suspend=suspend, cancel=cancel), run=run, finding=finding)
    body["status"] = status_of(Object.read(body), seen, decide(seen))
    return body


@pytest.mark.parametrize("cancel", [False, True], ids=["", "cancel"])
@pytest.mark.parametrize("suspend", [False, True], ids=["", "suspend"])
@pytest.mark.parametrize("finding", list(FINDINGS))
@pytest.mark.parametrize("status", [None, *(status.value for status in RunStatus)])
def test_both_readers_agree(status: str | None, finding: str, *, suspend: bool, cancel: bool) -> None:
    body = body_of(status, FINDINGS[finding], suspend=suspend, cancel=cancel)
    health, message = argocd(body)
    assert AGREES[health] == kstatus(body), (health, message, body["status"])


@pytest.mark.parametrize(
    ("status", "finding", "said", "health"),
    [
        ("running", "running", {}, "Progressing"),
        ("running", "stalled", {}, "Degraded"),
        ("failed", "failed", {}, "Degraded"),
        ("failed", "suspended", {"suspend": True}, "Suspended"),
        ("completed", "succeeded", {}, "Healthy"),
        ("cancelled", "cancelled", {"cancel": True}, "Healthy"),
    ],
)
def test_word_for_each_end(status: str, finding: str, said: dict[str, bool], health: str) -> None:
    body = body_of(
        status, FINDINGS[finding], suspend=said.get("suspend", False), cancel=said.get("cancel", False)
    )  # fmt: skip
    found, message = argocd(body)
    assert found == health
    assert message


def test_object_that_nobody_has_seen_or_that_has_changed_is_in_progress() -> None:
    fresh = {"metadata": {"generation": 1}, "status": {"observedGeneration": -1}}
    assert argocd(fresh)[0] == "Progressing"
    assert kstatus(fresh) == "InProgress"
    changed = body_of("completed", FINDINGS["succeeded"], suspend=False, cancel=False)
    changed["metadata"]["generation"] = 4
    assert argocd(changed) == ("Progressing", "the operator has not seen the last change yet")
    assert kstatus(changed) == "InProgress"
