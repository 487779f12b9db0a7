"""Keys that want to be looked at: each at most once in the queue and by one worker at a time.

A key that is added while a worker has it comes again afterwards; a key that failed comes again after a growing pause. Adding is
cheap and never blocks, so that a watch handler can do it.
"""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0


class WorkQueue(Generic[Key]):
    """Safe between threads. `monotonic` gives seconds."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._now = monotonic
        self._changed = threading.Condition()
        self._ready: OrderedDict[Key, float] = OrderedDict()
        self._later: list[tuple[float, int, Key]] = []
        self._due: dict[Key, float] = {}
        self._busy: set[Key] = set()
        self._again: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._number = 0
        self._closed = False

    def add(self, key: Key, *, after_s: float = 0.0) -> None:
        """Look at `key` at once, or after a while unless it is looked at sooner."""
        with self._changed:
            if after_s > 0:
                self._put_off(key, after_s)
            else:
                self._put(key)
            self._changed.notify()

    def get(self, *, timeout_s: float) -> Key | None:
        """The next key, which is then the caller's until `done`; None when there is none in time, or the queue is closed."""
        until = self._now() + timeout_s
        with self._changed:
            while not self._closed:
                self._take_due()
                if self._ready:
                    key, _ = self._ready.popitem(last=False)
                    self._busy.add(key)
                    return key
                left = until - self._now()
                if left <= 0:
                    return None
                self._changed.wait(min(left, self._next_due_s()))
            return None

    def done(self, key: Key, *, again_s: float | None = None, failed: bool = False) -> None:
        """Give `key` back; after a failure it comes again by itself."""
        with self._changed:
            self._busy.discard(key)
            if failed:
                count = self._failures[key] = self._failures.get(key, 0) + 1
                pause_s = min(FIRST_PAUSE_S * 2.0 ** min(count - 1, 16), LONGEST_PAUSE_S)
                self._put_off(key, pause_s * random.uniform(0.8, 1.2))
            else:
                self._failures.pop(key, None)
                if again_s is not None:
                    self._put_off(key, again_s)
            if key in self._again:
                self._ready[key] = self._again.pop(key)
            self._changed.notify()

    def failures(self, key: Key) -> int:
        with self._changed:
            return self._failures.get(key, 0)

    def depth(self) -> int:
        with self._changed:
            return len(self._ready)

    def oldest_s(self) -> float:
        """Seconds the first ready key has waited."""
        with self._changed:
            first = next(iter(self._ready.values()), None)
            return 0.0 if first is None else self._now() - first

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # ------------------------------------------------------------------------------------------------ inside

    def _put(self, key: Key) -> None:
        self._due.pop(key, None)
        if key in self._busy:
            self._again.setdefault(key, self._now())
        elif key not in self._ready:
            self._ready[key] = self._now()

    def _put_off(self, key: Key, after_s: float) -> None:
        due = self._now() + after_s
        if key in self._ready or self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._number += 1
        heapq.heappush(self._later, (due, self._number, key))

    def _take_due(self) -> None:
        while self._later and self._later[0][0] <= self._now():
            due, _, key = heapq.heappop(self._later)
            if self._due.get(key) == due:
                self._put(key)

    def _next_due_s(self) -> float:
        return max(self._later[0][0] - self._now(), 0.001) if self._later else 60.0
