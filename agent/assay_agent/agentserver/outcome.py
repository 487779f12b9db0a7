"""How an attempt ended: from an exception to exit code, class and reason, and where that is written."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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
from assay_core.model.run import OutcomeClass, RunOutcome
from assay_core.store.client import Store
from assay_core.store.fence import Fence

_logger = log.logger(__name__)
_MESSAGE_BYTES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How an attempt ended."""

    exit_code: int
    kind: OutcomeClass
    reason: str
    message: str = ""


def verdict_of(error: BaseException) -> Verdict:
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


def say(
    fence: Fence,
    verdict: Verdict,
    *,
    termination_message: Path,
    resumable: bool = False,
    discovery_id: str | None = None,
    store: Store | None = None,
) -> None:
    """The outcome three times: the record in the store, the termination message, the log."""
    outcome = RunOutcome.model_validate(
        {
            "run_id": fence.run_id,
            "attempt": fence.attempt,
            "owner": fence.owner,
            "exit_code": verdict.exit_code,
            "class": verdict.kind,
            "reason": verdict.reason,
            "message": verdict.message.encode()[:_MESSAGE_BYTES].decode(errors="ignore"),
            "resumable": resumable,
            "discovery_id": discovery_id,
        }
    )
    if store is not None:
        try:
            store.outcomes.put(outcome)
        except AssayError as error:
            # A store that is lost for good has been told already, and cannot hold this.
            complain = _logger.warning if store.lost() else _logger.error
            complain("outcome not recorded", error=str(error))
    _logger.info("outcome", **{key: value for key, value in outcome.stored().items() if key != "run_id"})
    with suppress(OSError):
        if termination_message.exists():
            line = json.dumps(outcome.stored(), ensure_ascii=False)
            termination_message.write_text(line + "\n", encoding="utf-8")
