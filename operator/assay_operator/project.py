"""Which project a run explores: one that exists and is this namespace's, or the one it carries inline. And whose turn it is.

An inline project is stored under a name made from namespace and name, so that two tenants never meet in one document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from assay_core.errors import ConfigError
from assay_core.model.project import Project
from assay_core.model.run import RunStatus
from assay_core.model.written import project_of, unknown_key
from assay_core.store.client import Store
from assay_operator.cache import Cache, project_key
from assay_operator.resource import Object, run_id_of

Problem = Literal["ProjectNotFound", "ProjectForeign", "ProjectInvalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The id of the project in the store, or what is wrong."""

    project_id: str | None = None
    problem: Problem | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectResolver:
    """Reads the store and the cache."""

    store: Store
    cache: Cache

    def find(self, run: Object) -> Found:
        """The project a new run would explore."""
        if run.spec.project_ref is None:
            try:
                return Found(project_id=inline_project(run).id)
            except ConfigError as error:
                return Found(problem="ProjectInvalid", detail=str(error))
        project = self.store.projects.get(run.spec.project_ref.name)
        if project is None:
            return Found(problem="ProjectNotFound", detail=run.spec.project_ref.name)
        if project.namespace != run.namespace:
            return Found(problem="ProjectForeign", detail=run.spec.project_ref.name)
        return Found(project_id=project.id)

    def busy(self, run: Object, *, started: bool) -> str | None:
        """What goes before this run: an active run of the project, or an older one that waits as well."""
        found = self.find(run)
        if found.project_id is None:
            return None
        active = [one.id for one in self.store.runs.active(project_id=found.project_id)]
        others = [one for one in active if one != run.run_id]
        if others:
            return others[0][:8]
        return None if started else self._older(run)

    def _older(self, run: Object) -> str | None:
        body = self.cache.run(run.key)
        if body is None:
            return None
        mine = (run.created, run.name)
        for other in self.cache.of_project(body):
            metadata = other["metadata"]
            if (metadata["creationTimestamp"], metadata["name"]) < mine and self._waits(other):
                return str(metadata["name"])
        return None

    def _waits(self, body: Any) -> bool:
        """Not yet begun, and nothing keeps it from beginning but its turn."""
        spec, metadata = body.get("spec") or {}, body["metadata"]
        if metadata.get("deletionTimestamp") or spec.get("suspend") or spec.get("cancel"):
            return False
        document = self.store.runs.get(run_id_of(str(metadata["uid"])))
        return document is None or document.status in (RunStatus.PENDING, RunStatus.RUNNING)


def inline_id(run: Object) -> str:
    body = {"metadata": {"namespace": run.namespace, "name": run.name}, "spec": {"project": run.spec.project}}
    namespace, name = project_key(body)
    return f"{namespace}.{name}"


def inline_project(run: Object) -> Project:
    """The project that a run carries, as it is stored. What is wrong with it is a `ConfigError` of one line."""
    document = run.spec.project or {}
    unknown = unknown_key(Project, document)
    if unknown:
        raise ConfigError(f"spec.project: {unknown}")
    project = project_of({"name": run.name, **document, "id": inline_id(run)})
    return project.model_copy(update={"namespace": run.namespace})
