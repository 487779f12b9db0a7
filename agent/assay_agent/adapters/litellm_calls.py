"""Calls through litellm: its import, and our tries, waits and corrections around it. The only importer of the SDK.

The import takes seconds, so it happens on a thread of its own from the moment a model is opened, and the first call waits for it.
The SDK's own retries hide errors; `litellm_failures` decides what a failure means. Used by the model and the embedder.
"""

from __future__ import annotations

import os
import random
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from assay_agent.adapters.litellm_failures import Again, End, Failure, Without, decide
from assay_core.errors import ConfigError

BACKOFF_CAP_S = 60.0
JITTER = 0.25
_IMPORT_S = 120.0
"""Seconds the first call waits for the import at most."""
_CORRECTIONS = 6
"""Parameters that may be left out or renamed for one model."""


class NoAnswer(Exception):
    """A reply that is none; a fault of the server like any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Who is called, how the user calls its secret, and how patiently; times in seconds."""

    provider: str
    model: str
    secret_key: str
    tries: int
    backoff_s: float
    delay_s: float = 0.0


class _Import:
    """litellm, imported once per process, off the main thread."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._module: ModuleType | None = None
        self._error: ImportError | None = None

    def start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._import, name="litellm-import", daemon=True)
                self._thread.start()

    def module(self) -> Any:
        self.start()
        assert self._thread is not None
        self._thread.join(_IMPORT_S)
        if self._module is None:
            raise ConfigError(
                "the package litellm is not installed: install assay with the extra litellm, or use provider scout"
            ) from self._error
        return self._module

    def _import(self) -> None:
        # Otherwise it fetches a price list from the network as it is imported.
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import litellm
        except ImportError as error:
            self._error = error
            return
        # It builds some of its own models as it is first used, and warns of them.
        warnings.filterwarnings("ignore", message="Items? .* on TypedDict class", category=UserWarning)
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        litellm.drop_params = False
        self._module = litellm


sdk = _Import()


class Caller:
    """Calls of one connection. Safe to use from several threads; remembers what the model does not take."""

    def __init__(
        self,
        connection: Connection,
        *,
        sleep: Callable[[float], None] = time.sleep,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._connection = connection
        self._sleep, self._spread = sleep, spread
        self._corrections: dict[str, str | None] = {}
        self._lock = threading.Lock()
        sdk.start()

    def call(self, function: str, arguments: Mapping[str, Any], read: Callable[[Any], Any]) -> Any:
        """`read` of litellm's answer. Corrections cost no try; pauses grow, or are as long as asked for."""
        connection = self._connection
        work = getattr(sdk.module(), function)
        tries = 0
        while True:
            if connection.delay_s:
                self._sleep(connection.delay_s)
            sent = self._corrected(arguments)
            try:
                return read(work(**sent))
            except Exception as error:
                verdict = decide(
                    _failure(error),
                    provider=connection.provider,
                    model=connection.model,
                    setting=connection.secret_key,
                    sent=sent,
                    now=datetime.now(UTC),
                )
                if isinstance(verdict, End):
                    raise verdict.error from error
                if isinstance(verdict, Without):
                    self._correct(verdict, verdict_of=error)
                    continue
                tries += 1
                if tries >= connection.tries:
                    raise verdict.error from error
                self._sleep(self._pause(verdict, tries))

    def _corrected(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        sent = {**arguments, "max_retries": 0}
        with self._lock:
            corrections = dict(self._corrections)
        for name, renamed in corrections.items():
            if name in sent:
                value = sent.pop(name)
                if renamed:
                    sent[renamed] = value
        return sent

    def _correct(self, found: Without, *, verdict_of: Exception) -> None:
        with self._lock:
            turned_back = (
                found.renamed_to is not None and self._corrections.get(found.renamed_to) == found.parameter
            )
            if turned_back or found.parameter in self._corrections or len(self._corrections) >= _CORRECTIONS:
                raise ConfigError(
                    f"{self._connection.provider}/{self._connection.model} accepts the request neither with "
                    f"{found.parameter} nor without it"
                ) from verdict_of
            self._corrections[found.parameter] = found.renamed_to

    def _pause(self, verdict: Again, tries: int) -> float:
        """Seconds: what was asked for, or the doubled pause within a quarter either way; never above the cap."""
        own: float = self._connection.backoff_s * 2 ** (tries - 1) * (1 + JITTER * (2 * self._spread() - 1))
        return min(max(own, verdict.after_s or 0.0), BACKOFF_CAP_S)


def _failure(error: Exception) -> Failure:
    """What litellm's exception says, whatever it is: its own classes, the SDK's below, or a plain one."""
    status = getattr(error, "status_code", None)
    kind = type(error).__name__
    text = str(getattr(error, "message", None) or error)
    # A connection that was refused arrives as an internal error of the server that was never reached.
    if kind in ("Timeout", "APIConnectionError") or text.endswith("Connection error."):
        status = None
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}
    after = headers.get("retry-after") if hasattr(headers, "get") else None
    return Failure(
        kind=kind,
        text=text,
        status=status if isinstance(status, int) and status >= 400 else None,
        retry_after=str(after) if after else None,
    )
