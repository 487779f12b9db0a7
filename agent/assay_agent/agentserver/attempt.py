"""One claimed attempt, from wiring to its terminal write. The one place that catches `OwnershipLost`."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from assay_agent.agentserver.outcome import Verdict, say, verdict_of
from assay_agent.agentserver.signals import stopping_signals
from assay_agent.context import Progress, RunContext, StopSignal
from assay_agent.discovery.pipeline import ENDED_EARLY, SoFar, give_up, run_discovery, save_partial
from assay_agent.discovery.records import spent_so_far
from assay_agent.discovery.source_files import changed_files, source_files
from assay_agent.ports import SecretProvider
from assay_agent.settings import AgentSettings
from assay_agent.stores import OpenStores
from assay_agent.wiring import RunOptions, Wiring, open_embedder, open_secrets, policy_of
from assay_core import log
from assay_core.errors import AssayError, ConfigError, OwnershipLost, StopRequested, TransientError
from assay_core.model.run import DiscoveryRun, RunStatus, RunStep
from assay_core.resume import replayable
from assay_core.store.fence import FencedRun

_logger = log.logger(__name__)


class SilentProgress:
    """Progress for a pod: the log and the run document are enough."""

    def phase(self, name: str, *, percent: int, detail: str) -> None:
        _logger.info("progress", phase=name, percent=percent, detail=detail)

    def step(self, row: RunStep, *, percent: int) -> None:
        _logger.info(
            "step", step=row.step_num, type=row.type, percent=percent, rows=row.row_count, error=row.error
        )

    def note(self, text: str) -> None:
        _logger.info("note", text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a caller in the same process hands over instead of the environment."""

    stores: OpenStores | None = None
    secrets: SecretProvider | None = None
    progress: Progress | None = None
    settings: AgentSettings | None = None
    stop: StopSignal | None = None
    failed: Callable[[str], None] | None = None
    """Told why an index did not complete."""


@dataclass(slots=True)
class Attempt:
    """One claimed attempt, from wiring to its terminal write."""

    given: Given
    settings: AgentSettings
    arguments: argparse.Namespace
    options: RunOptions
    stores: OpenStores
    claimed: DiscoveryRun
    fenced: FencedRun
    ctx: RunContext | None = None
    so_far: SoFar = field(default_factory=SoFar)

    def run(self, resources: ExitStack) -> int:
        stop = self.given.stop or StopSignal()
        with stopping_signals(stop, grace_s=policy_of(self.settings).run.stop_grace_s):
            try:
                verdict = self._ended(stop, resources)
            except OwnershipLost as lost:
                verdict = self._given_up(lost)
        resumable = verdict.kind not in ("Completed", "OwnershipLost") and self._has_checkpoints()
        say(
            self.fenced.fence,
            verdict,
            termination_message=self.settings.assay_termination_message,
            resumable=resumable,
            discovery_id=self._discovery_id,
            store=self.stores.store,
        )
        return verdict.exit_code

    def _ended(self, stop: StopSignal, resources: ExitStack) -> Verdict:
        try:
            return self._work(stop, resources)
        except (AssayError, StopRequested) as error:
            if stop.exit_code is not None and self.stores.store.lost():
                # Asked to stop while the store ended: the request is what ends the run.
                return self._end_early(StopRequested(exit_code=stop.exit_code))
            return self._end_early(error)
        except Exception as error:  # noqa: BLE001 - a bug must still end as an outcome
            # A bug: the traceback is for a developer, the run stays resumable.
            traceback.print_exc()
            return self._end_early(error)

    def _given_up(self, lost: OwnershipLost) -> Verdict:
        if self.ctx is not None:
            with suppress(AssayError):  # the stores may be gone too; what is left is swept
                give_up(self.ctx, self.so_far, lost.reason)
        return verdict_of(lost)

    def _work(self, stop: StopSignal, resources: ExitStack) -> Verdict:
        project = self.stores.store.projects.get(self.arguments.project_id)
        if project is None or self.claimed.project_id != self.arguments.project_id:
            raise ConfigError(
                f"--project-id {self.arguments.project_id} is not the project of run {self.claimed.id}"
            )
        secrets = self.given.secrets or open_secrets(self.settings, self.stores.store)
        wiring = Wiring(
            settings=self.settings,
            policy=policy_of(self.settings),
            store=self.stores.store,
            vectors=self.stores.vectors,
            secrets=secrets,
            embedder=open_embedder(self.settings, project, secrets),
            progress=self.given.progress or SilentProgress(),
            stop=stop,
        )
        asked: dict[str, object] = {
            "max_steps": self.options.max_steps,
            "min_steps": self.options.min_steps,
            "areas": list(self.options.areas),
            "effort": self.arguments.effort,
            "budget": {str(name): limit for name, limit in self.options.limits.items()},
        }
        if not self.options.resume and (files := source_files(project)):
            asked["source_files"] = files
        self.fenced.mark(set=asked)
        run = self.claimed.model_copy(update=asked)
        self.ctx = ctx = wiring.context(run, project, self.fenced, self.options, resources=resources)
        for changed in changed_files(run, project):
            ctx.progress.note(changed)
        run_discovery(ctx, self.so_far)
        self._finish(RunStatus.COMPLETED, error=None)
        try:
            self.stores.store.checkpoints.delete_all(self.fenced)
        except TransientError as error:
            # The run is complete; what is left of its checkpoints expires.
            _logger.warning("checkpoints not removed", error=str(error))
        return Verdict(exit_code=0, kind="Completed", reason="Completed")

    def _end_early(self, error: BaseException) -> Verdict:
        """Save what is done where there is something, then say on the run document that and why it failed."""
        verdict = verdict_of(error)
        try:
            if self.ctx is not None and isinstance(error, ENDED_EARLY):
                save_partial(self.ctx, self.so_far)
            self._finish(RunStatus.FAILED, error=f"{verdict.reason}: {verdict.message}")
        except AssayError as failure:
            complain = _logger.warning if self.stores.store.lost() else _logger.error
            complain("terminal write failed", error=str(failure))
        return verdict

    def _finish(self, status: RunStatus, *, error: str | None) -> None:
        model = self.ctx.model if self.ctx else None
        elapsed_ms = self.ctx.deadline.elapsed_ms() if self.ctx else 0
        if self.ctx is not None:
            self.fenced.mark(set={**spent_so_far(self.ctx), "phase_timings": self.ctx.timings})
        with suppress(TransientError):  # the run itself says how it ended
            self.stores.store.projects.announce_end(self.claimed, status)
        self.fenced.finish(
            status=status,
            error=error,
            discovery_id=self._discovery_id,
            active_ms=elapsed_ms,
            llm_provider=model.provider if model else None,
            llm_model=model.model if model else None,
            zero_checkpoint=status is RunStatus.COMPLETED,
        )

    @property
    def _discovery_id(self) -> str | None:
        return self.so_far.saved.id if self.so_far.saved else None

    def _has_checkpoints(self) -> bool:
        with suppress(AssayError):
            return bool(replayable(self.stores.store.checkpoints.marks(self.claimed.id)))
        return False
