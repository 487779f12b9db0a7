"""`assay runs`, `assay show` and `assay report`: read-only looks at what is stored."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.markup import escape
from rich.table import Table

from assay_agent.cli.home import choose_run, fail_abandoned, find_discovery, write_outputs
from assay_agent.cli.terminal import console, print_findings, step_line
from assay_agent.settings import AgentSettings
from assay_agent.stores import open_for_reading
from assay_agent.wiring import findings_dimensions
from assay_core.encoding import json_value
from assay_core.errors import ConfigError
from assay_core.model.run import DiscoveryRun
from assay_core.store.client import Store


@contextmanager
def _stores(arguments: argparse.Namespace) -> Iterator[Store]:
    settings = AgentSettings.load()
    dimensions = findings_dimensions(settings)
    with open_for_reading(home=arguments.home, settings=settings, embedder_dims=dimensions) as stores:
        fail_abandoned(stores.store)
        yield stores.store


def runs(arguments: argparse.Namespace) -> int:
    """`assay runs`."""
    if not 1 <= arguments.limit <= 1_000:
        raise ConfigError(f"--limit must be from 1 to 1000, not {arguments.limit}")
    with _stores(arguments) as store:
        found = store.runs.recent(limit=arguments.limit)
        if arguments.json:
            print(json.dumps([json_value(run.stored()) for run in found], ensure_ascii=False, indent=1))
            return 0
        if not found:
            console().print("no runs yet; start one with `assay run SOURCE` or `assay demo`")
            return 0
        names = {
            project_id: _project_name(store, project_id) for project_id in {run.project_id for run in found}
        }
        taken = store.discoveries.steps_taken([run.discovery_id for run in found if run.discovery_id])
    table = Table(box=None, pad_edge=False)
    for heading in ("RUN", "STATUS", "PROJECT", "STARTED", "STEPS", "FINDINGS", "NOTE"):
        table.add_column(heading, overflow="fold")
    for run in found:
        table.add_row(*(escape(cell) for cell in _row(run, names[run.project_id], taken)))
    console().print(table)
    return 0


def _project_name(store: Store, project_id: str) -> str:
    project = store.projects.get(project_id)
    return (project.name if project else "") or project_id[:12]


def _row(run: DiscoveryRun, project: str, taken: Mapping[str, int]) -> tuple[str, ...]:
    started = f"{run.started_at.astimezone():%Y-%m-%d %H:%M}"
    note = "" if run.error is None else " ".join(run.error.split())[:80]
    steps = taken.get(run.discovery_id or "", run.last_checkpoint_step)
    return (run.id[:8], run.status, project, started, str(steps), str(run.insights_found), note)


def show(arguments: argparse.Namespace) -> int:
    """`assay show RUN`: its findings; for a run without any, its state and the steps it left."""
    with _stores(arguments) as store:
        run = choose_run(store, arguments.run)
        discovery = find_discovery(store, run.id)
        if arguments.json:
            if discovery is None:
                raise ConfigError(
                    f"run {run.id[:8]} has no result ({run.status}{': ' + run.error if run.error else ''})"
                )
            print(json.dumps(store.discoveries.raw(discovery.id), ensure_ascii=False, indent=1))
            return 0
        out = console()
        out.print(f"run {run.id}  [bold]{run.status}[/bold]  {escape(run.phase_detail)} ({run.progress} %)")
        if run.error:
            out.print(f"[red]{escape(run.error)}[/red]")
        if discovery is not None:
            print_findings(out, discovery)
            return 0
        for row in store.feed.rows(run.id, attempt=run.attempt):
            out.print(step_line(row))
    return 0


def report(arguments: argparse.Namespace) -> int:
    """`assay report RUN`: write report.html and discovery.json again."""
    with _stores(arguments) as store:
        run = choose_run(store, arguments.run)
        discovery = find_discovery(store, run.id)
        if discovery is None:
            raise ConfigError(
                f"run {run.id[:8]} has no result to report ({run.status}); see `assay show {run.id[:8]}`"
            )
        for path in write_outputs(store, discovery, arguments.out or arguments.home / "runs" / run.id):
            console().print(f"written: {path}", soft_wrap=True)
    return 0
