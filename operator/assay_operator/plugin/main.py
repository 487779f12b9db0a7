"""`kubectl assay`: runs, why, watch, logs, resume, cancel, purge, report. It reads and annotates; a run's spec is its owner's."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from assay_core.errors import AssayError, ConfigError, TransientError
from assay_operator.cluster import Cluster, Forbidden, Gone
from assay_operator.plugin import acting, reporting, seeing
from assay_operator.plugin.reach import Reach

_CONFIG, _UNREACHABLE = 10, 11
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LIMIT_S = 7 * 86_400.0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"error: {message}; see `{self.prog} --help`\n")
        raise SystemExit(_CONFIG)


def main() -> NoReturn:
    """The console script."""
    sys.exit(execute(sys.argv[1:]))


def execute(argv: Sequence[str]) -> int:
    """Run one command. Exit 10: what was asked for is wrong; 11: the cluster or MongoDB gives no answer."""
    arguments = parser().parse_args(list(argv))
    command: Callable[[Reach, argparse.Namespace], int] | None = getattr(arguments, "command", None)
    if command is None:
        parser().print_help()
        return 0
    try:
        return command(_reach(arguments), arguments)
    except Gone:
        sys.stderr.write(f"error: {_missing(arguments)}\n")
        return _CONFIG
    except (ConfigError, Forbidden) as error:
        sys.stderr.write(f"error: {error}\n")
        return _CONFIG
    except AssayError as error:
        sys.stderr.write(f"error: {error}\n")
        return _UNREACHABLE if isinstance(error, TransientError) else 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("stopped; the run goes on\n")
        return 130


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    shared = _Parser(add_help=False)
    shared.add_argument("-n", "--namespace", type=_name, help="namespace (that of the kubeconfig's context)")
    shared.add_argument("--kubeconfig", help="path of a kubeconfig")
    shared.add_argument("--context", help="context of the kubeconfig")
    made = _Parser(
        prog="kubectl assay", description="Discovery runs: what they do, why they wait, what to type."
    )
    commands = made.add_subparsers(metavar="COMMAND", parser_class=_Parser)

    def add(
        name: str, help: str, command: Callable[..., int], *, run: bool = True
    ) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=help, description=help, parents=[shared])
        one.set_defaults(command=command)
        if run:
            one.add_argument("run", metavar="RUN", type=_name, help="name of a DiscoveryRun")
        return one

    runs = add("runs", "list runs", seeing.runs, run=False)
    runs.add_argument("-A", "--all-namespaces", action="store_true", help="of every namespace")
    runs.add_argument(
        "-w", "--watch", action="store_true", help="again every two seconds, until all have ended"
    )
    why = add("why", "what a run waits for or why it failed, whose turn it is, what to type", seeing.why)
    why.add_argument("-w", "--watch", action="store_true", help="follow its progress first")
    watch = add("watch", "follow a run to its end; exit 0 succeeded, 1 failed, 3 cancelled", seeing.watch)
    for one in (runs, why, watch):
        one.add_argument(
            "--limit", type=_seconds, default=86_400, metavar="SECONDS", help="stop watching after (86400)"
        )
    logs = add("logs", "the agent's log", seeing.logs)
    logs.add_argument("-f", "--follow", action="store_true", help="until the agent ends")
    logs.add_argument("--attempt", type=_attempt, metavar="N", help="of this attempt (the last one)")
    resume = add("resume", "continue a failed run where it was", acting.resume)
    resume.add_argument("--no-wait", action="store_true", help="do not wait for the answer")
    cancel = add("cancel", "end a run for good and remove its working data", acting.cancel)
    purge = add(
        "purge", "delete a run and its working data; its findings stay with the project", acting.purge
    )
    purge.add_argument(
        "--skip-purge", action="store_true", help="where MongoDB is gone: delete it without the purge"
    )
    for one in (cancel, purge):
        one.add_argument("-y", "--yes", action="store_true", help="do not ask")
    report = add("report", "the findings of a run, from MongoDB (MONGODB_URI)", reporting.report)
    report.add_argument("--json", action="store_true", help="the stored discovery document")
    return made


def _name(text: str) -> str:
    """As Kubernetes names runs and namespaces; anything else would be a path of the API."""
    if not _LABEL.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name: lower-case letters, digits and dashes")
    return text


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= _LIMIT_S:
        raise argparse.ArgumentTypeError(f"{text!r} must be seconds, above 0 and at most {_LIMIT_S:g}")
    return value


def _attempt(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} must be the number of an attempt, 1 or more")
    return int(text)


def _reach(arguments: argparse.Namespace) -> Reach:
    cluster, namespace = Cluster.of_user(kubeconfig=arguments.kubeconfig, context=arguments.context)
    return Reach(cluster=cluster, namespace=arguments.namespace or namespace)


def _missing(arguments: argparse.Namespace) -> str:
    try:
        reach = _reach(arguments)
        names = sorted(str(body["metadata"]["name"]) for body in reach.cluster.runs_of(reach.namespace))
    except (Gone, AssayError):
        return "the cluster does not know DiscoveryRun: install the chart assay-crds"
    there = ", ".join(names[:10]) + (", …" if len(names) > 10 else "") if names else "none"
    return f"there is no DiscoveryRun {arguments.run!r} in namespace {reach.namespace}; there are: {there}"
