"""`assay project apply|show|list|delete`: what a run explores and how, stored under an id.

The file has the shape of `assay.yaml`, which is that of a run's inline project in a cluster. Applying is declarative: what the file
does not say is taken back, what runs recorded stays.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import yaml
from rich.markup import escape
from rich.table import Table

from assay_agent.cli.configuration import find_project, read_config
from assay_agent.cli.home import fail_abandoned
from assay_agent.cli.terminal import console
from assay_agent.cli.verbs import verbs_of
from assay_agent.settings import AgentSettings
from assay_agent.stores import OpenStores, Stores, open_for_reading
from assay_agent.wiring import checked_project, findings_dimensions, open_embedder, open_secrets, open_shelf
from assay_core.encoding import json_value
from assay_core.errors import ConfigError
from assay_core.model.project import Project
from assay_core.model.written import project_of
from assay_core.store.client import Store
from assay_core.vectors import names

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_RECORDED = (
    "status",
    "last_run_at",
    "last_run_status",
    "schema_index_status",
    "schema_index_error",
    "schema_index_updated_at",
    "created_at",
    "updated_at",
)
"""Fields that runs and indexing write; a file that says them would claim what did not happen."""
_DISCOVERIES = 10_000
"""Results of a project whose vectors are removed with it: one a day for 27 years."""


def add_commands(project: argparse.ArgumentParser, shared: argparse.ArgumentParser) -> None:
    """The verbs of `assay project`."""
    verb = verbs_of(project, shared)

    applying = verb("apply", "Store a project as a YAML file says it", apply)
    applying.add_argument("file", type=Path, metavar="FILE")
    applying.add_argument(
        "--namespace",
        metavar="NAME",
        help="the Kubernetes namespace whose runs may name it in spec.projectRef",
    )
    one = verb("show", "A stored project and how its latest run went", show)
    one.add_argument("id")
    one.add_argument("--json", action="store_true", help="print JSON")
    every = verb("list", "Stored projects, the newest first", show_list)
    every.add_argument("--limit", type=int, default=100, help="projects at most (100)")
    every.add_argument("--json", action="store_true", help="print JSON")
    removing = verb("delete", "Remove a project with its runs and everything they found", delete)
    removing.add_argument("id")
    removing.add_argument("--yes", action="store_true", help="do it")


def apply(arguments: argparse.Namespace) -> int:
    """`assay project apply FILE`."""
    document = read_config(arguments.file)
    recorded = [name for name in _RECORDED if name in document]
    if recorded:
        raise ConfigError(f"{arguments.file}: {recorded[0]} is recorded by runs and cannot be applied")
    if not isinstance(document.get("id"), str) or not _ID.fullmatch(document["id"]):
        raise ConfigError(
            f"{arguments.file}: id must be 1 to 64 letters, digits, points, hyphens and underscores, "
            f"such as our-shop, not {document.get('id')!r}"
        )
    settings = AgentSettings.load()
    project, folders = project_of(document), open_shelf(settings, None)
    here = project.domain in folders.folders()
    if here:  # then everything wrong is said before any store is started
        project = checked_project(project, folders)
    with open_for_reading(home=arguments.home, settings=settings) as stores:
        if not here:
            project = checked_project(project, open_shelf(settings, stores.store))
        before = stores.store.projects.get(project.id)
        project = project.model_copy(
            update={"namespace": _namespace(arguments.namespace or project.namespace, before)}
        )
        if before is not None and _said(before) == _said(project):
            console().print(f"project {project.id} is unchanged", markup=False)
            return 0
        stores.store.projects.upsert(project)
    done = "created" if before is None else "changed"
    console().print(
        f"project {project.id} {done}; explore it with: assay run --project {project.id}", markup=False
    )
    return 0


def _namespace(wanted: str | None, before: Project | None) -> str | None:
    """Whose it is from now on: a project never goes from one namespace to another, nor out of one."""
    if wanted is not None and not _NAMESPACE.fullmatch(wanted):
        raise ConfigError(
            f"--namespace must be a namespace's name (lower-case letters, digits, dashes), not {wanted!r}"
        )
    owner = before.namespace if before is not None else None
    if owner is not None and wanted is not None and wanted != owner:
        raise ConfigError(
            f"the project belongs to namespace {owner}; delete it there, or give this one another id"
        )
    return wanted or owner


def _said(project: Project) -> dict[str, Any]:
    """What a person said of a project."""
    return {name: value for name, value in project.stored().items() if name not in _RECORDED}


def show(arguments: argparse.Namespace) -> int:
    """`assay project show ID`."""
    with _stores(arguments) as stores:
        fail_abandoned(stores.store)
        project = find_project(stores.store, arguments.id)
        state = status(stores.store, project)
    said = json_value(_said(project))
    if arguments.json:
        print(json.dumps({**said, "status": state}, ensure_ascii=False, indent=1))
        return 0
    print(yaml.safe_dump(said, allow_unicode=True, sort_keys=False), end="")
    print("# " + _in_words(state))
    return 0


def show_list(arguments: argparse.Namespace) -> int:
    """`assay project list`."""
    if not 1 <= arguments.limit <= 1_000:
        raise ConfigError(f"--limit must be from 1 to 1000, not {arguments.limit}")
    with _stores(arguments) as stores:
        fail_abandoned(stores.store)
        found = [
            (project, status(stores.store, project))
            for project in stores.store.projects.list(arguments.limit)
        ]
    if arguments.json:
        rows = [
            {"id": p.id, "name": p.name, "domain": p.domain, "category": p.category, "status": state}
            for p, state in found
        ]
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return 0
    if not found:
        console().print("no projects yet; store one with `assay project apply FILE`")
        return 0
    table = Table(box=None, pad_edge=False)
    for heading in ("PROJECT", "NAME", "PACK", "STATUS"):
        table.add_column(heading, overflow="fold")
    for project, state in found:
        cells = (project.id, project.name, f"{project.domain}/{project.category}", _in_words(state))
        table.add_row(*(escape(cell) for cell in cells))
    console().print(table)
    return 0


def status(store: Store, project: Project) -> dict[str, Any]:
    """The active run's status where there is one, else the last run's."""
    active = store.runs.active(project_id=project.id, limit=1)
    if active:
        run = active[0]
        return {
            "run": run.id,
            "state": str(run.status),
            "phase": run.phase_detail,
            "progress": run.progress,
            "at": json_value(run.started_at),
        }
    if project.last_run_status is None:
        return {"state": "never run"}
    return {"state": project.last_run_status, "at": json_value(project.last_run_at)}


def _in_words(state: dict[str, Any]) -> str:
    if "run" in state:
        return f"{state['state']} ({state['progress']} %), run {state['run'][:8]} since {state['at'][:16]}"
    return f"{state['state']}, last run {state['at'][:16]}" if "at" in state else str(state["state"])


def delete(arguments: argparse.Namespace) -> int:
    """`assay project delete ID --yes`: vectors first, then documents, the project last."""
    settings = AgentSettings.load()
    dimensions = findings_dimensions(settings)
    with Stores(home=arguments.home, settings=settings, embedder_dims=dimensions) as stores:
        fail_abandoned(stores.store)
        project = find_project(stores.store, arguments.id)
        active = stores.store.runs.active(project_id=project.id, limit=1)
        if active:
            raise ConfigError(
                f"run {active[0].id[:8]} of project {project.id} is still active; end it first: assay cancel {active[0].id[:8]}"
            )
        if not arguments.yes:
            raise ConfigError(
                f"this removes project {project.id}, its runs and everything they found; say --yes to do it"
            )
        if dimensions is None:
            secrets = open_secrets(settings, stores.store)
            dimensions = open_embedder(settings, project, secrets).dimensions
        _remove_vectors(stores, project.id, dimensions)
        stores.store.projects.delete(project.id)
    console().print(f"project {project.id} removed", markup=False)
    return 0


def _remove_vectors(stores: OpenStores, project_id: str, dimensions: int) -> None:
    """Tables of the project, and its findings, whose rows name their points."""
    stores.vectors.drop(names.schema(project_id))
    for discovery in stores.store.discoveries.recent(project_id, _DISCOVERIES):
        rows = [row.id for row in stores.store.discoveries.insights(discovery.id)]
        rows += [row.id for row in stores.store.discoveries.recommendations(discovery.id)]
        if rows:
            stores.vectors.delete(names.findings(dimensions), rows)


def _stores(arguments: argparse.Namespace) -> OpenStores:
    return open_for_reading(home=arguments.home, settings=AgentSettings.load())
