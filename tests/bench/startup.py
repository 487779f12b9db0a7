"""From the start of the agent's process to its first request to a model, against `import litellm` and one call, turn by turn."""

from __future__ import annotations

import statistics

from assay_core.model.project import Datasource
from tests.bench.agents import agent, bare, rig
from tests.bench.table import Line
from tests.integration.discovery import orders

ROUNDS = 5
GOAL = 1.3


def lines() -> list[Line]:
    """Median seconds of both. The agent has claimed its run, proven its credential and read the schema by then."""
    ours, theirs = [], []
    with rig() as here:
        path = orders(here.folder / "orders.duckdb")
        project = here.project(Datasource(provider="duckdb", config={"path": str(path)}))
        for _ in range(ROUNDS):
            ours.append(agent(here, project, "--max-steps", "1").first_request_s)
            theirs.append(bare(here).first_request_s)
    return [
        Line(
            what="process start to first model request vs import litellm + call",
            ours=statistics.median(ours),
            theirs=statistics.median(theirs),
            unit="s ",
            goal=GOAL,
        )
    ]
