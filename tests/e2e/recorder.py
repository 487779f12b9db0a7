"""Every version of a namespace's runs that a watcher sees, as `kubectl get --watch` tells it."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.kubernetes import KUBECTL, Kubernetes
from tests.kstatus import AGREES, argocd, kstatus


@contextmanager
def both_readers_agree(kubernetes: Kubernetes, namespace: str) -> Iterator[None]:
    """At the end: Argo CD's health check and a kstatus reader said the same of every version that there was."""
    command = [
        str(KUBECTL), "--kubeconfig", str(kubernetes.kubeconfig), "get", "discoveryruns", "-n", namespace,
        "--watch", "-o", "json",
    ]  # fmt: skip
    with tempfile.TemporaryFile("w+") as said:
        watching = subprocess.Popen(command, stdout=said, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            watching.terminate()
            watching.wait(timeout=10)
        said.seek(0)
        for body in _documents(said.read()):
            health, message = argocd(body)
            assert AGREES[health] == kstatus(body) or kstatus(body) == "Terminating", (
                health,
                message,
                body.get("status"),
            )


def _documents(text: str) -> list[dict[str, Any]]:
    """JSON documents one after the other; the last may be cut."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while (start := text.find("{", at)) >= 0:
        try:
            body, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            break
        found.append(body)
    return found
