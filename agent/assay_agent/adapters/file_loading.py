"""Loading data files into one DuckDB file, once: the second run of the same files finds it.

Called by `sources`. The file's name is a hash of paths, sizes and times of change; it is written under a temporary name
and renamed, so that what stands under the final name is complete, whoever else loads at the same time.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from assay_agent.adapters.data_files import DataFile, plain_stem, table_name
from assay_agent.adapters.table_reading import Reading, read_table, shape_of
from assay_agent.sql.dialects import quote_name
from assay_core.errors import ConfigError

LOADER_VERSION = 1
"""Raised when the same files would be loaded differently; older warehouses are then not used again."""
MEMORY_LIMIT = "2GB"
THREADS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTable:
    """`note` says what a reader must know about how the file was read; it is also the table's comment."""

    name: str
    rows: int
    columns: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """One table to make of one file, or of several part files with the same columns."""

    name: str
    files: tuple[DataFile, ...]


def load_files(
    files: Sequence[DataFile], *, home: Path, report: Callable[[str], None]
) -> tuple[Path, tuple[LoadedTable, ...]]:
    """The DuckDB file that holds `files` as tables, and its tables by name. Raises ConfigError."""
    target = home / "warehouses" / f"{_fingerprint(files)}.duckdb"
    try:
        if target.is_file():
            report(f"using {target.name}, loaded before from the same files")
            return target, _tables(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="loading-", dir=target.parent) as folder:
            made = _load(files, Path(folder), report)
            os.replace(made, target)
    except OSError as error:
        raise ConfigError(f"{target.parent} cannot be written: {error.strerror or error}") from error
    except duckdb.IOException as error:
        raise ConfigError(f"{target} cannot be written: {str(error).splitlines()[0]}") from error
    return target, _tables(target)


def _fingerprint(files: Iterable[DataFile]) -> str:
    digest = hashlib.sha256(f"loader {LOADER_VERSION}".encode())
    for path in sorted(file.path for file in files):
        state = path.stat()
        digest.update(f"\n{path}|{state.st_size}|{state.st_mtime_ns}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:24]


def _load(files: Sequence[DataFile], folder: Path, report: Callable[[str], None]) -> Path:
    made = folder / "warehouse.duckdb"
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY_LIMIT,
        "threads": THREADS,
        "temp_directory": str(folder / "spill"),
        "autoinstall_known_extensions": False,
    }
    with duckdb.connect(str(made), config=config) as connection:
        plans = _plans(connection, files, folder)
        problems = []
        for number, plan in enumerate(plans, start=1):
            try:
                reading = _create(connection, plan, folder)
            except ConfigError as error:
                if len(plans) == 1:
                    raise
                problems.append(error)
                report(f"[{number}/{len(plans)}] left out: {error}")
                continue
            note = f" ({reading.note})" if reading.note else ""
            source = plan.files[0].path.name if len(plan.files) == 1 else f"{len(plan.files)} files"
            report(f"[{number}/{len(plans)}] {plan.name}: {reading.rows:,} rows from {source}{note}")
        if len(problems) == len(plans):
            raise problems[0]
        connection.execute("CHECKPOINT")
    return made


def _plans(connection: duckdb.DuckDBPyConnection, files: Sequence[DataFile], folder: Path) -> list[_Plan]:
    """Files of one sub-folder that have the same columns make one table, named after the folder."""
    below: dict[Path, list[DataFile]] = defaultdict(list)
    for file in files:
        below[file.path.parent].append(file)
    taken: set[str] = set()
    plans: list[_Plan] = []
    for parent, inside in sorted(below.items()):
        in_subfolder = bool(inside) and parent != inside[0].folder
        if (
            in_subfolder
            and len(inside) > 1
            and len({shape_of(connection, file, folder) for file in inside}) == 1
        ):
            plans.append(_Plan(name=_free(table_name(parent.name), taken), files=tuple(inside)))
            continue
        for file in inside:
            stem = plain_stem(file.path)
            name = table_name(stem)
            if in_subfolder and name in taken:
                name = table_name(f"{parent.name}_{stem}")
            plans.append(_Plan(name=_free(name, taken), files=(file,)))
    return plans


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    taken.add(free)
    return free


def _create(connection: duckdb.DuckDBPyConnection, plan: _Plan, folder: Path) -> Reading:
    reading = read_table(connection, plan.files, table=plan.name, folder=folder)
    if reading.note:
        comment = reading.note.replace("'", "''")
        connection.execute(f"COMMENT ON TABLE {quote_name(plan.name)} IS '{comment}'")
    return reading


def _tables(path: Path) -> tuple[LoadedTable, ...]:
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute(
            "SELECT table_name, estimated_size, column_count, coalesce(comment, '') FROM duckdb_tables() "
            "WHERE NOT internal ORDER BY table_name"
        ).fetchall()
    return tuple(
        LoadedTable(name=name, rows=size, columns=count, note=note) for name, size, count, note in rows
    )
