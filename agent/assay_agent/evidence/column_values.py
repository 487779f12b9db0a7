"""One column of a result, read once: its storable values, and the statistics a digest shows. Pure; used by `digest`.

A column of one plain type (the rule in SQL) takes a path of a few whole-column operations: it is stored as it is,
counted by sorting or by a set. Anything else goes value by value through the encoder. Statistics come from the driver's
values, before wide numbers become text; NaN and infinities count as NULL, as they are stored.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from numbers import Number
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from assay_core.encoding import canonical
from assay_core.model.step import Caveat

Kind = Literal["number", "string", "boolean", "timestamp", "null", "mixed"]
_NONE = type(None)
_DISTINCT_SHARE = 4
"""A column is converted by distinct value when it has at most a fourth as many as rows."""
_FEW_ROWS = 64
"""Up to which reading every text costs less than finding the distinct ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """`low` and `high` are exact and storable; quartiles interpolate linearly (Hyndman and Fan's type 7)."""

    kind: Kind
    null_count: int
    distinct: int
    low: Any = None
    p25: float | None = None
    median: float | None = None
    p75: float | None = None
    high: Any = None


class ColumnValues:
    """The values of one column as the driver gave them (`raw`) and as they are stored (`stored`)."""

    def __init__(self, raw: Sequence[Any], kinds: frozenset[type]) -> None:
        self.raw = raw
        self.kinds = kinds - {_NONE}
        self.caveats: list[Caveat] = []
        self.converted = False
        self._nulls = _NONE in kinds
        self._numbers: NDArray[np.float64] | NDArray[np.int64] | None = None
        self._stored: Sequence[Any] = raw
        self._by_value: dict[Any, Any] | None = None
        self._convert()

    @property
    def stored(self) -> Sequence[Any]:
        """What the rows hold: one value for each of `raw`. Statistics do without where values are looked up for it."""
        return self._stored if self._by_value is None else list(map(self._by_value.__getitem__, self.raw))

    @property
    def present(self) -> Sequence[Any]:
        """Stored values without NULLs."""
        if not self._nulls:
            return self.stored
        return [value for value in self.stored if value is not None]

    @cached_property
    def distinct(self) -> set[Hashable]:
        """Distinct stored values without NULL; nested ones as JSON text."""
        try:
            return set(self.present)
        except TypeError:
            return {_hashable(value) for value in self.present}

    def counted(self) -> Counter[Any]:
        """How often each value occurs, in order of first occurrence."""
        try:
            return Counter(self.present)
        except TypeError:
            return Counter(_hashable(value) for value in self.present)

    def statistics(self) -> Statistics:
        """What a digest says about the column."""
        if self._numbers is not None:
            return _of_plain_numbers(self._numbers, rows=len(self.raw))
        nulls = self._null_count()
        kind = _kind(self.kinds) if nulls < len(self.raw) else "null"
        if kind == "number":
            return _of_numbers(self.raw, nulls=nulls, distinct=len(self.distinct))
        if kind == "timestamp":
            low, high = _period(self.distinct)
            return Statistics(kind=kind, null_count=nulls, distinct=len(self.distinct), low=low, high=high)
        return Statistics(kind=kind, null_count=nulls, distinct=len(self.distinct))

    # ------------------------------------------------------------------------------------------------ inside

    def _null_count(self) -> int:
        """Converting by distinct value makes no NULL of anything else."""
        if not self._nulls:
            return 0
        return (self._stored if self._by_value is None else self.raw).count(None)

    def _convert(self) -> None:
        if not self.kinds or self.kinds == {bool}:
            return
        if len(self.kinds) == 1 and self.kinds <= {int, float}:
            self._numbers = self._plain_numbers()
            if self._numbers is not None:
                return
        elif self.kinds == {str}:
            if _plain_text(self.present if len(self.raw) <= _FEW_ROWS else self.distinct):
                return
            self.__dict__.pop("distinct", None)
        self._store(self.raw)

    def _plain_numbers(self) -> NDArray[np.float64] | NDArray[np.int64] | None:
        """The numbers in order, when every one is stored as it is: whole numbers of 64 bits, or finite ones."""
        present = self.present
        whole = self.kinds == {int}
        try:
            array: NDArray[Any] = np.fromiter(
                present, dtype=np.int64 if whole else np.float64, count=len(present)
            )
        except OverflowError:
            return None
        array.sort()
        # NaN sorts last, infinities to the ends.
        if not whole and not (math.isfinite(array[0]) and math.isfinite(array[-1])):
            return None
        return array

    def _store(self, values: Sequence[Any]) -> None:
        self.converted = True
        if len(self.kinds) == 1 and self.kinds <= {str, datetime, date, Decimal}:
            self._by_value = _by_distinct(values)
            if self._by_value is not None:
                self.distinct = set(self._by_value.values()) - {None}
                return
        self._stored, self.caveats = canonical(list(values))
        self._nulls = True


