"""A query result made small: statistics per column, first and last rows, or everything when there is little. Pure.

Called by `discovery` for each executed query; the same pass gives the storable rows, since both need every value once.
Columns are read one at a time by `column_values`, not cell by cell. Mixed, nested and unknown types never fail.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from assay_agent.evidence.column_values import ColumnValues, read_column
from assay_agent.policy import DigestPolicy
from assay_core.encoding import safe_key
from assay_core.model.step import Caveat, ColumnDigest, Digest, ResultColumn, TopValue


def digest(
    columns: Sequence[ResultColumn], rows: Sequence[tuple[Any, ...]], *, policy: DigestPolicy, truncated: bool
) -> tuple[Digest, list[Caveat], list[dict[str, Any]]]:
    """The digest, what was converted on the way, and the rows as storable dicts keyed by column name.

    `truncated` says that the query had more rows than these; `row_count` counts these.
    """
    names = _keys([column.name for column in columns])
    read = read_columns(names, rows)
    stored = _rows(names, len(rows), read)
    made = _digest(names, read, stored, policy=policy, truncated=truncated)
    caveats = [
        Caveat(kind=note.kind, text=f"column {name}: {note.text}")
        for name, values in zip(names, read, strict=True)
        for note in values.caveats
    ]
    return made, caveats, stored


def read_columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> list[ColumnValues]:
    """Every column of the rows, converted and counted."""
    return [read_column(values) for values in (zip(*rows, strict=True) if rows else [()] * len(names))]


def _digest(
    names: Sequence[str],
    read: Sequence[ColumnValues],
    stored: list[dict[str, Any]],
    *,
    policy: DigestPolicy,
    truncated: bool,
) -> Digest:
    inline = len(stored) <= policy.inline_rows
    # Built from checked parts: to validate them would copy every row, which are shared with the stored ones.
    return Digest.model_construct(
        row_count=len(stored),
        columns=[] if inline else column_digests(names, read, policy=policy),
        rows=_shown(stored, policy) if inline else [],
        head=[] if inline else _shown(stored[: policy.head_rows], policy),
        tail=[] if inline else _shown(stored[len(stored) - policy.tail_rows :], policy),
        truncated=truncated,
    )


def column_digests(
    names: Sequence[str], read: Sequence[ColumnValues], *, policy: DigestPolicy
) -> list[ColumnDigest]:
    """The statistics of each column."""
    return [_column(name, values, policy) for name, values in zip(names, read, strict=True)]


def _column(name: str, values: ColumnValues, policy: DigestPolicy) -> ColumnDigest:
    found = values.statistics()
    top: list[TopValue] = []
    if 0 < found.distinct <= policy.top_distinct:
        top = [
            TopValue(value=_short(value, policy.cell_chars), count=count)
            for value, count in values.counted().most_common(policy.top_values)
        ]
    return ColumnDigest(
        name=name,
        kind=found.kind,
        null_count=found.null_count,
        distinct=found.distinct,
        min=_short(found.low, policy.cell_chars),
        p25=found.p25,
        median=found.median,
        p75=found.p75,
        max=_short(found.high, policy.cell_chars),
        top=top,
    )


def _keys(names: Sequence[str]) -> list[str]:
    """The names as stored rows carry them: storable, and still unique."""
    keys: list[str] = []
    for name in names:
        key = plain = safe_key(name)
        number = 2
        while key in keys:
            key, number = f"{plain}_{number}", number + 1
        keys.append(key)
    return keys


def _rows(names: Sequence[str], count: int, read: Sequence[ColumnValues]) -> list[dict[str, Any]]:
    """Filled column by column, since a copy of an empty row has its size and a new dict would grow."""
    blank: dict[str, Any] = dict.fromkeys(names)
    rows = [blank.copy() for _ in range(count)]
    for name, values in zip(names, read, strict=True):
        for row, value in zip(rows, values.stored, strict=True):
            row[name] = value
    return rows


def _shown(rows: Sequence[dict[str, Any]], policy: DigestPolicy) -> list[dict[str, Any]]:
    """Rows with long cells cut; most have none, and are shared with the stored ones."""
    chars = policy.cell_chars
    return [
        {name: _short(value, chars) for name, value in row.items()} if _has_long(row, chars) else row
        for row in rows
    ]


def _has_long(row: dict[str, Any], chars: int) -> bool:
    for value in row.values():
        kind = type(value)
        if kind is list or kind is dict or (kind is str and len(value) > chars):
            return True
    return False


def _short(value: Any, chars: int) -> Any:
    """A cell as a digest shows it: long text is cut and says how long it was."""
    if isinstance(value, str):
        return value if len(value) <= chars else f"{value[:chars]}… [{len(value):,} characters]"
    if isinstance(value, (list, dict)):
        text = json.dumps(value, ensure_ascii=False, default=str)
        return value if len(text) <= chars else f"{text[:chars]}… [{len(text):,} characters]"
    return value
