"""Events about a Job or a pod, asked for sparingly: the API server reads through all events of a namespace for each question.

Called by `observe` for attempts that do not get on. Thousands may wait for quota at once, so an object is asked about every
`AGAIN_S` at most, and all of them together `PER_S` times a second; between, the last answer holds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from assay_operator.cluster import Cluster
from assay_operator.seen import EventSeen, events_seen

AGAIN_S = 20.0
PER_S = 5.0
_KEPT_S = 600.0
"""Seconds an answer is kept that nobody asks for any more."""


class Events:
    """Safe between threads. `monotonic` gives seconds."""

    def __init__(self, cluster: Cluster, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._now = cluster, monotonic
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, tuple[EventSeen, ...]]] = {}
        self._free_at = monotonic()

    def about(self, namespace: str, uid: str) -> tuple[EventSeen, ...]:
        """The last answer, or a new one where it is time. Raises what the API raises."""
        if not self._may_ask(uid):
            return self._known.get(uid, (0.0, ()))[1]
        found = events_seen(self._cluster.events(namespace, uid))
        with self._lock:
            self._known[uid] = (self._now(), found)
        return found

    def _may_ask(self, uid: str) -> bool:
        with self._lock:
            now = self._now()
            asked = self._known.get(uid)
            if now < self._free_at or (asked is not None and now < asked[0] + AGAIN_S):
                return False
            self._free_at = max(self._free_at, now - 1.0) + 1.0 / PER_S
            for old in [one for one, (at, _) in self._known.items() if now > at + _KEPT_S]:
                del self._known[old]
            self._known[uid] = (now, asked[1] if asked is not None else ())
            return True