def read_column(values: Sequence[Any]) -> ColumnValues:
    """Read one column of driver values."""
    return ColumnValues(values, _types(values))


def _types(values: Sequence[Any]) -> frozenset[type]:
    """The types that occur. Most columns have one, which counting tells sooner than a set does."""
    types = list(map(type, values))
    alike = bool(types) and types.count(types[0]) == len(types)
    return frozenset(types[:1] if alike else types)


# --------------------------------------------------------------------------------------------------- conversion


def _plain_text(texts: Collection[Any]) -> bool:
    joined = "".join(texts)
    return joined.isascii() and "\x00" not in joined


def _by_distinct(values: Sequence[Any]) -> dict[Any, Any] | None:
    """Each distinct value and how it is stored; None when that saves nothing, or when a caveat must count the rows."""
    try:
        distinct = list(set(values))
    except (TypeError, ValueError):
        return None
    if len(distinct) * _DISTINCT_SHARE > len(values):
        return None
    converted, caveats = canonical(distinct)
    if caveats:
        return None
    return dict(zip(distinct, converted, strict=True))


def _hashable(value: Any) -> Hashable:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return value  # type: ignore[no-any-return]  # everything else that is stored can be hashed


# --------------------------------------------------------------------------------------------------- statistics


def _kind(kinds: Collection[type]) -> Kind:
    found = {_kind_of(kind) for kind in kinds}
    return found.pop() if len(found) == 1 else "mixed"


def _kind_of(kind: type) -> Kind:
    if issubclass(kind, (bool, np.bool_)):
        return "boolean"
    if issubclass(kind, (Number, np.number)):
        return "number"
    if issubclass(kind, (date, datetime, np.datetime64)):
        return "timestamp"
    if issubclass(kind, (list, tuple, dict, set, frozenset)):
        return "mixed"
    return "string"


def _of_plain_numbers(ordered: NDArray[np.float64] | NDArray[np.int64], *, rows: int) -> Statistics:
    return Statistics(
        kind="number",
        null_count=rows - len(ordered),
        distinct=1 + int(np.count_nonzero(ordered[1:] != ordered[:-1])),
        low=ordered[0].item(),
        p25=_type7(ordered, 0.25),
        median=_type7(ordered, 0.5),
        p75=_type7(ordered, 0.75),
        high=ordered[-1].item(),
    )


def _of_numbers(raw: Sequence[Any], *, nulls: int, distinct: int) -> Statistics:
    """Decimals, wide and mixed numbers: quartiles as floats over the finite ones, ends exact."""
    finite = [(number, value) for value in raw if (number := _float(value)) is not None]
    if not finite:
        return Statistics(kind="number", null_count=nulls, distinct=distinct)
    ordered = np.sort(np.array([number for number, _ in finite]))
    ends, _ = canonical(list(_ends([value for _, value in finite])))
    return Statistics(
        kind="number",
        null_count=nulls,
        distinct=distinct,
        low=ends[0],
        p25=_type7(ordered, 0.25),
        median=_type7(ordered, 0.5),
        p75=_type7(ordered, 0.75),
        high=ends[1],
    )


def _type7(ordered: NDArray[np.float64] | NDArray[np.int64], share: float) -> float:
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    below = float(ordered[low])
    part = place - low
    return below if not part else below * (1 - part) + float(ordered[low + 1]) * part


def _float(value: Any) -> float | None:
    if value is None or isinstance(value, complex):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError, TypeError):
        return None
    return number if math.isfinite(number) else None


def _ends(values: Collection[Any]) -> tuple[Any, Any]:
    return min(values), max(values)


def _period(moments: Collection[Any]) -> tuple[Any, Any]:
    if len({type(moment) for moment in moments}) == 1:
        return _ends(moments)
    return min(moments, key=_moment), max(moments, key=_moment)


def _moment(value: Any) -> str:
    return value.isoformat() if isinstance(value, (date, datetime)) else str(value)
