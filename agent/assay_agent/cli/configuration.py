"""`assay.yaml` and SOURCE → a project document. Unknown keys are errors that name what is known."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from assay_agent.ports import SecretProvider
from assay_core.errors import ConfigError
from assay_core.model.project import Datasource, Project
from assay_core.model.written import project_of, unknown_key
from assay_core.store.client import Store

_CONFIG_BYTES = 1_000_000
_NAMED_PROJECTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The project of this command, and the password that must not stand in it."""

    project: Project
    password: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsWithPassword:
    """The secrets of the environment, with the password of the source given on the command line."""

    others: SecretProvider
    password: str | None

    def get(self, *, project_id: str, key: str) -> str | None:
        if key == "warehouse-credentials" and self.password:
            return self.password
        return self.others.get(project_id=project_id, key=key)


def choose_project(arguments: argparse.Namespace, *, report: Callable[[str], None]) -> Chosen:
    """The project that `--config` and SOURCE describe; SOURCE's data files are loaded on the way."""
    document = written_project(arguments)
    if arguments.source is None:
        if not document.get("datasources") and not document.get("warehouse"):
            raise ConfigError(
                "no source given: name a folder or glob of CSV, Parquet or JSON files, a DuckDB or SQLite file or a "
                "database URL, or datasources in --config"
            )
        if "id" not in document:
            raise ConfigError(f"{arguments.config}: id is missing; it names the project from run to run")
        return Chosen(project=project_of(document), password=given_password(arguments, source=""))
    from assay_agent.local_data import open_source

    opened = open_source(
        arguments.source,
        home=arguments.home,
        report=report,
        secret=given_password(arguments, source=arguments.source),
    )
    datasource = Datasource(
        id=opened.settings.datasource_id,
        provider=opened.settings.provider,
        datasets=list(opened.settings.datasets),
        config=dict(opened.settings.config),
        allow_writable_credential=getattr(arguments, "allow_writable_credential", None),
    )
    named = {"id": opened.project_id, "name": opened.name, "description": opened.description}
    return Chosen(
        project=project_of({**named, **document, "datasources": [datasource.model_dump()]}),
        password=opened.settings.secret,
    )


def stored_project(arguments: argparse.Namespace, store: Store) -> Chosen:
    """The project that `--project` names. What is stored is what runs, so nothing else may be said beside it."""
    beside = [
        name
        for name, value in (
            ("SOURCE", arguments.source),
            ("--config", arguments.config),
            ("--pack", arguments.pack),
            ("--category", arguments.category),
        )
        if value is not None
    ]
    if beside:
        raise ConfigError(
            f"--project {arguments.project} runs what is stored; change that with `assay project apply`, without {beside[0]} here"
        )
    return Chosen(
        project=find_project(store, arguments.project), password=given_password(arguments, source="")
    )


def find_project(store: Store, project_id: str) -> Project:
    """A stored project, or a ConfigError that names some of those that are there."""
    found = store.projects.get(project_id)
    if found is None:
        known = ", ".join(project.id for project in store.projects.list(_NAMED_PROJECTS)) or "none"
        raise ConfigError(f"there is no project {project_id!r}; stored: {known}")
    return found


def written_project(arguments: argparse.Namespace) -> dict[str, Any]:
    """The document that `--config`, `--pack` and `--category` say, without SOURCE."""
    document = read_config(arguments.config) if arguments.config else {}
    return document | chosen_pack(arguments)


def chosen_pack(arguments: argparse.Namespace) -> dict[str, str]:
    """What `--pack` and `--category` say; another pack leaves the category of the configuration behind."""
    pack, category = getattr(arguments, "pack", None), getattr(arguments, "category", None)
    said = {"domain": pack, "category": category or ""} if pack else {}
    return said | ({"category": category} if category else {})


def given_password(arguments: argparse.Namespace, *, source: str) -> str | None:
    """The source's password from `--source-env`, or PGPASSWORD for a PostgreSQL source."""
    variable = arguments.source_env
    if variable:
        if not os.environ.get(variable):
            raise ConfigError(f"--source-env names {variable}, which is not set in the environment")
        return os.environ[variable]
    return os.environ.get("PGPASSWORD") if source.startswith(("postgres", "redshift")) else None


def read_config(path: Path) -> dict[str, Any]:
    """The document of an `assay.yaml`, its keys checked."""
    try:
        with path.open(encoding="utf-8") as source:
            document = yaml.safe_load(source.read(_CONFIG_BYTES))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"--config {path} cannot be read: {why}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"--config {path} is not YAML: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(document, dict):
        raise ConfigError(
            f"--config {path} must be a mapping of project settings, such as `name:` and `llm:`"
        )
    unknown = unknown_key(Project, document)
    if unknown:
        raise ConfigError(f"--config {path}: {unknown}")
    return document
