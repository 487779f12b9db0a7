"""The cluster and the namespace a command is about, and waiting with a limit."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from assay_operator.cluster import Cluster
from assay_operator.plugin.show import exit_code, progress

_PAUSE_S = 1.0
_SPEAK_S = 30.0
"""Seconds after which a log, which is no terminal, is told that nothing has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Where a command acts."""

    cluster: Cluster
    namespace: str

    def run(self, name: str) -> dict[str, Any]:
        """`Gone` where there is none."""
        return self.cluster.run(self.namespace, name)

    def follow(self, name: str, *, limit_s: float, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Show progress until it is so, or the limit is over; returns what was seen last."""
        body: dict[str, Any] = {}
        with_line = Line()
        for _ in ticks(limit_s):
            body = self.run(name)
            with_line.show(progress(body))
            if until(body):
                break
        with_line.end()
        return body

    def ended(self, body: dict[str, Any]) -> bool:
        return exit_code(body) is not None


class Line:
    """One line that changes in place on a terminal, and is printed when it changes elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last, self._at = "", 0.0

    def show(self, text: str) -> None:
        if self._live:
            sys.stderr.write(f"\r\x1b[2K{text}")
            sys.stderr.flush()
        elif text != self._last or time.monotonic() - self._at > _SPEAK_S:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
            self._at = time.monotonic()
        self._last = text

    def end(self) -> None:
        if self._live and self._last:
            sys.stderr.write("\n")


def ticks(limit_s: float, *, pause_s: float = _PAUSE_S) -> Iterator[None]:
    """Once at once, then every `pause_s` seconds until the limit is over."""
    end = time.monotonic() + limit_s
    while True:
        yield
        if time.monotonic() + pause_s > end:
            return
        time.sleep(pause_s)
