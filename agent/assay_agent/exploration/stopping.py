"""When a `done` is accepted. Pure."""

from __future__ import annotations


def may_finish(*, step: int, min_steps: int) -> bool:
    """The floor: a `done` counts from step `min_steps` on (0: always)."""
    return step >= min_steps
