"""An operator that dies: a reconciler over the real cluster and the real store, whose process ends before each new write and after.

What it kept in memory is gone then, and the next one begins with a relist.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from assay_core.errors import AssayError
from assay_core.store.client import Store
from assay_core.vectors.collections import Collections
from assay_operator.cache import Cache, RunKey
from assay_operator.cluster import Cluster
from assay_operator.job import JobSettings
from assay_operator.wiring import reconciler, relist
from assay_operator.workqueue import WorkQueue

_PARTS = frozenset({"runs", "projects", "outcomes", "checkpoints"})
_WRITES = frozenset(
    {
        *("create_job", "delete_job", "delete_run", "write_status", "set_finalizers", "create_event"),
        *("create", "resume", "request_suspend", "request_cancel", "fail_unowned", "put", "upsert", "purge"),
        *("refresh", "drop"),
    }
)
_PAUSE_S = 0.2


class Died(BaseException):
    """The process has ended; nothing in it may notice."""


@dataclass(slots=True)
class Deaths:
    """A process dies before its first write that the last process has not made as well; the next one makes it, and dies after."""

    made: dict[str, int] = field(default_factory=dict)
    count: int = 0
    _before: list[str] = field(default_factory=list)
    _now: list[str] = field(default_factory=list)
    _due: bool = False

    def begin(self) -> None:
        self._before, self._now = self._now, []

    def around(self, name: str, write: Callable[[], Any]) -> Any:
        again = self._before[len(self._now) : len(self._now) + 1] == [name]
        if not again and not self._due:
            self._due = True
            self.count += 1
            raise Died(f"before {name}")
        answer = write()
        self._now.append(name)
        self.made[name] = self.made.get(name, 0) + 1
        if not again:
            self._due = False
            self.count += 1
            raise Died(f"after {name}")
        return answer


class Mortal:
    """Whatever it stands for, with its writes as they are made by a process that dies."""

    def __init__(self, target: Any, deaths: Deaths) -> None:
        self._target, self._deaths = target, deaths

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name in _PARTS:
            return Mortal(found, self._deaths)
        if name not in _WRITES:
            return found

        def write(*arguments: Any, **named: Any) -> Any:
            return self._deaths.around(name, lambda: found(*arguments, **named))

        return write


@dataclass(frozen=True, slots=True, kw_only=True)
class MortalOperator:
    """Reconciles one run until it is told that it is done; `deaths` counts."""

    cluster: Cluster
    store: Store
    collections: Collections
    jobs: JobSettings
    deaths: Deaths = field(default_factory=Deaths)

    def serve(self, key: RunKey, *, until: Callable[[], bool], limit_s: float = 180.0) -> None:
        end, last = time.monotonic() + limit_s, ""
        while not until():
            if time.monotonic() > end:
                raise AssertionError(f"not within {limit_s:g} s, {self.deaths}; last error: {last}")
            try:
                self._live(key)
            except Died:
                continue
            except AssayError as error:
                last = str(error)  # as the worker does: it is tried again
            time.sleep(_PAUSE_S)

    def _live(self, key: RunKey) -> None:
        self.deaths.begin()
        cache, queue = Cache(), WorkQueue[RunKey]()
        relist(self.cluster, cache, queue)
        made = reconciler(
            cache=cache,
            cluster=cast(Cluster, Mortal(self.cluster, self.deaths)),
            store=cast(Store, Mortal(self.store, self.deaths)),
            collections=cast(Collections, Mortal(self.collections, self.deaths)),
            cluster_id="mortal",
            jobs=self.jobs,
        )
        while made.reconcile(key) == 0:
            pass  # as long as there is a next thing to be done at once; each of them is a write
