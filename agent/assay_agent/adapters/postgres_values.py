"""How values that PostgreSQL's protocol carries become Python's, where psycopg would refuse one. For PostgreSQL and Redshift."""

from __future__ import annotations

from typing import Any, ClassVar

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.types.datetime import (
    DateLoader,
    IntervalLoader,
    TimeLoader,
    TimestampLoader,
    TimestamptzLoader,
    TimetzLoader,
)


class OrText(Loader):
    """What Python cannot hold (infinity, before year 1, after 9999, 24:00:00), or is not as `inner` reads it, stays text."""

    inner: ClassVar[type[Loader]]

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._inner = self.inner(oid, context)

    def load(self, data: Buffer) -> Any:
        try:
            return self._inner.load(data)
        except (psycopg.DataError, NotImplementedError, OverflowError, ValueError):
            return bytes(data).decode(errors="replace")


class _Date(OrText):
    inner = DateLoader


class _Time(OrText):
    inner = TimeLoader


class _TimeTz(OrText):
    inner = TimetzLoader


class _Timestamp(OrText):
    inner = TimestampLoader


class _TimestampTz(OrText):
    inner = TimestamptzLoader


class _Interval(OrText):
    inner = IntervalLoader


LOADERS: dict[str | int, type[Loader]] = {
    "date": _Date,
    "time": _Time,
    "timetz": _TimeTz,
    "timestamp": _Timestamp,
    "timestamptz": _TimestampTz,
    "interval": _Interval,
}
"""By the name or the oid of the type."""
