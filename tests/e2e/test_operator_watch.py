"""The watch freezes, is forbidden, or loses its API server: it heals by itself, or the process ends and says so."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.e2e import control_plane
from tests.e2e.kubernetes import KubectlError, until
from tests.e2e.tenant import Tenant
from tests.e2e.test_operator_killed import burst, each_succeeds_with_one_job

HEALS_S = 75
pytestmark = pytest.mark.built


def test_frozen_watch_heals(tenant: Tenant) -> None:
    [process] = tenant.operator.processes()
    with control_plane.frozen_connections(process) as frozen:
        assert frozen >= 3
        started = time.monotonic()
        tenant.apply()
        tenant.phase("Pending", "Starting", "Running", "Succeeded", limit_s=HEALS_S)
        assert time.monotonic() - started > 3  # it was frozen indeed
        tenant.phase("Succeeded")
    assert tenant.operator.processes() == [process]


def test_watch_that_is_forbidden_ends_the_process_with_1_and_heals_once_it_is_allowed(tenant: Tenant) -> None:
    role = tenant.kubernetes.get("clusterrole", tenant.operator.role, namespace=tenant.namespace)
    metadata = {name: role["metadata"][name] for name in ("name", "labels", "annotations")}
    role = {**role, "metadata": metadata}
    rules = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "watch"]} for rule in role["rules"]]
    _as_helm(tenant, {**role, "rules": rules})
    try:
        tenant.operator.replace_pods()
        code = until(tenant.operator.last_exit_code, what="the end of the operator", limit_s=90)
        assert code == 1
        assert "discoveryruns" in tenant.operator.logs()
    finally:
        _as_helm(tenant, role)
        tenant.operator.replace_pods()
        tenant.operator.ready()
    tenant.apply()
    tenant.phase("Succeeded")


def test_api_server_restarted_under_load_loses_no_run(tenant: Tenant) -> None:
    names = burst(tenant)
    for _ in range(2):
        time.sleep(4)
        control_plane.restart("kube-apiserver")
        until(lambda: _answers(tenant), what="the API server", limit_s=180)
    each_succeeds_with_one_job(tenant, names)


def _as_helm(tenant: Tenant, body: dict[str, Any]) -> None:
    """Under Helm's name: the next upgrade meets no other owner of the fields."""
    tenant.kubernetes.kubectl(
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=helm",
        "-f",
        "-",
        given=json.dumps(body),
    )


def _answers(tenant: Tenant) -> bool:
    try:
        return tenant.kubernetes.kubectl("get", "--raw", "/readyz") == "ok"
    except KubectlError:
        return False
