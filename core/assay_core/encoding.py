"""Turns any Python value a driver or a model may hand us into one that BSON and JSON can both hold. Pure.

Called where rows enter (digest, steps) and once more where a document is written (`fence`), so it is
idempotent: a storable value comes back equal. What was changed in a way a reader must know comes back as
caveats.

- exact numbers: a whole Decimal within 64 bits is an int, one that a float holds exactly is a float, any
  other is its text; a larger int is text. NaN and ±Infinity become None;
- times: a zone is converted to UTC, none is taken as UTC, both cut to the millisecond BSON keeps; dates,
  times of day and spans are ISO text;
- bytes are `0x…`, cut; ids are their text; sets and tuples are lists; enums are their values; numpy is
  unpacked;
- keys are text without NUL, not empty and not starting with `$`. Dots stay: every supported server (MongoDB 6
  and later) stores them in embedded documents, and a column's name must keep matching the rows that carry it.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from assay_core.clock import iso_z
from assay_core.model.step import Caveat, CaveatKind

__all__ = ["MAX_DEPTH", "canonical", "iso_span", "json_value", "safe_key"]

MAX_DEPTH = 90
"""Levels kept. The server's limit is 100, counted from the document that will hold the value."""
BYTES_KEPT = 256
"""Bytes of a binary value that are kept: enough to tell two values apart and to recognise a file's type."""

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_FLOAT_MIN, _FLOAT_MAX = -sys.float_info.max, sys.float_info.max
_CUT = {
    "not_finite": (CaveatKind.CONVERTED, "{n} values were not finite numbers (NaN or infinite) and are null"),
    "wide_number": (CaveatKind.CONVERTED, "{n} numbers do not fit 64 bits and are kept as exact text"),
    "bytes_cut": (CaveatKind.TRUNCATED, f"{{n}} binary values were cut to {BYTES_KEPT} bytes"),
    "bad_text": (CaveatKind.CONVERTED, "{n} texts held NUL or broken characters, which were replaced"),
    "renamed_key": (CaveatKind.CONVERTED, "{n} names could not be stored as they were and were changed"),
    "too_deep": (
        CaveatKind.TRUNCATED,
        f"{{n}} values were nested deeper than {MAX_DEPTH} levels and were cut",
    ),
    "unknown_type": (CaveatKind.CONVERTED, "{n} values of an unknown type are kept as text"),
}


def canonical(value: Any) -> tuple[Any, list[Caveat]]:
    """The storable form of `value` and what a reader must know about the conversion."""
    walk = _Walk()
    stored = walk.of(value, 0)
    return stored, walk.caveats() if walk.changes else []


def json_value(value: Any) -> Any:
    """The storable form with times as ISO-8601 text ending in Z, so that `json.dumps(...,
    allow_nan=False)` works.
    """
    return _times_as_text(_Walk().of(value, 0))


def safe_key(name: object) -> str:
    """A field name that can be stored: text, not empty, no NUL, not starting with `$`."""
    if type(name) is str and name and name[0] != "$" and name.isascii() and "\x00" not in name:
        return name
    return _Walk().key(name)


def _times_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _times_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_times_as_text(item) for item in value]
    return iso_z(value) if isinstance(value, datetime) else value


