"""What a failed test leaves to be read: logs of pods, objects and events of its namespace. Never a Secret."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tests.e2e.kubernetes import KubectlError, Kubernetes

KINDS = ("discoveryruns", "jobs", "pods", "events")


def dump(kubernetes: Kubernetes, namespace: str, folder: Path) -> None:
    """One folder per namespace."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        with suppress(KubectlError):
            (folder / f"{kind}.yaml").write_text(
                kubernetes.kubectl("get", kind, "-n", namespace, "-o", "yaml")
            )
    with suppress(KubectlError):
        for pod in kubernetes.list("pods", namespace=namespace):
            name = pod["metadata"]["name"]
            with suppress(KubectlError):
                (folder / f"{name}.log").write_text(
                    kubernetes.kubectl("logs", name, "-n", namespace, "--all-containers")
                )
