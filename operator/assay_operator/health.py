"""Whether the operator still sees what happens: the loop that watches turns, and own writes come back through the watch.

An idle cluster sends no event for hours, so the age of the last one proves nothing. An own write must come back: one that has not
after `UNSEEN_S` says that the watch of its kind is dead and that its own time limits did not heal it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

LOOP_S = 60.0
"""Seconds the loop of the watches may be silent."""
UNSEEN_S = 180.0
"""Seconds within which an own write comes back; a frozen watch heals itself within 75."""


class Health:
    """Safe between threads. `monotonic` gives seconds."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._now = monotonic
        self._lock = threading.Lock()
        self._beat = monotonic()
        self._wrote: dict[str, tuple[int, float]] = {}
        self._watching = False

    def beat(self) -> None:
        """The loop of the watches has turned."""
        with self._lock:
            self._beat = self._now()
            self._watching = True

    def wrote(self, resource: str, body: Mapping[str, Any]) -> None:
        """An own write; of several that have not come back the first one counts."""
        version = _version(body)
        with self._lock:
            if version is not None and resource not in self._wrote:
                self._wrote[resource] = (version, self._now())

    def watched(self, resource: str, body: Mapping[str, Any]) -> None:
        version = _version(body)
        with self._lock:
            waited = self._wrote.get(resource)
            if waited is not None and version is not None and version >= waited[0]:
                del self._wrote[resource]

    @property
    def ready(self) -> bool:
        """The watches have begun."""
        return self._watching

    def problem(self) -> str | None:
        """What is wrong, in one line; None when nothing is."""
        with self._lock:
            silent = self._now() - self._beat
            if silent > LOOP_S:
                return f"the loop of the watches has not turned for {silent:.0f} s"
            for resource, (_, since) in self._wrote.items():
                if (waited := self._now() - since) > UNSEEN_S:
                    return f"a write to {resource} has not come back through its watch for {waited:.0f} s"
        return None


def _version(body: Mapping[str, Any]) -> int | None:
    try:
        return int(body["metadata"]["resourceVersion"])
    except (KeyError, ValueError, TypeError):
        return None
