"""Points before and after every call to a store, a vector index, a warehouse and a model; at one of them the process dies.

The stores are watched through the driver's own command events, the rest through wrappers of its seam: no line of the program is
changed for this. Every point passed is written to a file, so that a harness knows them all and what was called in what order.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pymongo import monitoring

from assay_agent.ports import (
    Completion,
    CompletionRequest,
    LanguageModel,
    MiddlewareContext,
    QueryLimits,
    QueryResult,
    TableRef,
    Warehouse,
)
from assay_core.model.table import TableSchema

WRITES = frozenset({"insert", "update", "delete", "findAndModify", "bulkWrite"})
"""Commands that change something; between two reads there is nothing to lose."""


class Points:
    """Counts points as they are passed; dies at the `kill`ed one (`before:model:3`)."""

    def __init__(self, *, trace: Path, kill: str | None) -> None:
        self._kill = kill
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._trace = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def reach(self, point: str) -> None:
        with self._lock:
            self._seen[point] += 1
            name = f"{point}:{self._seen[point]}"
            self._write({"point": name})
            if name == self._kill:
                os.kill(os.getpid(), signal.SIGKILL)

    def note(self, **fields: str) -> None:
        with self._lock:
            self._write(fields)

    def around(self, what: str, work: Callable[[], Any]) -> Any:
        self.reach(f"before:{what}")
        answer = work()
        self.reach(f"after:{what}")
        return answer

    def _write(self, fields: dict[str, str]) -> None:
        os.write(self._trace, (json.dumps(fields) + "\n").encode())


class StorePoints(monitoring.CommandListener):
    """Every write of the driver, from the thread that sends it."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in WRITES:
            self._points.reach(f"before:store.{event.command_name}")

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        if event.command_name in WRITES:
            self._points.reach(f"after:store.{event.command_name}")

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """A failed command is the driver's to repeat or to raise."""


class WatchedVectors:
    """A vector index, every call between two points."""

    def __init__(self, inner: Any, points: Points) -> None:
        self._inner = inner
        self._points = points

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name in ("close", "count", "collections"):
            return method
        return lambda *args, **named: self._points.around(f"vectors.{name}", lambda: method(*args, **named))


class WatchedWarehouse:
    """A warehouse, every call between two points; statements are noted when they have run."""

    def __init__(self, inner: Warehouse, points: Points) -> None:
        self._inner = inner
        self._points = points
        self.datasource_id, self.dialect, self.datasets = inner.datasource_id, inner.dialect, inner.datasets

    def check(self) -> str:
        return self._inner.check()

    def tables(self) -> Sequence[TableRef]:
        return self._points.around("warehouse.tables", self._inner.tables)  # type: ignore[no-any-return]  # passed through

    def describe(self, refs: Sequence[str]) -> Sequence[TableSchema]:
        return self._points.around("warehouse.describe", lambda: self._inner.describe(refs))  # type: ignore[no-any-return]  # passed through

    def sample(self, ref: str, *, limits: QueryLimits) -> QueryResult:
        return self._points.around("warehouse.sample", lambda: self._inner.sample(ref, limits=limits))  # type: ignore[no-any-return]  # passed through

    def execute(self, sql: str, *, limits: QueryLimits) -> QueryResult:
        def run() -> QueryResult:
            self._points.note(query=sql)
            return self._inner.execute(sql, limits=limits)

        return self._points.around("warehouse.execute", run)  # type: ignore[no-any-return]  # passed through

    def close(self) -> None:
        self._inner.close()


class WatchedModel:
    """A model, every call between two points; what it was asked and has answered is noted by its digest."""

    def __init__(self, inner: LanguageModel, points: Points) -> None:
        self._inner = inner
        self._points = points
        self.provider, self.model, self.context_tokens = inner.provider, inner.model, inner.context_tokens

    def complete(self, request: CompletionRequest) -> Completion:
        def ask() -> Completion:
            answer = self._inner.complete(request)
            text = json.dumps([(message.role, message.content) for message in request.messages])
            self._points.note(asked=hashlib.sha256(text.encode()).hexdigest()[:24], layer=request.layer)
            return answer

        return self._points.around("model", ask)  # type: ignore[no-any-return]  # passed through


def watching_warehouse(points: Points) -> Callable[[Warehouse, MiddlewareContext], Warehouse]:
    """The wrapper as warehouse middleware."""
    return lambda inner, _context: WatchedWarehouse(inner, points)
