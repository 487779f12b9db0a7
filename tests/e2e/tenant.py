"""One namespace, where a test does what a user does, and sees what a user cannot."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_agent.sql.guard import check
from assay_core.model.written import project_of
from assay_core.store.client import Store
from assay_operator.resource import ATTEMPT_LABEL, run_id_of
from tests.e2e.installation import Installation
from tests.e2e.kubernetes import Kubernetes, until
from tests.e2e.services import Services

ENDED = ("Succeeded", "Failed", "Cancelled")


@dataclass(frozen=True, slots=True)
class Tenant:
    """`database` is the warehouse of this test alone."""

    kubernetes: Kubernetes
    beside: Services
    operator: Installation
    namespace: str
    database: str

    # ------------------------------------------------------------------------------------------- what a user does

    def project(self, *, database: str | None = None, slow: bool = False, **said: Any) -> dict[str, Any]:
        """A project over the small shop, with the scout as the model; a slow one can be met at a step."""
        return {
            "name": "The shop",
            "datasources": [
                {
                    "id": "default",
                    "provider": "postgres",
                    "config": self.beside.warehouse_config(database or self.database),
                }
            ],
            "llm": {
                "provider": "openai-compatible",
                "model": "scout",
                "config": {"base_url": self.beside.slow_model if slow else self.beside.model},
            },
            **said,
        }

    def manifest(self, name: str = "shop", *, slow: bool = False, **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": "assay.dev/v1alpha1",
            "kind": "DiscoveryRun",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"project": self.project(slow=slow), "maxSteps": 8, **spec},
        }

    def apply(self, name: str = "shop", **spec: Any) -> None:
        self.kubernetes.apply(self.manifest(name, **spec))

    def patch(self, change: Mapping[str, Any], name: str = "shop") -> None:
        self.kubernetes.patch("discoveryrun", name, {"spec": change}, namespace=self.namespace)

    # ------------------------------------------------------------------------------------------- what a user sees

    def run(self, name: str = "shop") -> dict[str, Any]:
        return self.kubernetes.get("discoveryrun", name, namespace=self.namespace)

    def phase(
        self, *wanted: str, name: str = "shop", limit_s: float = 120, after_attempt: int = 0
    ) -> dict[str, Any]:
        """The run as soon as it is in one of these phases; another end than these is said at once."""

        def look() -> dict[str, Any] | None:
            body = self.run(name)
            status = body.get("status") or {}
            phase = status.get("phase")
            if int(status.get("attempt") or 0) < after_attempt:
                return None
            if phase in ENDED and phase not in wanted:
                raise AssertionError(f"{name} is {phase}: {status.get('reason')} {status.get('message')}")
            return body if phase in wanted else None

        return until(look, what=f"{name} {' or '.join(wanted)}", limit_s=limit_s)

    def condition(self, kind: str, name: str = "shop") -> dict[str, Any]:
        found = {one["type"]: one for one in (self.run(name).get("status") or {}).get("conditions", [])}
        return dict(found.get(kind) or {})

    def live_jobs(self) -> list[str]:
        """Jobs that have not ended."""
        return [
            job["metadata"]["name"]
            for job in self.kubernetes.list("jobs", namespace=self.namespace)
            if not any(
                one["type"] in ("Complete", "Failed") and one["status"] == "True"
                for one in (job.get("status") or {}).get("conditions", [])
            )
        ]

    # ------------------------------------------------------------------------------------- what a user cannot see

    def run_id(self, name: str = "shop") -> str:
        return run_id_of(self.run(name)["metadata"]["uid"])

    def at_step(self, step: int, *, name: str = "shop") -> str:
        """Wait until the checkpoint of this step is stored; returns the run's id."""
        run_id = self.run_id(name)

        def reached() -> bool:
            return any(mark.step_number >= step for mark in self.beside.store.checkpoints.marks(run_id))

        until(reached, what=f"step {step} of {name}", pause_s=0.05, limit_s=90)
        return run_id

    def kill_agent(self, *, name: str = "shop", number: int = signal.SIGKILL) -> None:
        """A signal to the agent's process, as the kernel would send it."""
        [pod] = [
            pod
            for pod in self.kubernetes.list("pods", namespace=self.namespace)
            if pod["metadata"]["labels"].get("assay.dev/run") == name and pod["status"]["phase"] == "Running"
        ]
        uid = pod["metadata"]["uid"]
        found = [
            int(folder.name)
            for folder in Path("/proc").iterdir()
            if folder.name.isdigit() and _is_agent(folder, uid)
        ]
        assert len(found) == 1, found
        os.kill(found[0], number)

    def queries(self, *, name: str = "shop") -> list[str]:
        """Statements of the steps that are stored, in order."""
        rows = self.beside.store.checkpoints.steps(self.run_id(name))
        return [row.query for row in rows if row.query]

    def steps_of(self, *, attempt: int, name: str = "shop") -> list[str]:
        """Statements that the feed of an attempt shows, in order."""
        rows = self.beside.store.feed.rows(self.run_id(name), attempt=attempt)
        return [row.query for row in rows if row.query and row.step_num]

    def warehouse_saw_once(self, statements: list[str]) -> bool:
        """By the server's own log of statements: none of these was executed twice."""
        seen = [_squashed(line) for line in self.beside.postgres.statements(self.database)]
        executed = [_squashed(check(one, dialect="postgres").sql) for one in statements]
        counted = {one: sum(one in line for line in seen) for one in executed}
        assert all(counted.values()), counted
        return all(count == 1 for count in counted.values())

    def store_project(self, store: Store, project_id: str, *, namespace: str) -> None:
        project = project_of({**self.project(), "id": project_id})
        store.projects.upsert(project.model_copy(update={"namespace": namespace}))

    def attempts(self) -> list[str]:
        """Attempts that have a Job."""
        return sorted(
            job["metadata"]["labels"][ATTEMPT_LABEL]
            for job in self.kubernetes.list("jobs", namespace=self.namespace)
        )


def _is_agent(folder: Path, pod_uid: str) -> bool:
    try:
        environment = (folder / "environ").read_bytes()
        command = (folder / "cmdline").read_bytes()
    except OSError:
        return False
    return f"ASSAY_OWNER={pod_uid}".encode() in environment and b"assay-agent" in command


def _squashed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().lower()
