"""The error tree: the class says who acts next.

AssayError
├── ConfigError            a human: the run fails at once, exit 10
│   ├── CheckpointUnusable   a human: nothing that could be replayed, exit 14
│   └── ResumeRefused        a human: the run cannot be continued, and why
├── TransientError         time: bounded tries in the adapter, then exit 11
├── ModelOutputError       the model: a nudge, within the policy's limit
├── ModelRefusal           nobody: the same conversation is never sent again
├── QueryError             the model: the text goes back for a repair
├── BudgetExhausted        the pipeline: keep what is done, save partial, exit 12
│   └── DeadlineReached
└── AllAreasFailed         the user: every analysis area failed, exit 15
BaseException
├── OwnershipLost          nobody: stop writing, exit 13; caught in exactly one place
└── StopRequested          SIGTERM or Ctrl-C: stop at the next safe point, exit 143 or 130

Anything else that is raised is a bug: traceback, exit 1. Adapters translate foreign exceptions into this
tree (`raise … from`). A message names the thing at fault and never carries a secret.
"""

from __future__ import annotations

from enum import StrEnum


class AssayError(Exception):
    """Root of every error this project raises on purpose."""


class ConfigError(AssayError):
    """A setting, a source or an input is wrong, and a human must change it."""


class CheckpointUnusable(ConfigError):
    """A resume was asked for and nothing can be replayed."""


class ResumeRefusal(StrEnum):
    """Why a run cannot be resumed; the operator shows the same words as a condition's reason."""

    NOT_FAILED = "NotFailed"
    CANCELLED = "Cancelled"
    NO_CHECKPOINT = "NoCheckpoint"
    EXPIRED = "Expired"
    ANOTHER_RUN_ACTIVE = "AnotherRunActive"
    LOST_RACE = "LostRace"


class ResumeRefused(ConfigError):
    """A resume request that is not let through."""

    def __init__(self, message: str, *, reason: ResumeRefusal) -> None:
        super().__init__(message)
        self.reason = reason


class TransientError(AssayError):
    """A dependency (model, MongoDB, warehouse, secrets) is unavailable; `dependency` names which one."""

    def __init__(self, message: str, *, dependency: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.dependency = dependency
        self.retry_after_s = retry_after_s


class ModelOutputError(AssayError):
    """A model's reply could not be used; `reason` is a short machine-readable class of why."""

    def __init__(self, message: str, *, reason: str = "malformed") -> None:
        super().__init__(message)
        self.reason = reason


class ModelRefusal(AssayError):
    """The model declined to answer. Sending the same conversation again is refused again."""


class QueryError(AssayError):
    """The warehouse or the guard rejected a statement; the text is fit to be shown to the model."""

    def __init__(self, message: str, *, kind: str = "execution") -> None:
        super().__init__(message)
        self.kind = kind


class BudgetExhausted(AssayError):
    """A run budget (tokens, money, bytes, rows) is used up."""


class DeadlineReached(BudgetExhausted):
    """`DISCOVERY_MAX_DURATION` is over."""


class AllAreasFailed(AssayError):
    """No analysis area produced a result."""


class LossReason(StrEnum):
    """Why an attempt no longer owns its run."""

    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    MISSING = "missing"


class OwnershipLost(BaseException):
    """This attempt no longer owns the run. A `BaseException`, so that no recovery code can swallow it."""

    def __init__(self, reason: LossReason, *, run_id: str) -> None:
        super().__init__(f"run {run_id} is no longer owned by this attempt: {reason}")
        self.reason = reason
        self.run_id = run_id


class StopRequested(BaseException):
    """The process was asked to stop; `exit_code` is 143 (SIGTERM) or 130 (Ctrl-C)."""

    def __init__(self, *, exit_code: int) -> None:
        super().__init__(f"asked to stop (exit {exit_code})")
        self.exit_code = exit_code
