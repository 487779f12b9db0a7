"""The entry point of the agent: arguments → settings → stores → claim → wiring → run → exit code.

`run(argv)` is called by the container's command, by `assay run`, and by custom builds that registered plug-ins before. It is the
one place where exceptions become an outcome: an exit code of the contract, a record for (attempt, owner), and a one-line message.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from assay_agent.context import Progress, RunContext, StopSignal
from assay_agent.discovery.pipeline import ENDED_EARLY, SoFar, run_discovery, save_partial
from assay_agent.llm.roles import RoleModels
from assay_agent.policy import ExplorationPolicy
from assay_agent.ports import SecretProvider
from assay_agent.settings import AgentSettings
from assay_agent.stores import OpenStores, open_stores
from assay_agent.wiring import RunOptions, Wiring, open_embedder, open_secrets, policy_of
from assay_core import log
from assay_core.errors import (
    AllAreasFailed,
    AssayError,
    BudgetExhausted,
    CheckpointUnusable,
    ConfigError,
    ModelOutputError,
    ModelRefusal,
    OwnershipLost,
    StopRequested,
    TransientError,
)
from assay_core.model.discovery import DiscoveryResult
from assay_core.model.run import DiscoveryRun, OutcomeClass, RunOutcome, RunStatus, RunStep
from assay_core.store import faults
from assay_core.store.fence import Fence, FencedRun
from assay_core.store.owner import local_owner

_logger = log.logger(__name__)
_MESSAGE_BYTES = 1024
_MAX_STEPS = 10_000
_EFFORT_STEPS = {"lower": 20, "low": 40, "medium": 60, "high": 80, "higher": 100}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How an attempt ended."""

    exit_code: int
    kind: OutcomeClass
    reason: str
    message: str = ""


# ----------------------------------------------------------------------------------------------------- arguments


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see --help)")


def parser() -> argparse.ArgumentParser:
    """The agent's own flags."""
    made = _Parser(
        prog="assay-agent", allow_abbrev=False, description="Run one attempt of one discovery run."
    )
    made.add_argument("--project-id", required=True)
    made.add_argument("--run-id", required=True)
    made.add_argument("--attempt", type=_at_least(1), default=1, help="which attempt this is (1)")
    made.add_argument("--max-steps", type=_at_least(1), default=None, help="exploration steps at most (100)")
    made.add_argument(
        "--min-steps", type=_at_least(0), default=None, help="steps before the model may end (0)"
    )
    made.add_argument("--areas", type=_names, default=(), help="analysis areas, comma separated (all)")
    made.add_argument(
        "--effort", choices=tuple(_EFFORT_STEPS), default=None, help="sets --max-steps where that is absent"
    )
    made.add_argument(
        "--resume", action="store_true", help="continue from the checkpoints of an earlier attempt"
    )
    made.add_argument("--test", action="store_true", help="at most 20 steps")
    made.add_argument("--require-index", action="store_true", help="fail instead of reading the schema first")
    made.add_argument("--enable-debug-logs", action="store_true")
    return made


def _at_least(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= _MAX_STEPS:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from {least} to {_MAX_STEPS}, not {text!r}"
            )
        return int(text)

    return whole


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def run_options(arguments: argparse.Namespace, policy: ExplorationPolicy) -> RunOptions:
    """Steps from flag, effort or default; `--test` caps them."""
    steps = arguments.max_steps or _EFFORT_STEPS.get(arguments.effort or "", policy.max_steps)
    if arguments.test:
        steps = min(steps, policy.test_max_steps)
    floor = policy.min_steps if arguments.min_steps is None else arguments.min_steps
    if floor > steps:
        raise ConfigError(f"--min-steps must be at most --max-steps ({steps}), not {floor}")
    return RunOptions(
        areas=arguments.areas,
        max_steps=steps,
        min_steps=floor,
        resume=arguments.resume,
        require_index=arguments.require_index,
    )


def check(argv: Sequence[str]) -> None:
    """Raise ConfigError where the flags are wrong; for callers that must know before they start anything."""
    run_options(parser().parse_args(list(argv)), ExplorationPolicy())


# ----------------------------------------------------------------------------------------------------------- run


