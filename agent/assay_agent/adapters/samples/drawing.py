"""What the samples share: columns drawn from a seeded stream, and their way into DuckDB.

The stream is numpy's `RandomState`, which is frozen: its draws do not change with numpy's version, so that planted numbers stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]
Columns = Mapping[str, Column]


def stream(seed: int) -> np.random.RandomState:
    return np.random.RandomState(seed)


def choose(draw: np.random.RandomState, shares: Mapping[str | None, float], size: int) -> Column:
    """Values in the given shares (they need not add up to 1)."""
    names = np.array(list(shares), dtype=object)
    weights = np.array(list(shares.values()), dtype=float)
    chosen: Column = names[draw.choice(len(names), size=size, p=weights / weights.sum())]
    return chosen


def instants(days: Column, seconds: Column) -> Column:
    """Timestamps from days (datetime64[D]) and seconds of the day."""
    return np.asarray(days.astype("datetime64[s]") + seconds.astype("timedelta64[s]"))


def evening(draw: np.random.RandomState, size: int, *, peak_hour: float) -> Column:
    """Seconds of the day, most of them around an hour."""
    hours = draw.normal(peak_hour, 4.0, size) % 24
    return np.asarray(hours * 3600, dtype=np.int64)


def cents(values: Column) -> Column:
    return np.round(values, 2)


def create(
    connection: duckdb.DuckDBPyConnection, table: str, types: Mapping[str, str], columns: Columns
) -> None:
    """Make a table of the given types and fill it, its columns by name."""
    declared = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
    connection.execute(f'CREATE TABLE "{table}" ({declared})')
    connection.register("drawn", {name: _known(columns[name]) for name in types})
    names = ", ".join(f'"{name}"' for name in types)
    connection.execute(f'INSERT INTO "{table}" SELECT {names} FROM drawn')
    connection.unregister("drawn")


def repeated(columns: Columns, rows: Sequence[int] | Column) -> dict[str, Column]:
    """The columns with the given rows once more at the end."""
    return {name: np.concatenate([values, values[np.asarray(rows)]]) for name, values in columns.items()}


def _known(values: Column) -> Column:
    """Days as timestamps, which is what DuckDB reads of numpy; the column's type makes dates of them again."""
    return values.astype("datetime64[us]") if values.dtype.kind == "M" else values
