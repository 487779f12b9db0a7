"""Cutting a result to its limits while it is fetched, and saying so: rows, cells, bytes, and unique column names.

Called by every SQL warehouse. Invariant: nothing is dropped or shortened without a caveat.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay_agent.ports import QueryLimits, QueryResult
from assay_core.model.step import Caveat, CaveatKind, ResultColumn

_FIRST_BATCH = 64
_BATCH = 2_000
_FIXED_CELL_BYTES = 16


def unique_names(names: Sequence[str | None]) -> tuple[str, ...]:
    """Column names as rows carry them: an empty one becomes `column_3`, a repeated one `n_2`."""
    taken = {name for name in names if name}
    used: set[str] = set()
    result = []
    for position, given in enumerate(names, start=1):
        name = given or f"column_{position}"
        if name in used or (not given and name in taken):
            number = 2
            while f"{name}_{number}" in used or f"{name}_{number}" in taken:
                number += 1
            name = f"{name}_{number}"
        used.add(name)
        result.append(name)
    return tuple(result)


@dataclass(slots=True)
class Kept:
    """Rows kept so far, and what was cut on the way."""

    limits: QueryLimits
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    bytes: int = 0
    more_rows: bool = False
    out_of_bytes: bool = False
    cut_cells: dict[int, int] = field(default_factory=dict)
    longest: dict[int, int] = field(default_factory=dict)

    def take(self, row: Sequence[Any]) -> bool:
        """Keep one row; False when there is no room for it."""
        if len(self.rows) >= self.limits.rows:
            self.more_rows = True
            return False
        cells, size = self._cut(row)
        if self.rows and self.bytes + size > self.limits.result_bytes:
            self.more_rows = self.out_of_bytes = True
            return False
        self.bytes += size
        self.rows.append(cells)
        return True

    def _cut(self, row: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        size = 0
        cap = self.limits.cell_chars
        changed: list[Any] | None = None
        for index, value in enumerate(row):
            kind = type(value)
            if kind is str or kind is bytes:
                length = len(value)
                size += length if length < cap else cap
                if length <= cap:
                    continue
                short: Any = value[: cap - 1] + "…" if kind is str else value[:cap]
            elif (
                kind is list
                or kind is dict
                or kind is tuple
                or isinstance(value, (bytearray, memoryview, set))
            ):
                short, length = _shortened(value, cap)
                size += min(length, cap)
                if short is value:
                    continue
            else:
                size += _FIXED_CELL_BYTES
                continue
            if changed is None:
                changed = list(row)
            changed[index] = short
            if length > cap:
                self.cut_cells[index] = self.cut_cells.get(index, 0) + 1
                self.longest[index] = max(self.longest.get(index, 0), length)
        return (tuple(row) if changed is None else tuple(changed)), size

    def result(
        self,
        names: Sequence[str | None],
        labels: Sequence[str],
        *,
        started: float,
        bytes_scanned: int = 0,
    ) -> QueryResult:
        """What was kept, under unique names; `started` is monotonic."""
        unique = unique_names(names)
        return QueryResult(
            columns=tuple(
                ResultColumn(name=name, type=label) for name, label in zip(unique, labels, strict=True)
            ),
            rows=tuple(self.rows),
            truncated=self.more_rows,
            duration_ms=int((time.monotonic() - started) * 1000),
            caveats=self.caveats(unique),
            bytes_scanned=bytes_scanned,
        )

    def caveats(self, names: Sequence[str]) -> tuple[Caveat, ...]:
        found = []
        if self.out_of_bytes:
            text = f"only the first {len(self.rows):,} rows are kept: the result passed {self.limits.result_bytes:,} bytes"
            found.append(Caveat(kind=CaveatKind.TRUNCATED, text=text))
        elif self.more_rows:
            text = f"only the first {len(self.rows):,} rows are kept; the query returns more"
            found.append(Caveat(kind=CaveatKind.TRUNCATED, text=text))
        for index, count in self.cut_cells.items():
            text = (
                f"column {names[index]}: {count:,} cell(s) cut at {self.limits.cell_chars:,} characters, "
                f"the longest had {self.longest[index]:,}"
            )
            found.append(Caveat(kind=CaveatKind.TRUNCATED, text=text))
        return tuple(found)


def _shortened(value: Any, cap: int) -> tuple[Any, int]:
    """A nested or binary value, as text cut to `cap` when it is larger than that; and its size."""
    if isinstance(value, (bytearray, memoryview)):
        whole = bytes(value)
        return whole[:cap], len(whole)
    size = _nested_size(value, cap * 4)
    if size <= cap:
        return value, size
    text = str(value)
    return (value, len(text)) if len(text) <= cap else (text[: cap - 1] + "…", len(text))


def _nested_size(value: Any, stop: int) -> int:
    size = 0
    stack = [value]
    while stack and size <= stop:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
            size += 2
        elif isinstance(item, (list, tuple, set)):
            stack.extend(item)
            size += 2
        else:
            size += len(item) + 2 if isinstance(item, (str, bytes)) else 8
    return size


def fetch(fetch_many: Callable[[int], Sequence[Sequence[Any]]], limits: QueryLimits) -> Kept:
    """Fetch until the source is exhausted or a limit is met; batches shrink when rows are wide."""
    kept = Kept(limits=limits)
    for row in _rows(fetch_many, kept):
        if not kept.take(row):
            break
    return kept


def _rows(fetch_many: Callable[[int], Sequence[Sequence[Any]]], kept: Kept) -> Iterator[Sequence[Any]]:
    size = _FIRST_BATCH
    while batch := fetch_many(size):
        yield from batch
        per_row = kept.bytes / max(len(kept.rows), 1) + 1
        room = int((kept.limits.result_bytes - kept.bytes) / per_row) + 1
        size = max(1, min(_BATCH, room, kept.limits.rows + 1 - len(kept.rows)))
