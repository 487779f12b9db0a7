"""The one place that reads the wall clock. Stored times are UTC and cut to the millisecond, as BSON keeps them."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The current time in UTC, whole milliseconds, so that a stored and read value compares equal."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def iso_z(moment: datetime) -> str:
    """ISO-8601 in UTC with a trailing Z and milliseconds; a time without zone is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
