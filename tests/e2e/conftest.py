"""The cluster, what runs need beside it, an operator, and a namespace with a warehouse for each test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.e2e.dumps import dump
from tests.e2e.kubernetes import Kubernetes, until
from tests.e2e.services import Services, services, shop

ROOT = Path(__file__).parents[2]
OUT = Path(os.environ.get("ASSAY_E2E_OUT", str(ROOT / "out" / "e2e")))
"""Where logs go, and the dumps of failed tests."""
FAILED = pytest.StashKey[bool]()
SECRET = "assay"
ENDED = ("Succeeded", "Failed", "Cancelled")


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
def warehouse(beside: Services) -> Iterator[str]:
    with shop(beside.postgres) as database:
        yield database


@dataclass(slots=True)
class OperatorProcess:
    """An operator outside of the cluster, which a test can kill and start again."""

    environment: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "assay_operator"], env=dict(self.environment), stdout=out, stderr=out
            )

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(timeout=10)
            self.process = None


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
        "AGENT_ENVIRONMENT_SECRET": SECRET,
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


@dataclass(frozen=True, slots=True)
class Tenant:
    """One namespace, where a test does what a user does."""

    kubernetes: Kubernetes
    beside: Services
    namespace: str
    database: str

    def manifest(self, name: str = "shop", **spec: Any) -> dict[str, Any]:
        """A run of its inline project over the small shop, with the scout as the model."""
        project = {
            "name": "The shop",
            "datasources": [
                {
                    "id": "default",
                    "provider": "postgres",
                    "config": self.beside.warehouse_config(self.database),
                }
            ],
            "llm": {
                "provider": "openai-compatible",
                "model": "scout",
                "config": {"base_url": self.beside.model},
            },
        }
        return {
            "apiVersion": "assay.dev/v1alpha1",
            "kind": "DiscoveryRun",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"project": project, "maxSteps": 8, **spec},
        }

    def apply(self, name: str = "shop", **spec: Any) -> None:
        self.kubernetes.apply(self.manifest(name, **spec))

    def run(self, name: str = "shop") -> dict[str, Any]:
        return self.kubernetes.get("discoveryrun", name, namespace=self.namespace)

    def patch(self, change: Mapping[str, Any], name: str = "shop") -> None:
        self.kubernetes.patch("discoveryrun", name, {"spec": change}, namespace=self.namespace)

    def phase(self, *wanted: str, name: str = "shop", limit_s: float = 90) -> dict[str, Any]:
        """The run as soon as it is in one of these phases; another end than these is said at once."""

        def look() -> dict[str, Any] | None:
            body = self.run(name)
            phase = (body.get("status") or {}).get("phase")
            if phase in ENDED and phase not in wanted:
                raise AssertionError(
                    f"{name} is {phase}: {body['status'].get('reason')} {body['status'].get('message')}"
                )
            return body if phase in wanted else None

        return until(look, what=f"{name} {' or '.join(wanted)}", limit_s=limit_s)

    def condition(self, kind: str, name: str = "shop") -> dict[str, Any]:
        found = {one["type"]: one for one in (self.run(name).get("status") or {}).get("conditions", [])}
        return dict(found.get(kind) or {})


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
    warehouse: str,
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
        yield Tenant(kubernetes, beside, namespace, warehouse)
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
