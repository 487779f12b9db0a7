"""A result of five million rows costs the process no more than 200 MB, sorted or not, on every source."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.integration.postgres import PASSWORD, postgres_server

pytestmark = pytest.mark.slow

ROWS = 5_000_000
EXTRA_MB = 200

# Runs in a process of its own: opens the source, asks a small question, then the big one, and prints the growth.
_ASK = """
import importlib, json, sys, threading, time
from assay_agent.ports import QueryLimits, WarehouseSettings

def resident_mb():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * 4096 / 1e6

provider, config, secret, sql = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], sys.argv[4]
adapter = importlib.import_module("assay_agent.adapters." + provider)
warehouse = adapter.open_warehouse(
    WarehouseSettings(datasource_id="d", provider=provider, config=config, secret=secret or None)
)
limits = QueryLimits(rows=10_000, cell_chars=2_000, result_bytes=16 << 20, timeout_s=120)
warehouse.execute("SELECT a, t FROM big WHERE a < 10", limits=limits)
before = resident_mb()
peak, done = [before], threading.Event()

def watch():
    while not done.wait(0.005):
        peak[0] = max(peak[0], resident_mb())

watcher = threading.Thread(target=watch)
watcher.start()
result = warehouse.execute(sql, limits=limits)
done.set()
watcher.join()
warehouse.close()
print(json.dumps({"rows": len(result.rows), "first": result.rows[0][0], "truncated": result.truncated,
                  "extra_mb": max(peak[0], resident_mb()) - before}))
"""


@pytest.fixture(scope="module", params=["duckdb", "sqlite", "postgres"])
def big(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("big")
    if request.param == "duckdb":
        with duckdb.connect(str(folder / "big.duckdb")) as connection:
            connection.execute(
                f"CREATE TABLE big AS SELECT i::INTEGER AS a, 'some text ' || i AS t, i * 1.5 AS x FROM range({ROWS}) r(i)"
            )
        yield "duckdb", {"path": str(folder / "big.duckdb")}
    elif request.param == "sqlite":
        lite = sqlite3.connect(folder / "big.sqlite")
        lite.execute("PRAGMA synchronous = OFF")
        lite.execute("CREATE TABLE big (a INTEGER, t TEXT, x REAL)")
        lite.executemany(
            "INSERT INTO big VALUES (?, ?, ?)", ((n, f"some text {n}", n * 1.5) for n in range(ROWS))
        )
        lite.commit()
        lite.close()
        yield "sqlite", {"path": str(folder / "big.sqlite")}
    else:
        server = postgres_server()
        with server.database() as name:
            with server.connect(name) as session:
                session.execute(
                    f"CREATE UNLOGGED TABLE big AS SELECT i AS a, 'some text ' || i AS t, i * 1.5::float8 AS x "
                    f"FROM generate_series(0, {ROWS - 1}) i".encode()
                )
            yield "postgres", server.config(name)


@pytest.mark.parametrize(
    ("sql", "first"),
    [
        ("SELECT * FROM big", 0),
        ("SELECT * FROM big ORDER BY x DESC", ROWS - 1),
        ("SELECT * FROM big ORDER BY x DESC LIMIT 4000000", ROWS - 1),
    ],
)
def test_five_million_rows_stay_small(
    big: tuple[str, dict[str, Any]], tmp_path: Path, sql: str, first: int
) -> None:
    provider, config = big
    secret = PASSWORD if provider == "postgres" else ""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _ASK, provider, json.dumps(config), secret, sql],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    found = json.loads(done.stdout)
    sys.stdout.write(f"\n{provider}: {sql}: {found['extra_mb']:.0f} MB\n")
    assert (found["rows"], found["truncated"], found["first"]) == (10_000, True, first)
    assert found["extra_mb"] <= EXTRA_MB
