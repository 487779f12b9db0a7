"""Commands that look: runs, why, watch, logs."""

from __future__ import annotations

import argparse
import sys

from assay_core import clock
from assay_core.errors import ConfigError
from assay_operator.plugin.explain import explain
from assay_operator.plugin.reach import Reach, ticks
from assay_operator.plugin.show import exit_code, table
from assay_operator.resource import ATTEMPT_LABEL, RUN_LABEL
from assay_operator.seen import AGENT_CONTAINER

_TABLE_PAUSE_S = 2.0


def runs(reach: Reach, arguments: argparse.Namespace) -> int:
    everywhere = bool(arguments.all_namespaces)
    for _ in ticks(arguments.limit if arguments.watch else 0, pause_s=_TABLE_PAUSE_S):
        found = list(reach.cluster.runs() if everywhere else reach.cluster.runs_of(reach.namespace))
        if not found:
            where = "the cluster" if everywhere else f"namespace {reach.namespace}"
            sys.stderr.write(f"no runs in {where}\n")
            return 0
        clear = "\x1b[H\x1b[2J" if arguments.watch and sys.stdout.isatty() else ""
        sys.stdout.write(f"{clear}{table(found, now=clock.now(), namespaces=everywhere)}\n")
        sys.stdout.flush()
        if all(exit_code(body) is not None for body in found):
            return 0
    return 0


def why(reach: Reach, arguments: argparse.Namespace) -> int:
    if arguments.watch:
        reach.follow(arguments.run, limit_s=arguments.limit, until=reach.ended)
    sys.stdout.write(explain(reach.run(arguments.run)) + "\n")
    return 0


def watch(reach: Reach, arguments: argparse.Namespace) -> int:
    body = reach.follow(arguments.run, limit_s=arguments.limit, until=reach.ended)
    code = exit_code(body)
    if code is None:
        raise ConfigError(f"{arguments.run} has not ended within {arguments.limit:g} s; raise --limit")
    sys.stdout.write(explain(body) + "\n")
    return code


def logs(reach: Reach, arguments: argparse.Namespace) -> int:
    body = reach.run(arguments.run)
    attempt = arguments.attempt or int((body.get("status") or {}).get("attempt") or 1)
    pods = reach.cluster.pods_of(
        reach.namespace, labels=f"{RUN_LABEL}={arguments.run},{ATTEMPT_LABEL}={attempt}"
    )
    if not pods:
        phase = (body.get("status") or {}).get("phase") or "not seen by an operator"
        raise ConfigError(
            f"attempt {attempt} of {arguments.run} has no pod (the run is {phase}); try: kubectl assay why {arguments.run}"
        )
    newest = max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    for part in reach.cluster.log(
        reach.namespace, newest["metadata"]["name"], AGENT_CONTAINER, follow=arguments.follow
    ):
        sys.stdout.write(part.decode(errors="replace"))
        sys.stdout.flush()
    return 0
