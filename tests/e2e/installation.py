"""The operator as Helm installs it: a Deployment under its own ServiceAccount, which a test can stop, start, freeze and ask."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.kubernetes import KubectlError, Kubernetes, until

CHARTS = Path(__file__).parents[2] / "charts"
HELM = os.environ.get("ASSAY_E2E_HELM", "helm")


class HelmFailed(AssertionError):
    """What helm said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One release of the chart `assay`."""

    kubernetes: Kubernetes
    namespace: str
    release: str = "assay"

    def install(
        self, values: Mapping[str, Any], *, chart: Path = CHARTS / "assay", wait: bool = True
    ) -> None:
        """Install, or upgrade, and wait until it is ready."""
        patience = ["--wait", "--timeout", "120s"] if wait else []
        self.helm(
            "upgrade", "--install", self.release, str(chart), "-n", self.namespace, "--create-namespace",
            *patience, "-f", "-", given=yaml.safe_dump(dict(values)),
        )  # fmt: skip

    def uninstall(self) -> None:
        self.helm("uninstall", self.release, "-n", self.namespace, "--wait", "--timeout", "180s")

    def helm(self, *arguments: str, given: str | None = None) -> str:
        done = subprocess.run(
            [HELM, "--kubeconfig", str(self.kubernetes.kubeconfig), *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise HelmFailed(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    @property
    def role(self) -> str:
        """Name of the ClusterRole of an installation for the whole cluster."""
        return f"{self.namespace}-{self.release}"

    # ------------------------------------------------------------------------------------------------ what befalls it

    def stop(self) -> None:
        """No operator is there any more; it has got a SIGTERM."""
        self.scale(0)
        until(lambda: not self.pods(), what="the end of the operator", limit_s=60)

    def start(self) -> None:
        self.scale(1)
        self.ready()

    def scale(self, replicas: int) -> None:
        self.kubernetes.kubectl(
            "scale", f"deployment/{self.release}", "-n", self.namespace, f"--replicas={replicas}"
        )

    def ready(self) -> None:
        self.kubernetes.kubectl(
            "rollout", "status", f"deployment/{self.release}", "-n", self.namespace, "--timeout=90s",
            timeout_s=100,
        )  # fmt: skip

    def ready_replicas(self) -> int:
        found = self.kubernetes.get("deployment", self.release, namespace=self.namespace)
        return int(found["status"].get("readyReplicas") or 0)

    def replace_pods(self) -> None:
        """The pods are gone at once, and others take their place."""
        for pod in self.pods():
            self.kubernetes.kubectl(
                "delete", "pod", pod["metadata"]["name"], "-n", self.namespace, "--grace-period=0", "--force",
                "--ignore-not-found",
            )  # fmt: skip

    def signal(self, number: signal.Signals) -> None:
        """A signal to the operator's process, as the kernel would send it. On the built cluster only: its processes are ours to see."""
        for pid in self.processes():
            os.kill(pid, number)

    # ------------------------------------------------------------------------------------------------ what it shows

    def pods(self) -> list[dict[str, Any]]:
        return self.kubernetes.list(
            "pods", namespace=self.namespace, labels="app.kubernetes.io/name=assay-operator"
        )

    def restarts(self) -> int:
        return sum(
            container["restartCount"]
            for pod in self.pods()
            for container in (pod["status"].get("containerStatuses") or [])
        )

    def logs(self) -> str:
        """Of every operator pod, and of the container before where one has died."""
        said = []
        for pod in self.pods():
            for previous in ("--previous=true", "--previous=false"):
                try:
                    said.append(
                        self.kubernetes.kubectl(
                            "logs", pod["metadata"]["name"], "-n", self.namespace, previous
                        )
                    )
                except KubectlError:
                    continue  # there was none before
        return "\n".join(said)

    def metrics(self) -> str:
        path = f"/api/v1/namespaces/{self.namespace}/services/{self.release}-metrics:http/proxy/metrics"
        return self.kubernetes.kubectl("get", "--raw", path)

    def last_exit_code(self) -> int | None:
        """Of the container that has ended most lately, if one has."""
        for pod in self.pods():
            for container in pod["status"].get("containerStatuses") or []:
                for state in (container["state"], container.get("lastState") or {}):
                    if "terminated" in state:
                        return int(state["terminated"]["exitCode"])
        return None

    def processes(self) -> list[int]:
        """On the built cluster only."""
        uids = {pod["metadata"]["uid"].replace("-", "_") for pod in self.pods()} | {
            pod["metadata"]["uid"] for pod in self.pods()
        }
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                command = (folder / "cmdline").read_bytes()
                groups = (folder / "cgroup").read_text()
            except OSError:
                continue
            if b"assay-operator" in command and any(uid in groups for uid in uids):
                found.append(int(folder.name))
        return found
