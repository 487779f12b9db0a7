"""Logging for every program: structlog to one stream, keys bound by context, and no secret in any line.

`configure` is called once by an entry point. A secret is made known with `hide` where it is read; it is then
replaced in the finished line, whatever part of the event (message, key, traceback) carried it. Lines of other
libraries that use the standard `logging` pass through the same end.
"""

from __future__ import annotations

import json as json_text
import logging
import sys
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, TextIO
from urllib.parse import quote

import structlog

from assay_core.errors import ConfigError

MASK = "***"
_SHORTEST = 4
"""Shorter secrets are not searched for: replacing them would garble every line and so give them away."""

_lock = threading.Lock()
_hidden: list[str] = []
"""Replaced whole under the lock, read without it."""


def configure(*, level: str, json: bool, stream: TextIO | None = None) -> None:
    """Log to `stream` (the process's stderr by default) at `level`, as JSON lines or for the eye."""
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ConfigError(f"LOG_LEVEL is {level!r}; use debug, info, warning or error")
    out = stream if stream is not None else sys.stderr
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if json:
        ending: list[Any] = [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ]
    else:
        ending = [structlog.dev.ConsoleRenderer(colors=out.isatty())]
    ending.append(_without_secrets)
    structlog.configure(
        processors=[*shared, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))


def logger(name: str) -> Any:
    """A logger that says where it speaks from."""
    return structlog.get_logger(name, component=name)


@contextmanager
def bound(**keys: Any) -> Iterator[None]:
    """Carry `keys` (run, phase, step …) on every line of this thread inside the block."""
    with structlog.contextvars.bound_contextvars(**keys):
        yield


def hide(secret: str | None) -> None:
    """From now on replace `secret` in every line, also as it looks inside JSON or a URL."""
    if not secret or len(secret) < _SHORTEST:
        return
    forms = {secret, json_text.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret), quote(secret, safe="")}
    with _lock:
        # Longest first: one secret may be part of another.
        _hidden[:] = sorted({*_hidden, *forms}, key=len, reverse=True)


def masked(text: str) -> str:
    """`text` without any hidden secret; for messages that do not pass through the log."""
    for secret in tuple(_hidden):
        if secret in text:
            text = text.replace(secret, MASK)
    return text


def _without_secrets(_: Any, __: str, line: str | MutableMapping[str, Any]) -> Any:
    return masked(line) if isinstance(line, str) else line
