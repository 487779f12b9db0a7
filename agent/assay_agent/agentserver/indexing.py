"""Mode `index-schema`: one index of a project's tables, from wiring to its outcome. Owns no run and claims none.

An index that did not finish is gone on with under its own id, by whoever asks next; what it had stored is not done again.
"""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from uuid import uuid4

from assay_agent.agentserver.arguments import limits_of
from assay_agent.agentserver.attempt import Given, SilentProgress
from assay_agent.agentserver.outcome import Verdict, say, verdict_of
from assay_agent.agentserver.signals import stopping_signals
from assay_agent.context import StopSignal
from assay_agent.indexing.pipeline import index_tables
from assay_agent.settings import AgentSettings
from assay_agent.stores import OpenStores
from assay_agent.wiring import IndexOptions, Wiring, open_embedder, open_secrets, policy_of
from assay_core import log
from assay_core.errors import AssayError, ConfigError, StopRequested
from assay_core.store.client import Store
from assay_core.store.fence import Fence

_logger = log.logger(__name__)


@dataclass(slots=True)
class Indexing:
    """One index, asked for by the command line of the agent."""

    given: Given
    settings: AgentSettings
    arguments: argparse.Namespace
    owner: str
    open_stores: Callable[[AgentSettings], OpenStores]
    index_id: str = ""

    def run(self) -> int:
        stop = self.given.stop or StopSignal()
        project_id = self.arguments.project_id
        with (
            log.bound(project_id=project_id),
            stopping_signals(stop, grace_s=policy_of(self.settings).run.stop_grace_s),
            ExitStack() as resources,
        ):
            try:
                verdict = self._work(stop, resources)
            except (AssayError, StopRequested) as error:
                verdict = verdict_of(error)
            except Exception as error:  # noqa: BLE001 - a bug must still end as an outcome
                traceback.print_exc()
                verdict = verdict_of(error)
        say(
            Fence(run_id=self.index_id or project_id, attempt=1, owner=self.owner),
            verdict,
            termination_message=self.settings.assay_termination_message,
            resumable=bool(self.index_id) and verdict.exit_code != 0,
        )
        if verdict.exit_code != 0 and self.given.failed is not None:
            self.given.failed(verdict.message)
        return verdict.exit_code

    def _work(self, stop: StopSignal, resources: ExitStack) -> Verdict:
        stores = self.given.stores or resources.enter_context(self.open_stores(self.settings))
        project = stores.store.projects.get(self.arguments.project_id)
        if project is None:
            raise ConfigError(f"--project-id {self.arguments.project_id} names no stored project")
        self.index_id = self.arguments.job_id or unfinished(stores.store, project.id) or str(uuid4())
        secrets = self.given.secrets or open_secrets(self.settings, stores.store)
        wiring = Wiring(
            settings=self.settings,
            policy=policy_of(self.settings),
            store=stores.store,
            vectors=stores.vectors,
            secrets=secrets,
            embedder=open_embedder(self.settings, project, secrets),
            progress=self.given.progress or SilentProgress(),
            stop=stop,
        )
        options = IndexOptions(
            index_id=self.index_id, refresh=self.arguments.refresh, limits=limits_of(self.arguments)
        )
        done = index_tables(wiring.index_job(project, options, resources=resources))
        _logger.info("tables indexed", **done.stored())
        return Verdict(exit_code=0, kind="Completed", reason="Completed")


def unfinished(store: Store, project_id: str) -> str | None:
    """The id of the project's last index, where that did not come to its end."""
    last = store.schema.progress(project_id)
    return last.run_id if last is not None and last.status != "completed" and last.run_id else None
