"""`assay cancel`: end a run for good and remove its working data."""

from __future__ import annotations

import argparse

from assay_agent.cli.home import choose_run, fail_abandoned
from assay_agent.cli.terminal import console
from assay_agent.settings import AgentSettings
from assay_agent.stores import OpenStores, open_for_reading
from assay_agent.wiring import findings_dimensions
from assay_core.model.run import RunStatus
from assay_core.store.control import cancel_run


def cancel(arguments: argparse.Namespace) -> int:
    """`assay cancel RUN`: works beside the process that runs it, which then stops at its next step."""
    settings = AgentSettings.load()
    dimensions = findings_dimensions(settings)
    with open_for_reading(home=arguments.home, settings=settings, embedder_dims=dimensions) as stores:
        fail_abandoned(stores.store)
        run = choose_run(stores.store, arguments.run)
        done = cancel_run(
            stores.store,
            run.id,
            drop_vectors=lambda name: _drop(stores, name),
            reason="assay cancel",
        )
    again = "was cancelled already" if done.before is RunStatus.CANCELLED else "is cancelled"
    console().print(f"run {run.id[:8]} {again}; {done.rows} checkpoint rows removed; it cannot be resumed")
    return 0


def _drop(stores: OpenStores, name: str) -> None:
    """The run's own vectors; where another process holds them, it is the run's own, and drops them as it stops."""
    if stores.owned:
        stores.vectors.drop(name)
