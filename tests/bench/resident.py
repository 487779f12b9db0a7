"""The most resident memory of an agent's process over a whole run, with litellm: as it comes, and as a lean one is set up."""

from __future__ import annotations

from assay_core.model.project import Datasource
from tests.bench.agents import Rig, agent, bare, rig
from tests.bench.table import Line
from tests.integration.discovery import orders
from tests.integration.postgres import PASSWORD, postgres_server
from tests.openai_server import DIMENSIONS

STEPS = "25"
GOAL_LOCAL_MIB = 500.0
GOAL_LEAN_MIB = 350.0


def lines() -> list[Line]:
    """MiB; the bare `import litellm` with one call stands on a line of its own, since the goals are absolute."""
    with rig() as here:
        floor = bare(here).resident_mib
        return [
            _line("resident: bare import litellm + one call (for scale)", floor, GOAL_LEAN_MIB),
            _line("resident: run with the local embedder on DuckDB", _local(here), GOAL_LOCAL_MIB),
            _line("resident: run with an API embedder on PostgreSQL", _lean(here), GOAL_LEAN_MIB),
        ]


def _local(here: Rig) -> float:
    path = orders(here.folder / "orders.duckdb")
    project = here.project(Datasource(provider="duckdb", config={"path": str(path)}))
    return agent(here, project, "--max-steps", STEPS).resident_mib


def _lean(here: Rig) -> float:
    server = postgres_server()
    with server.database() as database:
        with server.connect(database) as connection:
            connection.execute(
                "CREATE TABLE orders AS SELECT i AS order_id, i % 10 AS customer_id, CASE WHEN i % 5 <> 0 THEN i * 1.5 END AS amount, "
                "DATE '2025-01-01' + i % 60 AS ordered_on FROM generate_series(1, 100) AS i"
            )
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        project = here.project(Datasource(provider="postgres", config=server.config(database, user="reader")))
        environment = {
            "WAREHOUSE_CREDENTIALS": PASSWORD,
            "EMBEDDING_PROVIDER": "openai-compatible",
            "EMBEDDING_MODEL": "text-embedding-3-small",
            "EMBEDDING_BASE_URL": here.model.url,
            "EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "EMBEDDING_API_KEY": "k",
        }
        return agent(here, project, "--max-steps", STEPS, environment=environment).resident_mib


def _line(what: str, mib: float, goal: float) -> Line:
    return Line(what=what, ours=mib, theirs=None, unit="MiB", goal=goal)