def run(argv: Sequence[str], *, given: Given | None = None) -> int:
    """Run one attempt; returns the exit code of the contract (see docs/lifecycle.md)."""
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
    with log.bound(run_id=arguments.run_id, attempt=arguments.attempt), ExitStack() as resources:
        try:
            stores = given.stores or resources.enter_context(_open_stores(settings))
            claimed = stores.store.runs.claim(arguments.run_id, arguments.attempt, owner)
        except (AssayError, OwnershipLost) as error:
            verdict = _verdict(error)
            _logger.error("run not started", reason=verdict.reason, error=str(error))
            _say(settings, arguments, owner, verdict, resumable=False, discovery_id=None)
            return verdict.exit_code
        fenced = FencedRun(stores.store, Fence(run_id=claimed.id, attempt=arguments.attempt, owner=owner))
        return _Attempt(given, settings, arguments, options, stores, claimed, fenced).run(resources)


def _open_stores(settings: AgentSettings) -> OpenStores:
    dimensions = open_embedder(settings, None).dimensions
    return open_stores(home=Path(".assay"), settings=settings, embedder_dims=dimensions)


@dataclass(slots=True)
class _Attempt:
    """One claimed attempt, from wiring to its terminal write."""

    given: Given
    settings: AgentSettings
    arguments: argparse.Namespace
    options: RunOptions
    stores: OpenStores
    claimed: DiscoveryRun
    fenced: FencedRun
    ctx: RunContext | None = None
    discovery: DiscoveryResult | None = None

    def run(self, resources: ExitStack) -> int:
        stop = self.given.stop or StopSignal()
        so_far = SoFar()
        with _signals(stop, grace_s=policy_of(self.settings).run.stop_grace_s):
            try:
                verdict = self._work(stop, so_far, resources)
            except OwnershipLost as lost:
                verdict = _verdict(lost)
            except (AssayError, StopRequested) as error:
                verdict = self._end_early(error, so_far)
            except Exception as error:  # noqa: BLE001 - a bug must still end as an outcome
                # A bug: the traceback is for a developer, the run stays resumable.
                traceback.print_exc()
                verdict = self._end_early(error, so_far)
        resumable = verdict.kind not in ("Completed", "OwnershipLost") and self._has_checkpoints()
        discovery_id = self.discovery.id if self.discovery else None
        _say(
            self.settings,
            self.arguments,
            self.fenced.fence.owner,
            verdict,
            resumable=resumable,
            discovery_id=discovery_id,
            stores=self.stores,
        )
        return verdict.exit_code

    def _work(self, stop: StopSignal, so_far: SoFar, resources: ExitStack) -> Verdict:
        project = self.stores.store.projects.get(self.arguments.project_id)
        if project is None or self.claimed.project_id != self.arguments.project_id:
            raise ConfigError(
                f"--project-id {self.arguments.project_id} is not the project of run {self.claimed.id}"
            )
        wiring = Wiring(
            settings=self.settings,
            policy=policy_of(self.settings),
            store=self.stores.store,
            vectors=self.stores.vectors,
            secrets=self.given.secrets or open_secrets(self.settings),
            embedder=open_embedder(self.settings, project),
            progress=self.given.progress or SilentProgress(),
            stop=stop,
        )
        asked = {
            "max_steps": self.options.max_steps,
            "min_steps": self.options.min_steps,
            "areas": list(self.options.areas),
            "effort": self.arguments.effort,
        }
        self.fenced.mark(set=asked)
        run = self.claimed.model_copy(update=asked)
        self.ctx = ctx = wiring.context(run, project, self.fenced, self.options, resources=resources)
        self.discovery = run_discovery(ctx, so_far)
        self._finish(RunStatus.COMPLETED, error=None)
        self.stores.store.checkpoints.delete_all(self.fenced)
        return Verdict(exit_code=0, kind="Completed", reason="Completed")

    def _end_early(self, error: BaseException, so_far: SoFar) -> Verdict:
        """Save what is done where there is something, then say on the run document that and why it failed."""
        verdict = _verdict(error)
        try:
            if self.ctx is not None and isinstance(error, ENDED_EARLY):
                self.discovery = save_partial(self.ctx, so_far)
            self._finish(RunStatus.FAILED, error=f"{verdict.reason}: {verdict.message}")
        except OwnershipLost as lost:
            return _verdict(lost)
        except AssayError as failure:
            _logger.error("terminal write failed", error=str(failure))
        return verdict

    def _finish(self, status: RunStatus, *, error: str | None) -> None:
        model = self.ctx.model if self.ctx else None
        elapsed_ms = self.ctx.deadline.elapsed_ms() if self.ctx else 0
        if self.ctx is not None:
            usage = model.usage() if isinstance(model, RoleModels) else []
            self.fenced.mark(set={"usage": usage, "phase_timings": self.ctx.timings})
        self.fenced.finish(
            status=status,
            error=error,
            discovery_id=self.discovery.id if self.discovery else None,
            active_ms=elapsed_ms,
            llm_provider=model.provider if model else None,
            llm_model=model.model if model else None,
            zero_checkpoint=status is RunStatus.COMPLETED,
        )
        if self.claimed.project_id:
            self.stores.store.projects.touch_last_run(
                self.claimed.project_id, status, self.claimed.started_at
            )

    def _has_checkpoints(self) -> bool:
        with suppress(AssayError):
            return bool(self.stores.store.checkpoints.steps(self.claimed.id))
        return False


