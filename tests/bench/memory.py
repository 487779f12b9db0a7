"""Extra resident memory of a query whose result has five million rows: in a process of its own, peak against before."""

from __future__ import annotations

import subprocess
import sys

from tests.bench.table import Line

_PROGRAM = """
import sys
from pathlib import Path
import duckdb
path = Path(sys.argv[1]) / "five.duckdb"
with duckdb.connect(str(path)) as connection:
    connection.execute("CREATE TABLE t AS SELECT i AS id, i % 97 AS g, i * 0.5 AS x, 'row ' || i AS name FROM range(5000000) r(i)")
"""
_MEASURE = """
import sys
from pathlib import Path
from assay_agent.adapters.duckdb import open_warehouse
from assay_agent.evidence.digest import digest
from assay_agent.policy import Policy
from assay_agent.ports import QueryLimits, WarehouseSettings
policy = Policy()
warehouse = open_warehouse(WarehouseSettings(datasource_id="default", provider="duckdb", config={"path": str(Path(sys.argv[1]) / "five.duckdb")}))
limits = QueryLimits(rows=policy.query.rows, cell_chars=2000, result_bytes=policy.query.result_bytes, timeout_s=120)
warehouse.execute("SELECT 1 AS one", limits=limits)
def kilobytes(name):
    return int(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)).split()[1])
Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew here
before = kilobytes("VmRSS")
result = warehouse.execute("SELECT * FROM main.t ORDER BY id", limits=limits)
digest(result.columns, result.rows, policy=policy.digest, truncated=result.truncated)
assert len(result.rows) == policy.query.rows and result.truncated
print((kilobytes("VmHWM") - before) / 1024)
"""


def lines() -> list[Line]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        subprocess.run([sys.executable, "-c", _PROGRAM, folder], check=True, timeout=300)
        said = subprocess.run(
            [sys.executable, "-c", _MEASURE, folder], check=True, timeout=300, capture_output=True, text=True
        )
    grown = float(said.stdout.strip())
    return [
        Line(what="extra memory of a result of 5,000,000 rows", ours=grown, theirs=None, unit="MB", goal=200)
    ]
