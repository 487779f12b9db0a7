"""Named points at which a test can kill this process: `ASSAY_FAULT=before:put:3` at the third time the point
is reached.

`reach` costs one comparison when nothing is set. Nothing here changes what a healthy run does.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping

from assay_core.errors import ConfigError

_lock = threading.Lock()
_armed: str | None = None
_left = 0


def arm(environment: Mapping[str, str]) -> None:
    """Read `ASSAY_FAULT` (`point` or `point:n`); called once by the entry point."""
    global _armed, _left
    spec = environment.get("ASSAY_FAULT", "")
    point, _, count = spec.rpartition(":")
    if not count.isdigit():
        point, count = spec, "1"
    if spec and (not point or int(count) < 1):
        raise ConfigError("ASSAY_FAULT must be `point` or `point:n` with n of at least 1")
    _armed, _left = (point, int(count)) if point else (None, 0)


def reach(point: str) -> None:
    """Die at once, as by kill -9, if this is the armed point and its count is used up."""
    global _left  # noqa: PLW0603
    if _armed is None or point != _armed:
        return
    with _lock:
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