# ------------------------------------------------------------------------------------------------------- outcome


def _verdict(error: BaseException) -> Verdict:
    """Error class → exit code of the contract, class and reason. First match wins."""
    message = str(error)
    match error:
        case OwnershipLost():
            return Verdict(
                exit_code=13, kind="OwnershipLost", reason=error.reason.capitalize(), message=message
            )
        case StopRequested():
            return Verdict(
                exit_code=error.exit_code,
                kind="Interrupted",
                reason="Interrupted",
                message="stopped on request",
            )
        case CheckpointUnusable():
            return Verdict(exit_code=14, kind="Config", reason="NothingToReplay", message=message)
        case ConfigError():
            return Verdict(exit_code=10, kind="Config", reason="ConfigInvalid", message=message)
        case TransientError():
            reason = f"{error.dependency.capitalize()}Unavailable"
            return Verdict(exit_code=11, kind="Infrastructure", reason=reason, message=message)
        case BudgetExhausted():
            return Verdict(exit_code=12, kind="Limit", reason=type(error).__name__, message=message)
        case AllAreasFailed():
            return Verdict(exit_code=15, kind="Agent", reason="AllAreasFailed", message=message)
        case ModelRefusal():
            return Verdict(exit_code=10, kind="Config", reason="ModelRefused", message=message)
        case ModelOutputError():
            return Verdict(exit_code=10, kind="Config", reason="ModelUnusable", message=message)
        case _:
            return Verdict(exit_code=1, kind="Agent", reason=type(error).__name__, message=message)


def _say(
    settings: AgentSettings,
    arguments: argparse.Namespace,
    owner: str,
    verdict: Verdict,
    *,
    resumable: bool,
    discovery_id: str | None,
    stores: OpenStores | None = None,
) -> None:
    """The outcome three times: the record in the store, the termination message, the log."""
    outcome = RunOutcome.model_validate(
        {
            "run_id": arguments.run_id,
            "attempt": arguments.attempt,
            "owner": owner,
            "exit_code": verdict.exit_code,
            "class": verdict.kind,
            "reason": verdict.reason,
            "message": verdict.message.encode()[:_MESSAGE_BYTES].decode(errors="ignore"),
            "resumable": resumable,
            "discovery_id": discovery_id,
        }
    )
    if stores is not None:
        try:
            stores.store.outcomes.put(outcome)
        except AssayError as error:
            _logger.error("outcome not recorded", error=str(error))
    line = json.dumps(outcome.stored(), ensure_ascii=False)
    _logger.info("outcome", **{key: value for key, value in outcome.stored().items() if key != "run_id"})
    with suppress(OSError):
        if settings.assay_termination_message.exists():
            settings.assay_termination_message.write_text(line + "\n", encoding="utf-8")


@contextmanager
def _signals(stop: StopSignal, *, grace_s: float) -> Iterator[None]:
    """SIGTERM and Ctrl-C ask the run to stop; one that is stuck in a call is ended when the grace is nearly over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, _frame: object) -> None:
        code = 143 if number == signal.SIGTERM else 130
        if stop.exit_code is not None and number == signal.SIGINT:
            os._exit(code)
        stop.request(code)
        guard = threading.Timer(grace_s - 2, os._exit, args=(code,))
        guard.daemon = True
        guard.start()
        guards.append(guard)

    guards: list[threading.Timer] = []
    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for guard in guards:
            guard.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def main() -> NoReturn:
    """The container's command."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
