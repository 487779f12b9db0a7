"""Reading one data file, or part files with the same columns, into a DuckDB table, as forgivingly as is honest.

Called by `file_loading`. A CSV is tried as it should be, then with ever more tolerance; whatever tolerance was needed
stands in the reading's note. Nothing is dropped in silence, and what is hopeless is one line that names file and line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from assay_agent.adapters.data_files import DataFile, FileKind, as_utf8
from assay_agent.sql.dialects import quote_name
from assay_core.errors import ConfigError

SAMPLE_ROWS = 100_000
"""Rows a CSV's types are guessed from, before the whole file is asked."""
MAX_LINE_BYTES = 100_000_000
"""The longest CSV line, tried only when a shorter limit failed."""
MAX_JSON_BYTES = 64 * 1024 * 1024
MAX_BAD_SHARE = 0.1
"""Share of a CSV's lines that may be left out as broken, with a note; above it the file is not a CSV."""
_MISSING = "['', 'NA', 'N/A', 'n/a', 'NULL', 'null', 'NaN', 'nan', '\\N']"
_DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`rows` loaded; `note` is what a reader of the table must know."""

    rows: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    options: str
    note: str = ""
    counts_bad_lines: bool = False


def shape_of(connection: duckdb.DuckDBPyConnection, file: DataFile, folder: Path) -> tuple[str, ...]:
    """The kind and the column names of a file: part files of one table agree on them. Unreadable files agree with none."""
    try:
        if file.kind is FileKind.CSV:
            source = f"read_csv({_list([as_utf8(file.path, folder=folder).path])}, sample_size=1000)"
        elif file.kind is FileKind.JSON:
            source = f"read_json({_list([as_utf8(file.path, folder=folder).path])}, sample_size=1000)"
        else:
            source = f"read_parquet({_list([file.path])})"
        rows = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    except (duckdb.Error, ConfigError):
        return (str(file.path),)
    return (file.kind.value, *(row[0] for row in rows))


def read_table(
    connection: duckdb.DuckDBPyConnection, files: Sequence[DataFile], *, table: str, folder: Path
) -> Reading:
    """Create `table` from `files` of one kind. Raises ConfigError naming the file at fault."""
    kind = files[0].kind
    first = files[0].path
    if kind is FileKind.PARQUET:
        source = f"read_parquet({_list([file.path for file in files])}, union_by_name=true)"
        return _created(connection, table, source, tries=(_Try(options=""),), path=first, lines=0)
    texts = [as_utf8(file.path, folder=folder) for file in files]
    paths = _list([text.path for text in texts])
    note = next((text.note for text in texts if text.note), "")
    if kind is FileKind.JSON:
        source = (
            f"read_json({paths}, union_by_name=true, sample_size=-1, maximum_object_size={MAX_JSON_BYTES}"
        )
        reading = _created(connection, table, source, tries=(_Try(options=")"),), path=first, lines=0)
    else:
        lines = sum(text.lines for text in texts)
        reading = _read_csv(connection, table, paths, path=first, head=texts[0].path, lines=lines)
    return Reading(rows=reading.rows, note="; ".join(part for part in (note, reading.note) if part))


def _list(paths: Sequence[Path]) -> str:
    quoted = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
    return f"[{quoted}]"


def _read_csv(
    connection: duckdb.DuckDBPyConnection, table: str, paths: str, *, path: Path, head: Path, lines: int
) -> Reading:
    start = f"read_csv({paths}, union_by_name=true"
    skipped = 0
    missing = ""
    loose = ", sample_size=-1, strict_mode=false"
    padded = _Try(
        options=f"{loose}, null_padding=true", note="rows of differing length: missing cells are NULL"
    )
    tries = [
        _Try(options=f", sample_size={SAMPLE_ROWS}"),
        _Try(options=", sample_size=-1"),
        _Try(options=f", sample_size=-1, max_line_size={MAX_LINE_BYTES}"),
        padded,
        _Try(
            options=f"{loose}, null_padding=true, ignore_errors=true, all_varchar=true", counts_bad_lines=True
        ),
        _Try(
            options=f"{loose}, ignore_errors=true, all_varchar=true, max_line_size={MAX_LINE_BYTES}",
            counts_bad_lines=True,
        ),
    ]
    try:
        names, skipped = _sniffed(connection, head)
        if len(names) == 1 and (found := _likely_delimiter(names[0])):
            tries = [
                _Try(options=f"{one.options}, delim='{found}', header=true", note=padded.note)
                for one in tries[3:]
            ]
        elif _types(connection, f"{start}, sample_size={SAMPLE_ROWS})") != _types(
            connection, f"{start}, sample_size={SAMPLE_ROWS}, nullstr={_MISSING})"
        ):
            missing = f", nullstr={_MISSING}"
    except duckdb.Error:
        skipped = 0
    tries = [
        _Try(options=one.options + missing + ")", note=one.note, counts_bad_lines=one.counts_bad_lines)
        for one in tries
    ]
    reading = _created(connection, table, start, tries=tries, path=path, lines=max(lines - skipped, 0))
    notes = [reading.note]
    if skipped:
        notes.append(f"the first {skipped} line(s) stand before the header and were left out")
    if missing:
        notes.append("NA, NULL and their like were read as NULL")
    return Reading(rows=reading.rows, note="; ".join(part for part in notes if part))


def _sniffed(connection: duckdb.DuckDBPyConnection, path: Path) -> tuple[list[str], int]:
    """The column names DuckDB would take, and how many lines before the header it would skip."""
    row = connection.execute(
        f"SELECT Columns, SkipRows FROM sniff_csv(?, sample_size={SAMPLE_ROWS})", [str(path)]
    ).fetchone()
    return ([column["name"] for column in row[0]], int(row[1])) if row else ([], 0)


def _types(connection: duckdb.DuckDBPyConnection, source: str) -> list[str]:
    return [row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]


def _likely_delimiter(name: str) -> str | None:
    counts = {sign: name.count(sign) for sign in _DELIMITERS}
    best = max(counts, key=lambda sign: counts[sign])
    return best if counts[best] else None


def _created(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    source: str,
    *,
    tries: Sequence[_Try],
    path: Path,
    lines: int,
) -> Reading:
    """The first try that works; `ConfigError` with the first one's reason when none does."""
    first_error = ""
    for one in tries:
        try:
            connection.execute(
                f"CREATE OR REPLACE TABLE {quote_name(table)} AS SELECT * FROM {source}{one.options}"
            )
        except duckdb.IOException:
            raise
        except duckdb.Error as error:
            first_error = first_error or _reason(str(error))
            continue
        counted = connection.execute(f"SELECT count(*) FROM {quote_name(table)}").fetchone()
        rows = int(counted[0]) if counted else 0
        bad = max(lines - 1 - rows, 0) if one.counts_bad_lines else 0
        if bad > MAX_BAD_SHARE * max(lines, 1) and bad > 1:
            break
        notes = [
            one.note,
            f"about {bad:,} broken line(s) were left out" if bad else "",
            "" if rows else "no rows",
        ]
        return Reading(rows=rows, note="; ".join(part for part in notes if part))
    raise ConfigError(f"{path} cannot be read as {_expected(path)}: {first_error or 'too many broken lines'}")


def _expected(path: Path) -> str:
    suffix = path.name.lower()
    if "json" in suffix:
        return "JSON (an array of objects, or one object per line)"
    if "parquet" in suffix or suffix.endswith(".pq"):
        return "Parquet"
    return "CSV (a header, then rows of the same length)"


def _reason(text: str) -> str:
    """DuckDB's reason in one short line, with the line number it names."""
    line = re.search(r"(?:CSV Error on )?[Ll]ine:? (\d+)", text)
    words = [part.strip() for part in text.splitlines() if part.strip()]
    skipped = (
        "Original Line",
        "CSV Error on Line",
        "Possible",
        "*",
        "Invalid Input Error: CSV Error on Line",
        "file =",
    )
    said = next((part for part in words if not part.startswith(skipped)), words[0] if words else "unreadable")
    said = re.sub(r"^(Invalid Input|Conversion|IO|Binder|Not implemented) Error: ", "", said)
    where = f"line {line.group(1)}: " if line else ""
    return f"{where}{said[:200]}"
