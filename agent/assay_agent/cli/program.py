"""Which command was asked for, and what a failure looks like: one line, exit 10, no traceback unless `--debug`."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from assay_agent.agentserver import BUDGETS, BUDGETS_OF_INDEX
from assay_agent.cli import (
    cancelling,
    execution,
    indexing,
    judging,
    keeping,
    packing,
    probing,
    projects,
    serving,
    showing,
)
from assay_core import log
from assay_core.errors import AssayError, TransientError

_HOME = ".assay"
_EXIT_CONFIG, _EXIT_UNAVAILABLE, _EXIT_BUG = 10, 11, 1


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"error: {message}; see `{self.prog} --help`", file=sys.stderr)
        raise SystemExit(_EXIT_CONFIG)


def execute(argv: Sequence[str]) -> int:
    """Run one command; returns its exit code."""
    try:
        arguments = parser().parse_args(list(argv))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else _EXIT_CONFIG
    command: Callable[[argparse.Namespace], int] | None = getattr(arguments, "command", None)
    if command is None:
        parser().print_help()
        return 0
    try:
        log.configure(level="debug" if arguments.debug else "error", json=False)
        return command(arguments)
    except AssayError as error:
        if arguments.debug:
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        return _EXIT_UNAVAILABLE if isinstance(error, TransientError) else _EXIT_CONFIG
    except BrokenPipeError:
        # The reader of a pipe has gone (`assay show | head`): nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except Exception as error:  # noqa: BLE001 - the last place before the user
        if arguments.debug:
            traceback.print_exc()
        print(
            f"error: unexpected {type(error).__name__}: {error}; run again with --debug to see where",
            file=sys.stderr,
        )
        return _EXIT_BUG


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    shared = _Parser(add_help=False)
    shared.add_argument("--debug", action="store_true", help="full log and tracebacks")
    shared.add_argument("--home", type=Path, default=Path(_HOME), help=f"where local data is kept ({_HOME})")
    made = _Parser(
        prog="assay",
        description="Explore a data warehouse and report what is proven in it.",
        allow_abbrev=False,
    )
    made.set_defaults(debug=False)
    commands = made.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)

    def command(
        name: str, help_text: str, action: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=help_text, description=help_text, parents=[shared], allow_abbrev=False
        )
        sub.set_defaults(command=action)
        return sub

    run = command("run", "Explore a source and report what was found", execution.run)
    _source(run)
    run.add_argument("--project", metavar="ID", help="a stored project, in place of SOURCE and --config")
    _pack_flags(run)
    _run_flags(run)
    demo = command(
        "demo",
        "Explore the flights of New York in 2013, or an invented warehouse with --pack",
        execution.demo,
    )
    _pack_flags(demo)
    _run_flags(demo)
    again = command("resume", "Continue a failed run where it stopped", execution.resume)
    again.add_argument("run", nargs="?", help="run id or the beginning of one (the newest run)")
    again.add_argument(
        "--source-env", metavar="VAR", help="environment variable that holds the source's password"
    )
    _budget_flags(again)
    _output_flags(again)
    tables = command(
        "index", "Read, describe and embed the tables of a source, for the runs that follow", indexing.index
    )
    _source(tables)
    tables.add_argument("--project", metavar="ID", help="a stored project, in place of SOURCE and --config")
    _pack_flags(tables)
    tables.add_argument(
        "--refresh", action="store_true", help="describe every table again, unchanged ones too"
    )
    for flag in BUDGETS_OF_INDEX.values():
        what = flag.removeprefix("--max-").replace("-", " ")
        tables.add_argument(flag, metavar="N", help=f"{what} the index may spend (no limit)")
    tables.add_argument("--json", action="store_true", help="print what was done as JSON")
    tables.add_argument("--quiet", action="store_true", help="no progress")
    stop = command("cancel", "End a run for good and remove its working data", cancelling.cancel)
    stop.add_argument("run", help="run id or the beginning of one")
    runs = command("runs", "List runs, the newest first", showing.runs)
    runs.add_argument("--limit", type=int, default=20, help="runs at most (20)")
    runs.add_argument("--json", action="store_true", help="print JSON")
    for name, help_text, action in (
        ("show", "Show the findings of a run", showing.show),
        ("report", "Write the report of a run again", showing.report),
    ):
        sub = command(name, help_text, action)
        sub.add_argument("run", nargs="?", help="run id or the beginning of one (the newest run)")
        if name == "show":
            sub.add_argument("--json", action="store_true", help="print the stored discovery document")
        else:
            sub.add_argument(
                "--out", type=Path, default=None, metavar="DIR", help="where to write (.assay/runs/RUN)"
            )
    probe = command("test-connection", "Try one part of the set-up", probing.test_connection)
    probe.add_argument("part", choices=("warehouse", "llm", "embedding", "stores"))
    _source(probe)
    estimate = command("estimate", "Say what a run would cost, before anything is spent", probing.estimate)
    _source(estimate)
    estimate.add_argument(
        "--max-steps",
        type=int,
        default=execution.DEFAULT_STEPS,
        metavar="N",
        help=f"exploration steps ({execution.DEFAULT_STEPS})",
    )
    estimate.add_argument("--json", action="store_true", help="print JSON")
    project = commands.add_parser(
        "project", help="Stored projects: what a run explores, and how", allow_abbrev=False
    )
    projects.add_commands(project, shared)
    said = command(
        "feedback", "Say of a finding, an advice or a step whether it was worth it", judging.feedback
    )
    judging.add_arguments(said)
    packs = commands.add_parser(
        "packs", help="Domain packs: what an analyst of a field looks at", allow_abbrev=False
    )
    packing.add_commands(packs, shared)
    secrets = commands.add_parser(
        "secrets", help="Keys of stored projects, sealed in the document store", allow_abbrev=False
    )
    keeping.add_commands(secrets, shared)
    scout = command(
        "scout", "Serve the rule-based analyst as an OpenAI-compatible model", serving.serve_scout
    )
    scout.add_argument("verb", choices=("serve",))
    scout.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    scout.add_argument("--port", type=int, default=8808, help="port to listen on (8808)")
    return made


def _source(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "source",
        nargs="?",
        help="folder or glob of CSV, Parquet or JSON files; a DuckDB or SQLite file; a database URL",
    )
    sub.add_argument(
        "--config", type=Path, metavar="FILE", help="assay.yaml: everything a project document holds"
    )
    sub.add_argument(
        "--source-env", metavar="VAR", help="environment variable that holds the source's password"
    )
    sub.add_argument(
        "--allow-writable-credential",
        metavar="USER",
        help="use the source's credential of this name although it could write",
    )


def _pack_flags(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--pack", metavar="NAME", help="domain pack, see `assay packs list` (generic)")
    sub.add_argument("--category", metavar="NAME", help="category of the pack (its only one)")


def _run_flags(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--areas", metavar="A,B", help="analysis areas (all of the pack)")
    sub.add_argument(
        "--max-steps", metavar="N", help=f"exploration steps at most ({execution.DEFAULT_STEPS})"
    )
    sub.add_argument("--min-steps", metavar="N", help="steps before the model may end (0)")
    _budget_flags(sub)
    _output_flags(sub)


def _budget_flags(sub: argparse.ArgumentParser) -> None:
    for flag in BUDGETS.values():
        what = flag.removeprefix("--max-").replace("-", " ")
        sub.add_argument(
            flag, metavar="N", help=f"{what} the run may spend, all attempts together (no limit)"
        )


def _output_flags(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--out", type=Path, metavar="DIR", help="where report.html and discovery.json go (.assay/runs/RUN)"
    )
    sub.add_argument("--json", action="store_true", help="print the discovery document on standard output")
    sub.add_argument("--quiet", action="store_true", help="no progress")
