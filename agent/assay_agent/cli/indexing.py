"""`assay index`: read, describe and embed the tables of a source, so that runs find them without reading them again."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from datetime import datetime

from assay_agent import agentserver
from assay_agent.cli.configuration import SecretsWithPassword
from assay_agent.cli.execution import chosen_or_stored, stores_of
from assay_agent.cli.terminal import TerminalProgress, console
from assay_agent.settings import AgentSettings
from assay_agent.wiring import open_secrets
from assay_core import clock
from assay_core.errors import TransientError
from assay_core.store.schema import IndexProgress

_SHOWN_FAILURES = 20


def index(arguments: argparse.Namespace) -> int:
    """`assay index SOURCE`, `--config FILE` or `--project ID`."""
    settings = AgentSettings.load()
    argv = _flags(arguments)
    problems: list[str] = []
    started = clock.now()
    bar = TerminalProgress(console(stderr=True), quiet=arguments.quiet)
    with bar as progress, closing(stores_of(arguments, settings)) as starting:
        stores, chosen = chosen_or_stored(arguments, starting, progress.note)
        progress.note(f"stores: {stores.described}")
        given = agentserver.Given(
            stores=stores,
            secrets=SecretsWithPassword(
                others=open_secrets(settings, stores.store), password=chosen.password
            ),
            progress=progress,
            settings=settings,
            failed=problems.append,
        )
        code = agentserver.run(["--project-id", chosen.project.id, *argv], given=given)
        progress.stop()
        lost = stores.store.lost()
        if lost is not None:
            raise TransientError(
                f"{lost}; what was saved is kept (continue: the same command)", dependency="mongodb"
            )
        done = _done_since(started, stores.store.schema.progress(chosen.project.id))
        if done is not None and (code == 0 or arguments.json):
            _show(done, as_json=arguments.json)
        if code != 0:
            _explain(code, problems, done)
    return code


def _done_since(started: datetime, last: IndexProgress | None) -> IndexProgress | None:
    """What this command did; None where it did not come to indexing."""
    return last if last is not None and last.updated_at is not None and last.updated_at >= started else None


def _flags(arguments: argparse.Namespace) -> list[str]:
    argv = ["--mode", "index-schema", *(["--refresh"] if arguments.refresh else [])]
    for flag in agentserver.BUDGETS_OF_INDEX.values():
        asked = getattr(arguments, flag[2:].replace("-", "_"), None)
        argv += [flag, asked] if asked is not None else []
    agentserver.check(["--project-id", "p", *argv])
    return argv


def _show(done: IndexProgress, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(done.model_dump(mode="json", exclude_none=True), ensure_ascii=False, indent=1))
        return
    out = console()
    out.print(
        f"{done.tables_done:,} tables are indexed: {done.tables_described:,} described by {done.described_by}, "
        f"{done.tables_unchanged:,} unchanged, {done.tables_failed:,} failed",
        markup=False,
    )
    for failure in done.failures[:_SHOWN_FAILURES]:
        out.print(f"failed: {failure.ref}: {failure.error}", markup=False, soft_wrap=True)
    more = done.tables_failed - _SHOWN_FAILURES
    if more > 0:
        out.print(f"… and {more:,} more; --json lists them", markup=False)


def _explain(code: int, problems: list[str], done: IndexProgress | None) -> None:
    """Why the index did not complete, on one line, and what is left of it."""
    what = "stopped" if code in (130, 143) else f"error: {problems[0] if problems else 'the index failed'}"
    kept = done.tables_done if done is not None else 0
    again = f"; {kept:,} tables are indexed (continue: the same command)" if kept else ""
    print(f"{what}{again}", file=sys.stderr)
