"""Commands that ask for something: resume, cancel, purge. They annotate; the operator answers in the status."""

from __future__ import annotations

import argparse
import sys
from typing import Any
from uuid import uuid4

from assay_core import clock
from assay_core.errors import ConfigError
from assay_operator.cluster import Gone
from assay_operator.plugin.explain import explain
from assay_operator.plugin.reach import Reach, ticks
from assay_operator.resource import CANCEL_ANNOTATION, RESUME_ANNOTATION, SKIP_PURGE_ANNOTATION

_RESUME_S = 60.0
_END_S = 180.0


def resume(reach: Reach, arguments: argparse.Namespace) -> int:
    """Asks by an annotation with a new token, and waits until the token is answered."""
    before = reach.run(arguments.run)
    attempt = int((before.get("status") or {}).get("attempt") or 0)
    token = f"{clock.now():%Y-%m-%dT%H:%M:%SZ}-{uuid4().hex[:8]}"
    reach.cluster.annotate(reach.namespace, arguments.run, {RESUME_ANNOTATION: token})
    if arguments.no_wait:
        return 0
    answered = reach.follow(
        arguments.run,
        limit_s=_RESUME_S,
        until=lambda body: (body.get("status") or {}).get("lastHandledResumeRequest") == token,
    )
    status = answered.get("status") or {}
    if status.get("lastHandledResumeRequest") != token:
        raise ConfigError(
            f"no operator has answered within {_RESUME_S:g} s; the request stays: kubectl assay why {arguments.run}"
        )
    if int(status.get("attempt") or 0) <= attempt:
        sys.stdout.write(f"{arguments.run} is not resumed\n{explain(answered)}\n")
        return 1
    sys.stdout.write(f"{arguments.run}: resumed after attempt {attempt}\n")
    return 0


def cancel(reach: Reach, arguments: argparse.Namespace) -> int:
    reach.run(arguments.run)
    _confirm(arguments, f"cancel {arguments.run} for good and remove its checkpoints?")
    asked = {CANCEL_ANNOTATION: f"{clock.now():%Y-%m-%dT%H:%M:%SZ}"}
    reach.cluster.annotate(reach.namespace, arguments.run, asked)
    body = reach.follow(arguments.run, limit_s=_END_S, until=_purged_or_over)
    phase = (body.get("status") or {}).get("phase")
    if phase == "Cancelled":
        sys.stdout.write(f"{arguments.run}: cancelled, its working data is removed\n")
        return 0
    sys.stdout.write(explain(body) + "\n")
    return 1


def purge(reach: Reach, arguments: argparse.Namespace) -> int:
    body = reach.run(arguments.run)
    _confirm(arguments, f"delete {arguments.run} and its working data?")
    if arguments.skip_purge:
        reach.cluster.annotate(reach.namespace, arguments.run, {SKIP_PURGE_ANNOTATION: "true"})
    reach.cluster.delete_run(reach.namespace, arguments.run, uid=str(body["metadata"]["uid"]))
    for _ in ticks(_END_S):
        try:
            body = reach.run(arguments.run)
        except Gone:
            sys.stdout.write(f"{arguments.run}: deleted\n")
            return 0
    sys.stdout.write(explain(body) + "\n")
    return 1


def _purged_or_over(body: dict[str, Any]) -> bool:
    status = body.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return True
    purged = [one for one in status.get("conditions") or () if one.get("type") == "Purged"]
    return status.get("phase") == "Cancelled" and any(one.get("status") == "True" for one in purged)


def _confirm(arguments: argparse.Namespace, question: str) -> None:
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("there is nobody to ask; say --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("nothing was done")
