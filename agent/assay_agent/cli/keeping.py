"""`assay secrets`: keep a project's keys in the document store, sealed. A value never stands on the command line."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from assay_agent.cli.terminal import console
from assay_agent.cli.verbs import verbs_of
from assay_agent.settings import AgentSettings
from assay_agent.stores import OpenStores, Stores
from assay_agent.wiring import open_stored_secrets
from assay_core.errors import ConfigError

_VALUE_CHARS = 100_000


def add_commands(secrets: argparse.ArgumentParser, shared: argparse.ArgumentParser) -> None:
    """The verbs of `assay secrets`."""
    verb = verbs_of(secrets, shared)
    setting = verb("set", "Store a secret; its value is read from standard input", put)
    listing = verb("list", "Names of a project's secrets", show_list)
    removing = verb("delete", "Remove a secret", delete)
    for sub in (setting, removing):
        sub.add_argument(
            "key", help="llm-api-key, llm-api-key-CONNECTION, warehouse-credentials, embedding-api-key"
        )
    for sub in (setting, listing, removing):
        sub.add_argument("--project", required=True, metavar="ID", help="the project it belongs to")


@contextmanager
def _stores(arguments: argparse.Namespace, settings: AgentSettings) -> Iterator[OpenStores]:
    with Stores(home=arguments.home, settings=settings) as stores:
        if stores.store.projects.get(arguments.project) is None:
            raise ConfigError(f"--project {arguments.project} is not stored; see `assay project list`")
        yield stores


def put(arguments: argparse.Namespace) -> int:
    """`assay secrets set KEY --project ID`."""
    settings = AgentSettings.load()
    with _stores(arguments, settings) as stores:
        kept = open_stored_secrets(settings, stores.store)
        kept.put(project_id=arguments.project, key=arguments.key, value=_value(arguments.key))
    console().print(f"{arguments.key} of {arguments.project} is stored, sealed", markup=False)
    return 0


def _value(key: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"{key}: ")
    return sys.stdin.read(_VALUE_CHARS + 1).rstrip("\r\n")


def show_list(arguments: argparse.Namespace) -> int:
    """`assay secrets list --project ID`: keys and times, never values."""
    settings = AgentSettings.load()
    with _stores(arguments, settings) as stores:
        found = open_stored_secrets(settings, stores.store).listed(project_id=arguments.project)
    for secret in found:
        console().print(f"{secret.key}  stored {secret.updated_at:%Y-%m-%d %H:%M}", markup=False)
    if not found:
        console().print("no secrets are stored for this project", markup=False)
    return 0


def delete(arguments: argparse.Namespace) -> int:
    """`assay secrets delete KEY --project ID`."""
    settings = AgentSettings.load()
    with _stores(arguments, settings) as stores:
        gone = open_stored_secrets(settings, stores.store).delete(
            project_id=arguments.project, key=arguments.key
        )
    if not gone:
        raise ConfigError(f"there is no secret {arguments.key} of project {arguments.project}")
    console().print(f"{arguments.key} of {arguments.project} is removed", markup=False)
    return 0
