"""The cluster, what runs need beside it, an operator, and a namespace with a warehouse for each test."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.e2e.dumps import dump
from tests.e2e.installation import CHARTS, Installation
from tests.e2e.kubernetes import Kubernetes
from tests.e2e.recorder import both_readers_agree
from tests.e2e.services import Services, services, shop
from tests.e2e.tenant import Tenant

ROOT = Path(__file__).parents[2]
OUT = Path(os.environ.get("ASSAY_E2E_OUT", str(ROOT / "out" / "e2e")))
"""Where logs go, and the dumps of failed tests."""
FAILED = pytest.StashKey[bool]()
SECRET = "assay"
SYSTEM = "assay-system"
AGENT_IMAGE = os.environ.get("ASSAY_E2E_AGENT_IMAGE", "localhost/assay-agent:e2e")
OPERATOR_IMAGE = os.environ.get("ASSAY_E2E_OPERATOR_IMAGE", "localhost/assay-operator:e2e")
PULL = os.environ.get("ASSAY_E2E_PULL_POLICY", "Never")


@pytest.fixture(scope="session")
def kubernetes() -> Kubernetes:
    """The cluster that `make e2e` has started, or one that is named by ASSAY_E2E_KUBECONFIG."""
    kubeconfig = os.environ.get("ASSAY_E2E_KUBECONFIG")
    host = os.environ.get("ASSAY_E2E_HOST")
    if not kubeconfig or not host:
        raise pytest.UsageError(
            "ASSAY_E2E_KUBECONFIG and ASSAY_E2E_HOST name the cluster and an address of this machine that pods reach; "
            "`make e2e` sets both"
        )
    made = Kubernetes(kubeconfig=Path(kubeconfig), host=host)
    crds = Installation(kubernetes=made, namespace="default", release="assay-crds")
    crds.install({}, chart=CHARTS / "assay-crds")
    made.kubectl("wait", "--for=condition=Established", "crd/discoveryruns.assay.dev", "--timeout=30s")
    return made


@pytest.fixture(scope="session")
def beside(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with services(kubernetes.host, tmp_path_factory.mktemp("services")) as running:
        yield running


@pytest.fixture(scope="session")
def operator(kubernetes: Kubernetes, beside: Services) -> Iterator[Installation]:
    """One operator for the whole cluster, as the chart installs it."""
    made = Installation(kubernetes=kubernetes, namespace=SYSTEM)
    kubernetes.apply(a_namespace(SYSTEM), a_secret(SYSTEM, beside))
    made.install(values())
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        yield made
    finally:
        (OUT / "operator.log").write_text(made.logs())


def values(**more: Any) -> dict[str, Any]:
    """What the tests' installation says."""
    image, _, tag = AGENT_IMAGE.rpartition(":")
    operator, _, operator_tag = OPERATOR_IMAGE.rpartition(":")
    said: dict[str, Any] = {
        "scope": "cluster",
        "stores": {"existingSecret": SECRET},
        "operator": {
            "image": {"repository": operator, "tag": operator_tag, "pullPolicy": PULL},
            "sweepInterval": "1s",
            "logLevel": "debug",
            # A second session has another Secret, which a pod that is there would not read.
            "podAnnotations": {"session": str(os.getpid())},
            # Tests taint the node.
            "tolerations": [{"operator": "Exists"}],
        },
        "agent": {
            "image": {"repository": image, "tag": tag, "pullPolicy": PULL},
            "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        },
    }
    return {**said, **more}


def a_namespace(name: str) -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def a_secret(namespace: str, beside: Services) -> dict[str, Any]:
    metadata = {"name": SECRET, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": beside.secrets}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture
def tenant(
    request: pytest.FixtureRequest,
    kubernetes: Kubernetes,
    beside: Services,
    operator: Installation,
) -> Iterator[Tenant]:
    namespace = f"t-{uuid4().hex[:8]}"
    kubernetes.apply(a_namespace(namespace), a_secret(namespace, beside))
    try:
        with shop(beside.postgres) as database, both_readers_agree(kubernetes, namespace):
            yield Tenant(kubernetes, beside, operator, namespace, database)
    finally:
        if FAILED in request.node.stash:
            dump(kubernetes, namespace, OUT / request.node.name)
            (OUT / request.node.name / "operator.log").write_text(operator.logs())
        for run in kubernetes.list("discoveryruns", namespace=namespace):
            kubernetes.kubectl(
                "annotate",
                "discoveryrun",
                run["metadata"]["name"],
                "-n",
                namespace,
                "assay.dev/skip-purge=true",
                "--overwrite",
            )
        kubernetes.kubectl("delete", "namespace", namespace, "--wait=false")
