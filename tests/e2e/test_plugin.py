"""`kubectl assay` as a user types it, by the real kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.kubernetes import KUBECTL, until
from tests.e2e.tenant import Tenant


def assay(tenant: Tenant, *arguments: str, code: int = 0, **environment: str) -> str:
    """What it printed on both streams; its exit code must be `code`."""
    done = subprocess.run(
        [str(KUBECTL), "assay", *arguments, "-n", tenant.namespace],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={
            **os.environ,
            "KUBECONFIG": str(tenant.kubernetes.kubeconfig),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **environment,
        },
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def test_run_is_watched_to_its_end_and_reported(tenant: Tenant) -> None:
    tenant.apply(slow=True, maxSteps=8)
    watched = assay(tenant, "watch", "shop")
    assert "step " in watched
    assert "shop: Succeeded: the discovery is saved." in watched
    listed = assay(tenant, "runs")
    assert listed.splitlines()[0].split()[:3] == ["NAME", "PHASE", "REASON"]
    assert "Succeeded" in listed
    log = assay(tenant, "logs", "shop")
    assert all(json.loads(line) for line in log.splitlines() if line.startswith("{"))
    assert "Exploring" in log
    reported = assay(tenant, "report", "shop", MONGODB_URI=tenant.beside.mongo_direct)
    assert "insights" in reported.splitlines()[0]
    document = json.loads(assay(tenant, "report", "shop", "--json", MONGODB_URI=tenant.beside.mongo_direct))
    assert document["run_id"] == tenant.run()["status"]["runId"]


def test_why_names_the_missing_secret_whose_turn_it_is_and_what_to_type(tenant: Tenant) -> None:
    tenant.apply(secretRefs=[{"name": "later", "env": True}])
    until(
        lambda: tenant.run().get("status", {}).get("reason") == "SecretOrConfigMissing",
        what="the reason",
        limit_s=90,
    )
    text = assay(tenant, "why", "shop")
    assert "later" in text
    assert "whose turn: you" in text
    assert f"kubectl get secrets,configmaps -n {tenant.namespace}" in text


@pytest.mark.built
def test_failed_run_is_resumed_cancelled_and_purged(tenant: Tenant) -> None:
    tenant.apply(slow=True, maxSteps=40)
    tenant.at_step(2)
    tenant.kill_agent()
    tenant.phase("Failed")
    text = assay(tenant, "why", "shop")
    assert "resumable:  yes" in text
    assert f"kubectl assay resume shop -n {tenant.namespace}" in text
    assert "resumed after attempt 1" in assay(tenant, "resume", "shop")
    assert tenant.run()["spec"].get("resumeNonce", 0) == 0
    tenant.phase("Running", after_attempt=2)
    assert "there is nobody to ask; say --yes" in assay(tenant, "cancel", "shop", code=10)
    assert "cancelled, its working data is removed" in assay(tenant, "cancel", "shop", "--yes")
    assert "shop is not resumed" in assay(tenant, "resume", "shop", code=1)
    assert "shop: deleted" in assay(tenant, "purge", "shop", "--yes")
    text = assay(tenant, "why", "shop", code=10)
    assert f"there is no DiscoveryRun 'shop' in namespace {tenant.namespace}; there are: none" in text


def test_cancelled_run_answers_a_resume_at_once(tenant: Tenant) -> None:
    tenant.apply(cancel=True)
    tenant.phase("Cancelled")
    assert "it was cancelled, which is for good" in assay(tenant, "resume", "shop", code=1)
