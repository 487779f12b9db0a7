"""Extra resident memory of a query whose result has five million rows: in a process of its own, peak against before."""

from __future__ import annotations

import subprocess
import sys

from tests.bench.table import Line

_PROGRAM = """
import resource, sys
from pathlib import Path
from assay_agent.adapters.duckdb import open_warehouse
from assay_agent.evidence.digest import digest
from assay_agent.policy import Policy
from assay_agent.ports import QueryLimits, WarehouseSettings
import duckdb
path = Path(sys.argv[1]) / "five.duckdb"
with duckdb.connect(str(path)) as connection:
    connection.execute("CREATE TABLE t AS SELECT i AS id, i % 97 AS g, i * 0.5 AS x, 'row ' || i AS name FROM range(5000000) r(i)")
"""
_MEASURE = """
import resource, sys
from pathlib import Path
from assay_agent.adapters.duckdb import open_warehouse
from assay_agent.evidence.digest import digest
from assay_agent.policy import Policy
from assay_agent.ports import QueryLimits, WarehouseSettings
policy = Policy()
warehouse = open_warehouse(WarehouseSettings(datasource_id="default", provider="duckdb", config={"path": str(Path(sys.argv[1]) / "five.duckdb")}))
limits = QueryLimits(rows=policy.query.rows, cell_chars=2000, result_bytes=policy.query.result_bytes, timeout_s=120)
warehouse.execute("SELECT 1 AS one", limits=limits)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = warehouse.execute("SELECT * FROM main.t ORDER BY id", limits=limits)
digest(result.columns, result.rows, policy=policy.digest, truncated=result.truncated)
assert len(result.rows) == policy.query.rows and result.truncated
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
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
