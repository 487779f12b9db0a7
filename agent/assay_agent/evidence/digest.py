"""A query result made small: statistics per column, first and last rows, or everything when there is little. Pure.

Called by `exploration` for each executed query; the same pass gives the storable rows, since both need every value once.
Work is done per column, not per cell: a column of one plain type is taken over as it is. Statistics are computed from
the driver's values, before wide numbers become text. Mixed, nested and unknown types never fail.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Number
from typing import Any, Literal

import numpy as np

from assay_agent.policy import DigestPolicy
from assay_core.model.step import Caveat, ColumnDigest, Digest, ResultColumn, TopValue
from assay_core.store.encoding import canonical, safe_key

Kind = Literal["number", "string", "boolean", "timestamp", "null", "mixed"]
_INT64 = 2**63
_DISTINCT_SHARE = 4
"""A column is converted by distinct value when it has at most a fourth as many as rows."""


def digest(
    columns: Sequence[ResultColumn], rows: Sequence[tuple[Any, ...]], *, policy: DigestPolicy, truncated: bool
) -> tuple[Digest, list[Caveat], list[dict[str, Any]]]:
    """The digest, what was converted on the way, and the rows as storable dicts keyed by column name.

    `truncated` says that the query had more rows than these; `row_count` counts these.
    """
    names = _keys([column.name for column in columns])
    raw = list(zip(*rows, strict=True)) if rows else [() for _ in columns]
    caveats: list[Caveat] = []
    stored: list[Sequence[Any]] = []
    for name, values in zip(names, raw, strict=True):
        converted, notes = _stored(values)
        stored.append(converted)
        caveats.extend(Caveat(kind=note.kind, text=f"column {name}: {note.text}") for note in notes)
    dicts = (
        [dict(zip(names, row, strict=True)) for row in zip(*stored, strict=True)]
        if names
        else [{} for _ in rows]
    )
    small = len(rows) <= policy.inline_rows

    def shown(some: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{name: _short(value, policy.cell_chars) for name, value in row.items()} for row in some]

    made = Digest(
        row_count=len(rows),
        columns=[]
        if small
        else [
            _column(name, values, kept, policy) for name, values, kept in zip(names, raw, stored, strict=True)
        ],
        rows=shown(dicts) if small else [],
        head=[] if small else shown(dicts[: policy.head_rows]),
        tail=[] if small else shown(dicts[len(dicts) - policy.tail_rows :]),
        truncated=truncated,
    )
    return made, caveats, dicts


def _keys(names: Sequence[str]) -> list[str]:
    keys: list[str] = []
    for name in names:
        key = plain = safe_key(name)
        number = 2
        while key in keys:
            key, number = f"{plain}_{number}", number + 1
        keys.append(key)
    return keys


# --------------------------------------------------------------------------------------------------- conversion


def _stored(values: Sequence[Any]) -> tuple[Sequence[Any], list[Caveat]]:
    """The storable form of a whole column. Plain columns come back as they are, by one check of the column."""
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if not kinds or kinds == {bool}:
        return values, []
    if len(kinds) == 1:
        kind = kinds.pop()
        if kind is int and _fits(values):
            return values, []
        if kind is float and _finite(values):
            return values, []
        if kind is str and _plain_text(values):
            return values, []
        if kind in (str, datetime, date, Decimal):
            by_value = _by_distinct(values)
            if by_value is not None:
                return by_value, []
    return canonical(list(values))


def _fits(values: Sequence[Any]) -> bool:
    present = [value for value in values if value is not None]
    low, high = min(present), max(present)
    return bool(low >= -_INT64 and high < _INT64)


def _finite(values: Sequence[Any]) -> bool:
    return bool(np.isfinite(np.array([value for value in values if value is not None])).all())


def _plain_text(values: Sequence[Any]) -> bool:
    joined = "".join([value for value in values if value is not None])
    return joined.isascii() and "\x00" not in joined


def _by_distinct(values: Sequence[Any]) -> list[Any] | None:
    """Convert each distinct value once; None when that saves nothing, or when a caveat must count the rows."""
    distinct = list(set(values))
    if len(distinct) * _DISTINCT_SHARE > len(values):
        return None
    converted, caveats = canonical(distinct)
    if caveats:
        return None
    table = dict(zip(distinct, converted, strict=True))
    return [table[value] for value in values]


def _short(value: Any, chars: int) -> Any:
    """A cell as a digest shows it: long text is cut and says how long it was."""
    if isinstance(value, str):
        return value if len(value) <= chars else f"{value[:chars]}… [{len(value):,} characters]"
    if isinstance(value, (list, dict)):
        text = json.dumps(value, ensure_ascii=False, default=str)
        return value if len(text) <= chars else f"{text[:chars]}… [{len(text):,} characters]"
    return value


# --------------------------------------------------------------------------------------------------- statistics


def _column(name: str, values: Sequence[Any], stored: Sequence[Any], policy: DigestPolicy) -> ColumnDigest:
    present = [value for value in stored if value is not None]
    kind = _kind(values) if present else "null"
    counts = _distinct(present)
    statistics: dict[str, Any] = {}
    if kind == "number":
        statistics = _numbers(values, present, counts)
    elif kind == "timestamp":
        statistics = dict(zip(("min", "max"), _period(counts), strict=True))
    top: list[TopValue] = []
    if 0 < len(counts) <= policy.top_distinct:
        top = [
            TopValue(value=_short(value, policy.cell_chars), count=count)
            for value, count in _counted(present).most_common(policy.top_values)
        ]
    return ColumnDigest(
        name=name,
        kind=kind,
        null_count=len(stored) - len(present),
        distinct=len(counts),
        top=top,
        **statistics,
    )


def _kind(values: Sequence[Any]) -> Kind:
    kinds = {_kind_of(kind) for kind in set(map(type, values)) if kind is not type(None)}
    return kinds.pop() if len(kinds) == 1 else "mixed"


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


def _numbers(values: Sequence[Any], present: Sequence[Any], distinct: set[Hashable]) -> dict[str, Any]:
    """Quartiles by linear interpolation (Hyndman and Fan's type 7) over the finite values; exact ends."""
    plain = set(map(type, present)) <= {int, float}
    if plain and len(present) + values.count(None) == len(values):
        ordered, ends = np.array(present, dtype=np.float64), _ends(distinct)
    else:
        pairs = [(number, value) for value in values if (number := _float(value)) is not None]
        if not pairs:
            return {}
        ordered = np.array([number for number, _ in pairs])
        (ends, _) = canonical(list(_ends([value for _, value in pairs])))
    ordered.sort()
    quartiles = {
        key: _type7(ordered, share) for key, share in (("p25", 0.25), ("median", 0.5), ("p75", 0.75))
    }
    return {"min": ends[0], "max": ends[1], **quartiles}


def _ends(values: Collection[Any]) -> tuple[Any, Any]:
    return min(values), max(values)


def _type7(ordered: np.ndarray[Any, np.dtype[np.float64]], share: float) -> float:
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    below = float(ordered[low])
    if low + 1 == len(ordered):
        return below
    part = place - low
    return below * (1 - part) + float(ordered[low + 1]) * part


def _float(value: Any) -> float | None:
    kind = type(value)
    if kind is int or kind is float:
        number = value
    elif value is None:
        return None
    else:
        number = float("nan") if isinstance(value, complex) else value
    try:
        number = float(number)
    except (OverflowError, ValueError, TypeError):
        return None
    return number if math.isfinite(number) else None


def _period(moments: Collection[Any]) -> tuple[Any, Any]:
    if len({type(moment) for moment in moments}) == 1:
        return _ends(moments)
    return min(moments, key=_moment), max(moments, key=_moment)


def _moment(value: Any) -> str:
    return value.isoformat() if isinstance(value, (date, datetime)) else str(value)


def _hashable(value: Any) -> Hashable:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return (bool, value) if isinstance(value, bool) else value


def _distinct(present: Sequence[Any]) -> set[Hashable]:
    try:
        return set(present)
    except TypeError:
        return {_hashable(value) for value in present}


def _counted(present: Sequence[Any]) -> Counter[Any]:
    try:
        return Counter(present)
    except TypeError:
        return Counter(_hashable(value) for value in present)
