"""The last that was seen of every run, Job and pod, by the watch or by an own write; and of pods that are gone.

Written by the handlers and by `apply`, read by `observe`. An older body never replaces a newer one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from assay_operator.kept import Body, Kept, kept_job, kept_pod, kept_run
from assay_operator.resource import ATTEMPT_LABEL, RUN_LABEL, RUN_UID_LABEL

RunKey = tuple[str, str]
"""Namespace and name."""

_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
GONE_KEPT_S = 3600.0
"""Seconds a pod that is gone is remembered at most, when no outcome is stored before."""


class Cache:
    """Safe between threads. Each body that is asked for is a fresh copy."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._now = monotonic
        self._lock = threading.Lock()
        self._runs: dict[RunKey, Kept] = {}
        self._jobs: dict[str, dict[str, Kept]] = {}
        self._pods: dict[str, dict[str, Kept]] = {}
        self._gone: dict[str, dict[str, tuple[Kept, float]]] = {}
        self._projects: dict[tuple[str, str], set[RunKey]] = {}

    # ------------------------------------------------------------------------------------------------ writing

    def saw_run(self, body: Body, *, deleted: bool = False) -> RunKey:
        metadata = body["metadata"]
        key = (str(metadata["namespace"]), str(metadata["name"]))
        kept = kept_run(body)
        with self._lock:
            old = self._runs.get(key)
            if deleted:
                if old is not None and old.uid == kept.uid:
                    del self._runs[key]
                    self._projects.get(project_key(old.body), set()).discard(key)
            elif old is None or old.uid != kept.uid or not kept.older(old):
                self._runs[key] = kept
                self._projects.setdefault(project_key(body), set()).add(key)
        return key

    def saw_job(self, body: Body, *, deleted: bool = False) -> RunKey | None:
        """The run it belongs to by its labels; None where it carries none."""
        kept = kept_job(body)
        with self._lock:
            return self._saw(self._jobs, body, kept, deleted=deleted)

    def saw_pod(self, body: Body, *, deleted: bool = False) -> RunKey | None:
        with self._lock:
            body = self._with_first_deletion(body)
            kept = kept_pod(body)
            key = self._saw(self._pods, body, kept, deleted=deleted)
            if key is not None and deleted:
                self._gone.setdefault(_run_uid(body), {})[kept.uid] = (kept, self._now())
            return key

    def forget(self, run_uid: str) -> None:
        """The attempt is settled: what is gone need not be remembered."""
        with self._lock:
            self._gone.pop(run_uid, None)

    def prune(self) -> None:
        """Drop what is remembered of pods for too long."""
        oldest = self._now() - GONE_KEPT_S
        with self._lock:
            for uid in list(self._gone):
                kept = {pod: seen for pod, seen in self._gone[uid].items() if seen[1] >= oldest}
                if kept:
                    self._gone[uid] = kept
                else:
                    del self._gone[uid]

    # ------------------------------------------------------------------------------------------------ reading

    def run(self, key: RunKey) -> Body | None:
        with self._lock:
            found = self._runs.get(key)
        return found.body if found is not None else None

    def runs(self) -> list[RunKey]:
        with self._lock:
            return list(self._runs)

    def states(self) -> list[tuple[RunKey, str, str]]:
        """Key, uid and phase of every run; the phase is empty before the first status."""
        with self._lock:
            return [(key, found.uid, found.phase) for key, found in self._runs.items()]

    def of_project(self, body: Body) -> list[Body]:
        """Runs of the same project and namespace, the given one among them."""
        with self._lock:
            keys = self._projects.get(project_key(body), set())
            found = [self._runs[key] for key in keys if key in self._runs]
        return [one.body for one in found]

    def jobs(self, run_uid: str) -> list[Body]:
        with self._lock:
            found = list(self._jobs.get(run_uid, {}).values())
        return [one.body for one in found]

    def pods(self, run_uid: str, attempt: int) -> list[tuple[Body, bool]]:
        """Pods of one attempt and whether each is gone; those that are there come last."""
        with self._lock:
            gone = [(one, True) for one, _ in self._gone.get(run_uid, {}).values()]
            there = [(one, False) for one in self._pods.get(run_uid, {}).values()]
        found = [(one.body, is_gone) for one, is_gone in (*gone, *there)]
        return [one for one in found if _attempt(one[0]) == attempt]

    # ------------------------------------------------------------------------------------------------ inside

    def _with_first_deletion(self, body: Body) -> Body:
        """The body with the time at which its deletion was asked for: the kubelet's last word sets another, without grace."""
        metadata = body["metadata"]
        old = self._pods.get(_run_uid(body), {}).get(str(metadata["uid"]))
        if old is None or "deletionTimestamp" not in metadata:
            return body
        first = old.body["metadata"]
        if "deletionTimestamp" not in first:
            return body
        asked = {name: first[name] for name in _DELETION if name in first}
        return {**body, "metadata": {**metadata, **asked}}

    @staticmethod
    def _saw(known: dict[str, dict[str, Kept]], body: Body, kept: Kept, *, deleted: bool) -> RunKey | None:
        metadata = body["metadata"]
        labels = metadata.get("labels") or {}
        run_uid, name = labels.get(RUN_UID_LABEL), labels.get(RUN_LABEL)
        if not run_uid or not name:
            return None
        found = known.setdefault(run_uid, {})
        if deleted:
            found.pop(kept.uid, None)
            if not found:
                del known[run_uid]
        elif kept.uid not in found or not kept.older(found[kept.uid]):
            found[kept.uid] = kept
        return (str(metadata["namespace"]), str(name))


def project_key(body: Body) -> tuple[str, str]:
    """Namespace and name of a run's project; an inline one is named as the run unless it says otherwise."""
    spec, metadata = body.get("spec") or {}, body["metadata"]
    reference, inline = spec.get("projectRef") or {}, spec.get("project") or {}
    name = reference.get("name") or inline.get("id") or metadata["name"]
    return (str(metadata["namespace"]), str(name))


def _run_uid(body: Body) -> str:
    return str((body["metadata"].get("labels") or {}).get(RUN_UID_LABEL) or "")


def _attempt(body: Body) -> int:
    try:
        return int((body["metadata"].get("labels") or {}).get(ATTEMPT_LABEL) or 0)
    except ValueError:
        return 0
