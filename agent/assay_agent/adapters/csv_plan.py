"""How a CSV file is to be read: the tries in order, each with what must be said when it was needed.

Used by `table_reading` alone. DuckDB's own guess is asked first; what it would drop without a word (lines before a
supposed header, rows of another length, `NA` that turns numbers into text) is looked at here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

SAMPLE_ROWS = 100_000
"""Rows a CSV's types are guessed from, before the whole file is asked."""
MAX_LINE_BYTES = 100_000_000
"""The longest CSV line, tried only when a shorter limit failed."""
MISSING = "['', 'NA', 'N/A', 'n/a', 'NULL', 'null', 'NaN', 'nan', '\\N']"
_DELIMITERS = ",;\t|"
_UNEVEN = "rows of differing length: missing cells are NULL"
_LOOSE = ", sample_size=-1, strict_mode=false"
_LONG = f", max_line_size={MAX_LINE_BYTES}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """Options of one reading; `counts_bad_lines` when it leaves out what it cannot read."""

    options: str
    note: str = ""
    counts_bad_lines: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvPlan:
    """`tries` in order; `note` holds for each; `skipped` lines stand before the header."""

    tries: tuple[Try, ...]
    note: str = ""
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Guess:
    names: tuple[str, ...]
    skipped: int
    has_header: bool
    delimiter: str


_EXACT = (
    Try(options=f", sample_size={SAMPLE_ROWS}"),
    Try(options=", sample_size=-1"),
    Try(options=f", sample_size=-1{_LONG}"),
)
_TOLERANT = (
    Try(options=f"{_LOOSE}, null_padding=true", note=_UNEVEN),
    Try(options=f"{_LOOSE}, null_padding=true, ignore_errors=true, all_varchar=true", counts_bad_lines=True),
    Try(options=f"{_LOOSE}, ignore_errors=true, all_varchar=true{_LONG}", counts_bad_lines=True),
)


def plan_csv(connection: duckdb.DuckDBPyConnection, path: Path, *, source: str) -> CsvPlan:
    """The plan for a UTF-8 file. `source` is the open call `read_csv(…` that the options will follow."""
    try:
        guess = _guess(connection, path)
        if uneven := _uneven(guess, path):
            return CsvPlan(tries=_with_delimiter(_TOLERANT, uneven))
        missing = _types(connection, f"{source}{_EXACT[0].options}, nullstr={MISSING})")
        if missing == _types(connection, f"{source}{_EXACT[0].options})"):
            return CsvPlan(tries=_EXACT + _TOLERANT, note=_skipped(guess), skipped=guess.skipped)
    except duckdb.Error:
        return CsvPlan(tries=_EXACT + _TOLERANT)
    note = "; ".join(part for part in (_skipped(guess), "NA, NULL and their like were read as NULL") if part)
    tries = tuple(replace(one, options=f"{one.options}, nullstr={MISSING}") for one in _EXACT + _TOLERANT)
    return CsvPlan(tries=tries, note=note, skipped=guess.skipped)


def _guess(connection: duckdb.DuckDBPyConnection, path: Path) -> _Guess:
    row = connection.execute(
        f"SELECT Columns, SkipRows, HasHeader, Delimiter FROM sniff_csv(?, sample_size={SAMPLE_ROWS})",
        [str(path)],
    ).fetchone()
    columns, skipped, has_header, delimiter = row or ([], 0, True, ",")
    return _Guess(
        names=tuple(column["name"] for column in columns),
        skipped=int(skipped),
        has_header=bool(has_header),
        delimiter=str(delimiter),
    )


def _uneven(guess: _Guess, path: Path) -> str | None:
    """The delimiter of a file whose rows differ in length, which the guess got round by dropping or joining."""
    if len(guess.names) == 1:
        counts = {sign: guess.names[0].count(sign) for sign in _DELIMITERS}
        best = max(counts, key=lambda sign: counts[sign])
        return best if counts[best] else None
    if not guess.skipped:
        return None
    with path.open(encoding="utf-8", errors="replace") as stream:
        fields = stream.readline(1_000_000).count(guess.delimiter) + 1
    title = guess.has_header and fields < max(2, len(guess.names) - 1)
    return None if title else guess.delimiter


def _with_delimiter(tries: tuple[Try, ...], delimiter: str) -> tuple[Try, ...]:
    return tuple(
        replace(one, options=f"{one.options}, delim='{delimiter}', header=true", note=one.note or _UNEVEN)
        for one in tries
    )


def _skipped(guess: _Guess) -> str:
    if not guess.skipped:
        return ""
    return f"the first {guess.skipped} line(s) stand before the header and were left out"


def _types(connection: duckdb.DuckDBPyConnection, source: str) -> list[str]:
    return [row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
