"""Statements that run: stopped by their time limit or when their warehouse is closed, and never after they have ended.

Called by every SQL warehouse, which also says here what a driver's message looks like to a model.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from assay_core.errors import ConfigError, QueryError

MESSAGE_CHARS = 1_000


class Running:
    """The statements of one warehouse, until it is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statements: set[Statement] = set()
        self.closed = False

    @contextmanager
    def statement(self, cancel: Callable[[], None], *, timeout_s: float) -> Iterator[Statement]:
        """A statement that is stopped with `cancel` after `timeout_s`. Raises ConfigError once closed."""
        statement = Statement(cancel)
        with self._lock:
            if self.closed:
                raise ConfigError("the warehouse is closed")
            self._statements.add(statement)
        try:
            with statement.within(timeout_s):
                yield statement
        finally:
            with self._lock:
                self._statements.discard(statement)

    def close(self) -> None:
        """Stop what runs and let nothing start any more."""
        with self._lock:
            self.closed = True
            running = list(self._statements)
        for statement in running:
            statement.cancel()


class Statement:
    """One running statement: cancelled by its timer or by `close`, and never after it has ended."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._lock = threading.Lock()
        self._ended = False
        self.timed_out = False

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._lock:
                self._ended = True

    def _expire(self) -> None:
        self.timed_out = True
        self.cancel()

    def cancel(self) -> None:
        with self._lock:
            if not self._ended:
                self._cancel()


def tidy(text: str) -> str:
    """A driver's message fit for a model: no background links, no echoed statement, no runs of blank lines, short."""
    kept = re.split(r"\n\[SQL:|\n\(Background on this error", text, maxsplit=1)[0]
    kept = re.sub(r"^\([\w.]+\)\s*", "", kept.strip())
    kept = re.sub(r"\n\s*\n+", "\n", kept)
    return kept if len(kept) <= MESSAGE_CHARS else kept[: MESSAGE_CHARS - 1] + "…"


def too_slow(timeout_s: float) -> QueryError:
    return QueryError(
        f"the query was stopped after {timeout_s:g} s; read fewer rows or join less before aggregating",
        kind="timeout",
    )
