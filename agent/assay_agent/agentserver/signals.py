"""SIGTERM and Ctrl-C: ask the run to stop at its next safe point, and end a process that is stuck."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from assay_agent.context import StopSignal


@contextmanager
def stopping_signals(stop: StopSignal, *, grace_s: float) -> Iterator[None]:
    """SIGTERM and Ctrl-C ask the run to stop; one that is stuck in a call is ended when the grace is nearly over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, _frame: object) -> None:
        code = 143 if number == signal.SIGTERM else 130
        if stop.exit_code is not None and number == signal.SIGINT:
            os._exit(code)
        stop.request(code)
        guard = threading.Timer(grace_s - 2, os._exit, args=(code,))
        guard.daemon = True
        guard.start()
        guards.append(guard)

    guards: list[threading.Timer] = []
    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for guard in guards:
            guard.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
