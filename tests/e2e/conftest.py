"""The cluster, what runs need beside it, an operator, and a namespace with a warehouse for each test."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.dumps import dump
from tests.e2e.kubernetes import Kubernetes
from tests.e2e.operator_process import OperatorProcess
from tests.e2e.services import Services, services, shop
from tests.e2e.tenant import Tenant

ROOT = Path(__file__).parents[2]
OUT = Path(os.environ.get("ASSAY_E2E_OUT", str(ROOT / "out" / "e2e")))
"""Where logs go, and the dumps of failed tests."""
FAILED = pytest.StashKey[bool]()
SECRET = "assay"


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
    made.kubectl("apply", "-f", str(ROOT / "crds"))
    made.kubectl("wait", "--for=condition=Established", "crd/discoveryruns.assay.dev", "--timeout=30s")
    return made


@pytest.fixture(scope="session")
def beside(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with services(kubernetes.host, tmp_path_factory.mktemp("services")) as running:
        yield running


@pytest.fixture(scope="session")
def operator(kubernetes: Kubernetes, beside: Services) -> Iterator[OperatorProcess]:
    environment = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(kubernetes.kubeconfig),
        "MONGODB_URI": beside.mongo_uri,
        "MONGODB_DB": "assay",
        "QDRANT_URL": beside.qdrant,
        "AGENT_IMAGE": os.environ.get("ASSAY_E2E_AGENT_IMAGE", "localhost/assay-agent:e2e"),
        "AGENT_IMAGE_PULL_POLICY": "Never",
        "AGENT_ENVIRONMENT_SECRETS": SECRET,
        "OPERATOR_PORT": "0",
        "SWEEP_INTERVAL": "1s",
        "LOG_LEVEL": "debug",
    }
    OUT.mkdir(parents=True, exist_ok=True)
    made = OperatorProcess(environment=environment, log=OUT / "operator.log")
    made.start()
    try:
        yield made
    finally:
        made.kill()


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
    operator: OperatorProcess,
) -> Iterator[Tenant]:
    namespace = f"t-{uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubernetes.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET, "namespace": namespace},
            "stringData": beside.secrets,
        },
    )
    try:
        with shop(beside.postgres) as database:
            yield Tenant(kubernetes, beside, operator, namespace, database)
    finally:
        if FAILED in request.node.stash:
            dump(kubernetes, namespace, OUT / request.node.name)
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
