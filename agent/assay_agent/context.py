"""What one run is given: its documents, its fence, its seams, its budgets. Built by `wiring`, read by every phase.

Nothing in here changes during the run except what the seams hold themselves. Also the two things that end a run early: the
deadline and the request to stop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from assay_agent.budgets import Ledger
from assay_agent.policy import Policy
from assay_agent.ports import Embedder, LanguageModel, VectorIndex, Warehouse
from assay_core.errors import DeadlineReached, StopRequested
from assay_core.model.pack import Area
from assay_core.model.project import Project
from assay_core.model.run import DiscoveryRun, PhaseTiming, RunStep
from assay_core.store.client import Store
from assay_core.store.fence import FencedRun


class Progress(Protocol):
    """Where a run shows how far it is. Called from several threads; must not raise."""

    def phase(self, name: str, *, percent: int, detail: str) -> None: ...
    def step(self, row: RunStep, *, percent: int) -> None: ...
    def note(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """The pack's texts as this run uses them: project overrides and the category's context already applied."""

    base_context: str
    exploration: str
    recommendations: str


@dataclass(slots=True)
class StopSignal:
    """Set by a signal handler, looked at by phases at points where nothing is half written."""

    exit_code: int | None = None
    _event: threading.Event = field(default_factory=threading.Event)

    def request(self, exit_code: int) -> None:
        self.exit_code = self.exit_code or exit_code
        self._event.set()

    def check(self) -> None:
        if self._event.is_set():
            raise StopRequested(exit_code=self.exit_code or 143)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """`limit_s` seconds after `started` (monotonic); 0 is none."""

    limit_s: float
    started: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        if self.limit_s and time.monotonic() - self.started > self.limit_s:
            raise DeadlineReached(f"DISCOVERY_MAX_DURATION of {self.limit_s:.0f} s is over")

    def elapsed_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Everything a phase may use."""

    run: DiscoveryRun
    project: Project
    areas: tuple[Area, ...]
    templates: Templates
    attempt: int
    max_steps: int
    min_steps: int
    resume: bool
    fenced: FencedRun
    store: Store
    vectors: VectorIndex
    embedder: Embedder
    model: LanguageModel
    warehouses: Mapping[str, Warehouse]
    policy: Policy
    progress: Progress
    stop: StopSignal
    deadline: Deadline
    tenant: str = ""
    """Whose rows the run sees, as a key; see `assay_core.model.project.tenant_of`."""
    ledger: Ledger = field(default_factory=Ledger)
    require_index: bool = False
    timings: list[PhaseTiming] = field(default_factory=list)

    def check(self) -> None:
        """Raise when the run must end here: asked to stop, or out of time."""
        self.stop.check()
        self.deadline.check()

    @property
    def datasources(self) -> tuple[str, ...]:
        return tuple(self.warehouses)