class _Walk:
    """One conversion: recursion plus a count of each kind of change."""

    __slots__ = ("changes", "fine_keys")

    def __init__(self) -> None:
        self.fine_keys: dict[object, str] = {}
        self.changes: Counter[str] = Counter()

    def caveats(self) -> list[Caveat]:
        return [
            Caveat(kind=kind, text=text.format(n=self.changes[name]))
            for name, (kind, text) in _CUT.items()
            if self.changes[name]
        ]

    def of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return value if value.isascii() and "\x00" not in value else self.text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if _INT64_MIN <= value <= _INT64_MAX else self.wide(str(Decimal(value)))
        if kind is float:
            return value if math.isfinite(value) else self.no_number()
        if kind is dict or kind is list:
            return self.nested(value, depth)
        if kind is datetime:
            return self.instant(value)
        return self.rare(value, depth)

    def nested(self, value: Any, depth: int) -> Any:
        if depth >= MAX_DEPTH:
            self.changes["too_deep"] += 1
            return "…"
        if isinstance(value, Mapping):
            return self.mapping(value, depth + 1)
        items = sorted(value, key=repr) if isinstance(value, Set) else value
        return [self.of(item, depth + 1) for item in items]

    def mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        """Most values of a stored row are plain; those are taken here, without a call for each."""
        stored: dict[str, Any] = {}
        fine = self.fine_keys
        for name, item in value.items():
            key = fine.get(name) or self.key(name)
            if key in stored:
                key = self.free_name(key, stored)
            kind = type(item)
            if (
                (kind is str and item.isascii() and "\x00" not in item)
                or (kind is float and _FLOAT_MIN <= item <= _FLOAT_MAX)
                or (kind is int and _INT64_MIN <= item <= _INT64_MAX)
            ):
                stored[key] = item
            else:
                stored[key] = self.of(item, depth)
        return stored

    def free_name(self, key: str, taken: dict[str, Any]) -> str:
        self.changes["renamed_key"] += 1
        number = 2
        while f"{key}_{number}" in taken:
            number += 1
        return f"{key}_{number}"

    def key(self, name: object) -> str:
        plain = name if isinstance(name, str) else self.of(name, 0)
        key = _clean_text(plain if isinstance(plain, str) else str(plain)) or "_"
        if key.startswith("$"):
            key = "＄" + key[1:]
        if key != name:
            self.changes["renamed_key"] += 1
        elif type(name) is str:
            self.fine_keys[name] = name
        return key

    def text(self, value: str) -> str:
        clean = _clean_text(value)
        if clean != value:
            self.changes["bad_text"] += 1
        return clean

    def wide(self, text: str) -> str:
        self.changes["wide_number"] += 1
        return text

    def no_number(self) -> None:
        self.changes["not_finite"] += 1

    def rare(self, value: Any, depth: int) -> Any:
        """Everything but the plain JSON types, most frequent first."""
        if isinstance(value, Enum):
            return self.of(value.value, depth)
        if isinstance(value, (datetime, date, time, timedelta)):
            return self.moment(value)
        if isinstance(value, Decimal):
            return self.decimal(value)
        if isinstance(value, BaseModel):
            return self.of(value.model_dump(mode="python", exclude_none=True, by_alias=True), depth)
        if isinstance(value, (Mapping, list, tuple, Set)):
            return self.nested(value, depth)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self.binary(bytes(value))
        if isinstance(value, UUID):
            return str(value)
        if type(value).__module__ == "numpy":
            return self.numpy(value, depth)
        return self.subclass_or_stranger(value, depth)

    def subclass_or_stranger(self, value: Any, depth: int) -> Any:
        for plain in (str, int, float):
            if isinstance(value, plain):
                return self.of(plain(value), depth)
        if hasattr(value, "to_decimal"):  # a driver's own decimal type, BSON's among them
            return self.decimal(value.to_decimal())
        if isinstance(value, Sequence):
            return self.nested(list(value), depth)
        if type(value).__name__ != "ObjectId":
            self.changes["unknown_type"] += 1
        return self.of(str(value), depth)

    def moment(self, value: datetime | date | time | timedelta) -> Any:
        if isinstance(value, datetime):
            return self.instant(value)
        if isinstance(value, timedelta):
            return iso_span(value)
        return value.isoformat()

    def instant(self, value: datetime) -> Any:
        if type(value) is not datetime and value != value:  # noqa: PLR0124 - a data frame's "not a time"
            return self.no_number()
        try:
            utc = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        except OverflowError:  # the first or last hours of the calendar, in another zone
            return value.isoformat()
        beyond = utc.microsecond % 1000
        if type(utc) is datetime:
            return utc.replace(microsecond=utc.microsecond - beyond) if beyond else utc
        return datetime(
            utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second,
            utc.microsecond - beyond, tzinfo=UTC,
        )  # fmt: skip

    def decimal(self, value: Decimal) -> Any:
        if not value.is_finite():
            return self.no_number()
        if value.adjusted() > 308:
            return self.wide(str(value))
        if value.adjusted() < 19 and value == value.to_integral_value():
            whole = int(value)
            return whole if _INT64_MIN <= whole <= _INT64_MAX else self.wide(str(value))
        near = float(value)
        if math.isfinite(near) and Decimal(repr(near)) == value:
            return near
        return self.wide(str(value))

    def binary(self, value: bytes) -> str:
        if len(value) <= BYTES_KEPT:
            return "0x" + value.hex()
        self.changes["bytes_cut"] += 1
        return f"0x{value[:BYTES_KEPT].hex()}… ({len(value)} bytes)"

    def numpy(self, value: Any, depth: int) -> Any:
        if hasattr(value, "shape") and value.shape != ():
            return self.nested(list(value), depth)
        kind = value.dtype.kind
        if kind in "mM":
            if str(value) == "NaT":
                return self.no_number()
            return self.of(value.astype(f"{kind}8[us]").item(), depth)
        if kind == "f":
            return self.of(float(value), depth)
        plain = value.item()
        return self.of(str(plain) if type(plain) is complex else plain, depth)


def _clean_text(value: str) -> str:
    clean = value.replace("\x00", "␀") if "\x00" in value else value
    if clean.isascii():
        return str(clean)
    try:
        clean.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates
        # A pair that a driver left split is one character again; what stays alone is replaced.
        return clean.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return str(clean)


def iso_span(value: timedelta) -> str:
    """A span as ISO-8601 text: `P1DT2H3M4.5S`, with a leading minus when negative."""
    sign, rest = ("-", -value) if value < timedelta(0) else ("", value)
    hours, seconds = divmod(rest.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    fraction = f".{rest.microseconds:06d}".rstrip("0") if rest.microseconds else ""
    days = f"{rest.days}D" if rest.days else ""
    clock = "".join(
        (
            f"{hours}H" if hours else "",
            f"{minutes}M" if minutes else "",
            f"{seconds}{fraction}S" if seconds or fraction else "",
        )
    )
    body = f"{days}{'T' + clock if clock else ''}" or "T0S"
    return f"{sign}P{body}"
