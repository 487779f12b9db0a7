"""Reading one data file, or part files with the same columns, into a DuckDB table, as forgivingly as is honest.

Called by `file_loading`. A CSV is tried as it should be, then with ever more tolerance; whatever tolerance was needed
stands in the reading's note. Nothing is dropped in silence, and what is hopeless is one line that names file and line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from assay_agent.adapters.csv_plan import Try, plan_csv
from assay_agent.adapters.data_files import DataFile, FileKind, as_utf8
from assay_agent.sql.dialects import quote_name
from assay_core.errors import ConfigError

MAX_JSON_BYTES = 64 * 1024 * 1024
MAX_BAD_SHARE = 0.1
"""Share of a CSV's lines that may be left out as broken, with a note; above it the file is not a CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`rows` loaded; `note` is what a reader of the table must know."""

    rows: int
    note: str = ""


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
        return _created(connection, table, source, tries=(Try(options=""),), path=first, lines=0)
    texts = [as_utf8(file.path, folder=folder) for file in files]
    paths = _list([text.path for text in texts])
    note = next((text.note for text in texts if text.note), "")
    if kind is FileKind.JSON:
        source = (
            f"read_json({paths}, union_by_name=true, sample_size=-1, maximum_object_size={MAX_JSON_BYTES}"
        )
        reading = _created(connection, table, source, tries=(Try(options=")"),), path=first, lines=0)
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
    plan = plan_csv(connection, head, source=start)
    tries = [replace(one, options=f"{one.options})") for one in plan.tries]
    reading = _created(connection, table, start, tries=tries, path=path, lines=max(lines - plan.skipped, 0))
    return Reading(rows=reading.rows, note="; ".join(part for part in (reading.note, plan.note) if part))


def _created(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    source: str,
    *,
    tries: Sequence[Try],
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
