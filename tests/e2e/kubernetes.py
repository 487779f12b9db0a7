"""The cluster as a test sees it: `kubectl`, objects as dicts, and waiting with a limit."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

Found = TypeVar("Found")
KUBECTL = Path(sys.executable).with_name("kubectl")


class KubectlError(AssertionError):
    """What kubectl said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubernetes:
    """`host` is an address of this machine that pods reach."""

    kubeconfig: Path
    host: str

    def kubectl(self, *arguments: str, given: str | None = None, timeout_s: float = 60) -> str:
        done = subprocess.run(
            [str(KUBECTL), "--kubeconfig", str(self.kubeconfig), *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode:
            raise KubectlError(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    def apply(self, *objects: Mapping[str, Any], server_dry_run: bool = False) -> str:
        text = yaml.safe_dump_all([dict(one) for one in objects])
        return self.kubectl("apply", "-f", "-", *(["--dry-run=server"] if server_dry_run else []), given=text)

    def get(self, kind: str, name: str, *, namespace: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "-n", namespace, "-o", "json"))
        return found

    def find(self, kind: str, name: str, *, namespace: str) -> dict[str, Any] | None:
        try:
            return self.get(kind, name, namespace=namespace)
        except KubectlError as error:
            if "NotFound" in str(error):
                return None
            raise

    def list(self, kind: str, *, namespace: str, labels: str = "") -> list[dict[str, Any]]:
        chosen = ["-l", labels] if labels else []
        found = json.loads(self.kubectl("get", kind, "-n", namespace, *chosen, "-o", "json"))
        return list(found["items"])

    def patch(self, kind: str, name: str, change: Mapping[str, Any], *, namespace: str) -> None:
        self.kubectl("patch", kind, name, "-n", namespace, "--type=merge", "-p", json.dumps(change))

    def delete(self, kind: str, name: str, *, namespace: str, wait: bool = False) -> None:
        self.kubectl("delete", kind, name, "-n", namespace, f"--wait={str(wait).lower()}")


def until(
    look: Callable[[], Found | None], *, what: str, limit_s: float = 60.0, pause_s: float = 0.25
) -> Found:
    """Look until there is something; after `limit_s` the test fails and says what it waited for."""
    end = time.monotonic() + limit_s
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {limit_s:g} s")
        time.sleep(pause_s)
