"""The last that was seen of every run, Job and pod, by the watch or by an own write; and of pods that are gone.

Written by the handlers and by `apply`, read by `observe`. An older body never replaces a newer one: versions of one object are
compared as numbers, which the API server promises.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from assay_operator.resource import ATTEMPT_LABEL, RUN_LABEL, RUN_UID_LABEL

Body = Mapping[str, Any]
RunKey = tuple[str, str]
"""Namespace and name."""

_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
GONE_KEPT_S = 3600.0
"""Seconds a pod that is gone is remembered at most, when no outcome is stored before."""


class Cache:
    """Safe between threads. Bodies are not changed by anyone."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._now = monotonic
        self._lock = threading.Lock()
        self._runs: dict[RunKey, Body] = {}
        self._jobs: dict[str, dict[str, Body]] = {}
        self._pods: dict[str, dict[str, Body]] = {}
        self._gone: dict[str, dict[str, tuple[Body, float]]] = {}
        self._projects: dict[tuple[str, str], set[RunKey]] = {}

    # ------------------------------------------------------------------------------------------------ writing

    def saw_run(self, body: Body, *, deleted: bool = False) -> RunKey:
        metadata = body["metadata"]
        key = (str(metadata["namespace"]), str(metadata["name"]))
        with self._lock:
            old = self._runs.get(key)
            if deleted:
                if old is not None and old["metadata"]["uid"] == metadata["uid"]:
                    del self._runs[key]
                    self._projects.get(project_key(old), set()).discard(key)
            elif old is None or old["metadata"]["uid"] != metadata["uid"] or not _older(body, old):
                self._runs[key] = body
                self._projects.setdefault(project_key(body), set()).add(key)
        return key

    def saw_job(self, body: Body, *, deleted: bool = False) -> RunKey | None:
        """The run it belongs to by its labels; None where it carries none."""
        with self._lock:
            return self._saw(self._jobs, body, deleted=deleted)

    def saw_pod(self, body: Body, *, deleted: bool = False) -> RunKey | None:
        with self._lock:
            body = self._with_first_deletion(body)
            key = self._saw(self._pods, body, deleted=deleted)
            if key is not None and deleted:
                uid = _run_uid(body)
                self._gone.setdefault(uid, {})[str(body["metadata"]["uid"])] = (body, self._now())
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
            return self._runs.get(key)

    def runs(self) -> list[RunKey]:
        with self._lock:
            return list(self._runs)

    def of_project(self, body: Body) -> list[Body]:
        """Runs of the same project and namespace, the given one among them."""
        with self._lock:
            keys = self._projects.get(project_key(body), set())
            return [self._runs[key] for key in keys if key in self._runs]

    def jobs(self, run_uid: str) -> list[Body]:
        with self._lock:
            return list(self._jobs.get(run_uid, {}).values())

    def job(self, namespace: str, name: str) -> Body | None:
        """A Job of any run by its name; of one that is not labelled nothing is known here."""
        with self._lock:
            for jobs in self._jobs.values():
                for body in jobs.values():
                    if (body["metadata"]["namespace"], body["metadata"]["name"]) == (namespace, name):
                        return body
            return None

    def pods(self, run_uid: str, attempt: int) -> list[tuple[Body, bool]]:
        """Pods of one attempt and whether each is gone; those that are there come last."""
        with self._lock:
            gone = [(body, True) for body, _ in self._gone.get(run_uid, {}).values()]
            there = [(body, False) for body in self._pods.get(run_uid, {}).values()]
        return [one for one in (*gone, *there) if _attempt(one[0]) == attempt]

    def run_uids_of_jobs(self) -> list[str]:
        with self._lock:
            return list(self._jobs)

    # ------------------------------------------------------------------------------------------------ inside

    def _with_first_deletion(self, body: Body) -> Body:
        """The body with the time at which its deletion was asked for: the kubelet's last word sets another, without grace."""
        metadata = body["metadata"]
        old = self._pods.get(_run_uid(body), {}).get(str(metadata["uid"]))
        first = old["metadata"] if old is not None else {}
        if "deletionTimestamp" not in first or "deletionTimestamp" not in metadata:
            return body
        asked = {name: first[name] for name in _DELETION if name in first}
        return {**body, "metadata": {**metadata, **asked}}

    @staticmethod
    def _saw(kept: dict[str, dict[str, Body]], body: Body, *, deleted: bool) -> RunKey | None:
        metadata = body["metadata"]
        labels = metadata.get("labels") or {}
        run_uid, name = labels.get(RUN_UID_LABEL), labels.get(RUN_LABEL)
        if not run_uid or not name:
            return None
        found = kept.setdefault(run_uid, {})
        uid = str(metadata["uid"])
        if deleted:
            found.pop(uid, None)
            if not found:
                del kept[run_uid]
        elif uid not in found or not _older(body, found[uid]):
            found[uid] = body
        return (str(metadata["namespace"]), str(name))


def project_key(body: Body) -> tuple[str, str]:
    """Namespace and name of a run's project; an inline one is named as the run unless it says otherwise."""
    spec, metadata = body.get("spec") or {}, body["metadata"]
    reference, inline = spec.get("projectRef") or {}, spec.get("project") or {}
    name = reference.get("name") or inline.get("id") or metadata["name"]
    return (str(metadata["namespace"]), str(name))


def _older(body: Body, than: Body) -> bool:
    try:
        return int(body["metadata"]["resourceVersion"]) < int(than["metadata"]["resourceVersion"])
    except (KeyError, ValueError):
        return False


def _run_uid(body: Body) -> str:
    return str((body["metadata"].get("labels") or {}).get(RUN_UID_LABEL) or "")


def _attempt(body: Body) -> int:
    try:
        return int((body["metadata"].get("labels") or {}).get(ATTEMPT_LABEL) or 0)
    except ValueError:
        return 0
