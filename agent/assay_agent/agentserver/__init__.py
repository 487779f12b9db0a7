"""The entry point of the agent: arguments → settings → stores → claim → wiring → run (or index) → exit code.

`run(argv)` is called by the container's command, by `assay run`, and by custom builds that registered plug-ins before. It is the
one place where exceptions become an outcome: an exit code of the contract, a record for (attempt, owner), and a one-line message.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from assay_agent.agentserver.arguments import INDEX_BUDGETS, INDEX_SCHEMA, check, parser, run_options
from assay_agent.agentserver.attempt import Attempt, Given
from assay_agent.agentserver.indexing import Indexing
from assay_agent.agentserver.outcome import say, verdict_of
from assay_agent.budgets import FLAGS
from assay_agent.settings import AgentSettings
from assay_agent.stores import OpenStores, open_stores
from assay_agent.wiring import findings_dimensions, policy_of
from assay_core import log
from assay_core.errors import AssayError, ConfigError, OwnershipLost
from assay_core.store import faults
from assay_core.store.fence import Fence, FencedRun
from assay_core.store.owner import local_owner

__all__ = ["BUDGETS", "BUDGETS_OF_INDEX", "Given", "check", "main", "run"]

BUDGETS = {str(budget): flag for budget, flag in FLAGS.items()}
"""Budget → flag, as the run document names it."""
BUDGETS_OF_INDEX = {str(budget): FLAGS[budget] for budget in INDEX_BUDGETS}

_logger = log.logger(__name__)


def run(argv: Sequence[str], *, given: Given | None = None) -> int:
    """Run one attempt, or one index; returns the exit code of the contract (see docs/lifecycle.md)."""
    given = given or Given()
    try:
        faults.arm(os.environ)
        arguments = parser().parse_args(list(argv))
        settings = given.settings or AgentSettings.load()
        if given.settings is None:
            log.configure(level="debug" if arguments.enable_debug_logs else settings.log_level, json=True)
        options = run_options(arguments, policy_of(settings).exploration)
    except ConfigError as error:
        sys.stderr.write(f"error: {error}\n")
        return 10
    owner = settings.assay_owner or local_owner()
    if arguments.mode == INDEX_SCHEMA:
        return Indexing(given, settings, arguments, owner, _open_stores).run()
    with log.bound(run_id=arguments.run_id, attempt=arguments.attempt), ExitStack() as resources:
        try:
            stores = given.stores or resources.enter_context(_open_stores(settings))
            claimed = stores.store.runs.claim(arguments.run_id, arguments.attempt, owner)
        except (AssayError, OwnershipLost) as error:
            verdict = verdict_of(error)
            _logger.error("run not started", reason=verdict.reason, error=str(error))
            say(
                Fence(run_id=arguments.run_id, attempt=arguments.attempt, owner=owner),
                verdict,
                termination_message=settings.assay_termination_message,
            )
            return verdict.exit_code
        fenced = FencedRun(stores.store, Fence(run_id=claimed.id, attempt=arguments.attempt, owner=owner))
        return Attempt(given, settings, arguments, options, stores, claimed, fenced).run(resources)


def _open_stores(settings: AgentSettings) -> OpenStores:
    dimensions = findings_dimensions(settings)
    return open_stores(home=Path(".assay"), settings=settings, embedder_dims=dimensions)


def main() -> NoReturn:
    """The container's command."""
    sys.exit(run(sys.argv[1:]))
