"""What the secret managers of clouds have in common: tries with pauses between them, and what a value may be.

Called by `gcp_secrets` and `aws_secrets`, whose clients' own tries are off. Invariant: no message carries a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay_core.errors import ConfigError, TransientError

_VALUE_BYTES = 100_000
"""Both clouds keep 65,536 at most."""
_REASON_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Tries of one look-up, and seconds: to connect, to wait for an answer, and of the pauses, which double."""

    tries: int = 3
    connect_s: float = 5.0
    read_s: float = 10.0
    backoff_s: float = 0.5
    pause_cap_s: float = 10.0

    def pause_s(self, failed: int, *, asked_s: float | None, spread: float) -> float:
        """Before the next try: the doubled pause within a quarter either way, or what was asked for; never above the cap."""
        own: float = self.backoff_s * 2 ** (failed - 1) * (0.75 + spread / 2)
        return min(max(own, asked_s or 0.0), self.pause_cap_s)


def patiently(
    ask: Callable[[], str | None],
    *,
    patience: Patience,
    sleep: Callable[[float], None],
    spread: Callable[[], float],
) -> str | None:
    """What `ask` gives, tried again after a TransientError; the last one is raised."""
    for failed in range(1, patience.tries):
        try:
            return ask()
        except TransientError as error:
            sleep(patience.pause_s(failed, asked_s=error.retry_after_s, spread=spread()))
    return ask()


def text_of(raw: bytes, *, name: str) -> str | None:
    """A value as text, without the line break that a file or a shell leaves behind; None when nothing is in it."""
    if len(raw) > _VALUE_BYTES:
        raise ConfigError(f"the secret {name} is longer than {_VALUE_BYTES:,} bytes")
    try:
        return raw.decode("utf-8").rstrip("\r\n") or None
    except UnicodeDecodeError:
        raise ConfigError(f"the secret {name} is not text in UTF-8") from None


def in_one_line(text: object) -> str:
    """What a cloud says of a failure, on one line and not too long."""
    return " ".join(str(text).split())[:_REASON_CHARS]


def seconds_of(retry_after: str | None) -> float | None:
    """Seconds of a `Retry-After`, where it gives seconds."""
    return float(retry_after) if retry_after and retry_after.isdecimal() else None
