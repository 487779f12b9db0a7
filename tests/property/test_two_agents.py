"""Several attempts of one run at once, interleaved at every write, with cancels, resumes and deaths: the fence holds.

Each agent is a thread that runs the program's own store and save functions and stops at every point the fence passes; the machine
says who goes on. Over a real MongoDB-protocol server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from assay_agent.discovery.analyze import Analysis
from assay_agent.discovery.explore import Exploration
from assay_agent.discovery.pipeline import SoFar, give_up
from assay_agent.discovery.save import save
from assay_core import clock
from assay_core.errors import AssayError, OwnershipLost, ResumeRefused
from assay_core.model.pack import Area
from assay_core.model.project import Project
from assay_core.model.run import DiscoveryRun, RunStatus
from assay_core.resume import replayable
from assay_core.store import fence as fence_module
from assay_core.store import names
from assay_core.store.client import Store
from assay_core.store.control import cancel_run, resume_run
from assay_core.store.fence import Fence, FencedRun
from assay_core.store.memory import Lesson
from tests.builders import a_checkpoint, a_feed_row, a_run, an_analysis, an_area

STEPS = 3
ATTEMPTS_AT_MOST = 4
EXAMPLES = 25
POINTS_AT_MOST = 100
STAGES = ("exploring", "summary", "area", "saving", "remembering", "finishing", "tidying")
TURN_S = 20.0
_WATCHED = (names.RUNS, names.CHECKPOINTS, names.AREA_CHECKPOINTS, names.DISCOVERIES, *names.LOGS)


class Killed(BaseException):
    """The process of an agent is gone."""


class Agent:
    """One attempt, from its claim to its end, one write at a time."""

    def __init__(self, store: Store, run: DiscoveryRun, owner: str, *, work: Callable[[Agent], None]) -> None:
        self.attempt = run.attempt
        self.fenced = FencedRun(store, Fence(run.id, run.attempt, owner), retry_s=1)
        self.so_far = SoFar()
        self.done = self.killed = False
        self.stage = STAGES[0]
        self.ended_by: BaseException | None = None
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._work = work
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()
        self._wait()

    def step(self) -> None:
        """Let it do one more write."""
        self._go.release()
        self._wait()

    def kill(self) -> None:
        self.killed = True
        self.step()

    def pause(self) -> None:
        """Called by its own thread at every point of the fence."""
        self._paused.release()
        assert self._go.acquire(timeout=TURN_S)
        if self.killed:
            raise Killed

    def _wait(self) -> None:
        assert self._paused.acquire(timeout=TURN_S), "an agent did not come to its next write"

    def _live(self) -> None:
        _current.agent = self
        try:
            self.pause()
            self._work(self)
        except (Killed, AssayError, AssertionError) as error:
            self.ended_by = error
        self.done = True
        self._paused.release()


_current = threading.local()


def _reach(_point: str) -> None:
    agent = getattr(_current, "agent", None)
    if agent is not None and threading.current_thread() is not threading.main_thread():
        agent.pause()


class Machine(RuleBasedStateMachine):
    """One run; whoever claims it, whoever still believes to own it, and a user."""

    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.agents: list[Agent] = []
        self.run = a_run(project_id=f"p-{id(self)}-{threading.get_ident()}")
        self.store.projects.upsert(Project(id=self.run.project_id, name="p"))
        self.store.runs.create(self.run)

    # ------------------------------------------------------------------------------------------------ the agents

    def _context(self, agent: Agent, run: DiscoveryRun) -> Any:
        """What the phases that write need of a run's context."""
        vectors = SimpleNamespace(delete=lambda *_: None, drop=lambda *_: None)
        return SimpleNamespace(
            store=self.store,
            run=run,
            attempt=run.attempt,
            fenced=agent.fenced,
            project=Project(id=run.project_id),
            tenant="",
            areas=(Area(id="delays", name="Delays", keywords=[], prompt=""),),
            embedder=SimpleNamespace(dimensions=8),
            vectors=vectors,
            model=SimpleNamespace(provider="p", model="m"),
            deadline=SimpleNamespace(elapsed_ms=lambda: 1),
        )

    def _work(self, agent: Agent) -> None:
        run = self._read()
        context = self._context(agent, run)
        fenced, store = agent.fenced, self.store
        try:
            prefix = replayable(store.checkpoints.steps(run.id))
            for number in range(len(prefix) + 1, STEPS + 1):
                row = a_checkpoint(run.id, number, attempt=agent.attempt)
                store.checkpoints.mark_step(fenced, row, a_feed_row(number), set={}, inc={})
            agent.stage = "summary"
            fenced.mark(raise_to={"last_checkpoint_step": STEPS})
            end = a_checkpoint(
                run.id, 0, kind="exploration_summary", total_steps=STEPS, attempt=agent.attempt
            )
            store.checkpoints.write_summary(fenced, end)
            agent.stage = "area"
            fenced.mark()
            store.checkpoints.write_area(fenced, an_area(run.id, attempt=agent.attempt))
            agent.stage = "saving"
            fenced.mark()
            exploration = Exploration(
                steps=tuple(store.checkpoints.steps(run.id)),
                attempt=agent.attempt,
                completed=True,
                message="",
                duration_ms=1,
            )
            agent.so_far.saved = save(context, exploration, Analysis(steps=(an_analysis(),)), None)
            agent.stage = "remembering"
            store.memory.remember(fenced, run.project_id, Lesson(at=clock.now()))
            agent.stage = "finishing"
            fenced.finish(status=RunStatus.COMPLETED, discovery_id=agent.so_far.saved.id)
            agent.stage = "tidying"
            store.checkpoints.delete_all(fenced)
        except OwnershipLost as lost:
            give_up(context, agent.so_far, lost.reason)

    def _read(self) -> DiscoveryRun:
        found = self.store.runs.get(self.run.id)
        assert found is not None
        return found

    def _alive(self) -> list[Agent]:
        return [agent for agent in self.agents if not agent.done]

    def _stepped(self, agent: Agent, act: Callable[[], None]) -> None:
        """Let an agent act, and hold against it what it did to documents of attempts newer than its own."""
        stale = agent is not self.agents[-1]
        before = self._newer_than(agent.attempt) if stale else {}
        act()
        after = self._newer_than(agent.attempt) if stale else {}
        changed = [key for key, document in before.items() if after.get(key) != document]
        assert not changed, f"attempt {agent.attempt} changed {changed}"
        assert agent.ended_by is None or isinstance(agent.ended_by, Killed), agent.ended_by

    def _newer_than(self, attempt: int) -> dict[tuple[str, str], dict[str, Any]]:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for collection in _WATCHED:
            key = {"_id": self.run.id} if collection == names.RUNS else {"run_id": self.run.id}
            for row in self.store.database[collection].find({**key, "attempt": {"$gt": attempt}}):
                found[collection, str(row["_id"])] = row
        return found

    # ------------------------------------------------------------------------------------------------ what happens

    @precondition(lambda self: self._read().status is RunStatus.PENDING)
    @rule()
    def claim(self) -> None:
        run = self._read()
        owner = f"agent-{len(self.agents)}"
        self.store.runs.claim(run.id, run.attempt, owner)
        self.agents.append(Agent(self.store, run, owner, work=self._work))

    @precondition(lambda self: self._alive())
    @rule(newest=st.booleans(), stage=st.sampled_from(STAGES), writes=st.integers(0, 4))
    def go_on(self, newest: bool, stage: str, writes: int) -> None:
        """The newest or the oldest agent goes on to a stage, if it is not past it, and some points further."""
        agent = self._alive()[-1 if newest else 0]
        while not agent.done and STAGES.index(agent.stage) < STAGES.index(stage):
            self._stepped(agent, agent.step)
        for _ in range(writes):
            if not agent.done:
                self._stepped(agent, agent.step)

    @precondition(lambda self: self._alive())
    @rule()
    def die(self) -> None:
        """The newest agent's process ends; its run is found and failed."""
        agent = self._alive()[-1]
        if agent is self.agents[-1]:
            self._stepped(agent, agent.kill)

    @precondition(lambda self: self._read().status is RunStatus.RUNNING)
    @rule()
    def fail(self) -> None:
        """Swept as dead, whether it is or not."""
        run = self._read()
        self.store.runs.fail_unowned(run.id, attempt=run.attempt, owner=run.owner, reason="swept")

    @precondition(
        lambda self: self._read().status is RunStatus.FAILED and self._read().attempt < ATTEMPTS_AT_MOST
    )
    @rule()
    def resume(self) -> None:
        try:
            resume_run(self.store, self.run.id)
        except ResumeRefused:
            # Nothing was saved yet: the next attempt begins where a platform's own retry would.
            self.store.runs.resume(self.run.id, attempt=self._read().attempt)

    @precondition(
        lambda self: self._read().status in (RunStatus.PENDING, RunStatus.RUNNING) and len(self.agents) > 1
    )
    @rule()
    def cancel(self) -> None:
        cancel_run(self.store, self.run.id, drop_vectors=lambda _: None)

    @precondition(
        lambda self: self._read().status is RunStatus.RUNNING and self._read().attempt < ATTEMPTS_AT_MOST
    )
    @rule(stage=st.sampled_from(STAGES), writes=st.integers(0, 4), further=st.booleans())
    def overtake(self, stage: str, writes: int, further: bool) -> None:
        """The newest agent is taken for dead wherever it is, and the next attempt starts beside it."""
        if self._alive():
            self.go_on(newest=True, stage=stage, writes=writes)
        if self._read().status is not RunStatus.RUNNING:
            return
        self.fail()
        self.resume()
        self.claim()
        if further:
            self.go_on(newest=True, stage=STAGES[-1], writes=1)

    @rule()
    def nothing(self) -> None:
        """Time passes; always possible."""

    @invariant()
    def at_most_one_result_is_named_by_the_run(self) -> None:
        run = self._read()
        if run.status is RunStatus.COMPLETED:
            assert run.discovery_id in [result.id for result in self.store.discoveries.of_run(run.id)]

    def teardown(self) -> None:
        """Everybody goes on to the end, the newest first; what was not cancelled is completed by one more attempt."""
        for agent in reversed(self._alive()):
            self._drain(agent)
        if self._read().status in (RunStatus.RUNNING, RunStatus.FAILED):
            if self._read().status is RunStatus.RUNNING:
                self.fail()
            self.resume()
        if self._read().status is RunStatus.PENDING:
            self.claim()
            self._drain(self.agents[-1])
        run = self._read()
        results = self.store.database[names.DISCOVERIES].find({"run_id": run.id}).to_list()
        if run.status is RunStatus.CANCELLED:
            cancel_run(self.store, run.id, drop_vectors=lambda _: None)
            died = {agent.attempt for agent in self.agents if agent.killed}
            # Who dies between saving and learning of the cancel cannot take its result back.
            assert {row["attempt"] for row in results if row["attempt"] == run.attempt} <= died
        else:
            assert run.status is RunStatus.COMPLETED
            assert [str(row["_id"]) for row in results] == [run.discovery_id]
            logs = self.store.database[names.EXPLORATION_LOG].distinct("discovery_id", {"run_id": run.id})
            assert logs == [run.discovery_id]
        self._strays(run)
        self.store.projects.delete(run.project_id)

    def _strays(self, run: DiscoveryRun) -> None:
        """What is left of the checkpoints: nothing, but for a row of each attempt that was overtaken on its way, and those of
        one that died between its last word and its tidying.
        """
        left = [row.attempt for row in self.store.checkpoints.steps(run.id)]
        died = {agent.attempt for agent in self.agents if agent.killed}
        if run.status is RunStatus.CANCELLED:
            assert left == []
        for attempt in set(left) - died if run.attempt not in died else ():
            assert attempt < run.attempt
            assert left.count(attempt) == 1

    def _drain(self, agent: Agent) -> None:
        while not agent.done:
            self._stepped(agent, agent.step)


@pytest.fixture
def machine(store: Store, monkeypatch: pytest.MonkeyPatch) -> type[Machine]:
    monkeypatch.setattr(fence_module, "reach", _reach)
    return type("BoundMachine", (Machine,), {"store": store})


def test_attempt_overtaken_at_any_write_leaves_the_newer_ones_result_alone(machine: type[Machine]) -> None:
    """Every place at which an agent can be overtaken by one that runs to its end before it goes on itself."""
    for writes in range(POINTS_AT_MOST):
        one = machine()
        one.claim()
        one.overtake(stage=STAGES[0], writes=writes, further=True)
        overtaken = len(one.agents) > 1
        one.teardown()
        if not overtaken:
            return
    raise AssertionError("the agent has more points than were tried")


def test_no_attempt_touches_a_newer_one_and_one_result_survives(machine: type[Machine]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            phases=[
                Phase.explicit,
                Phase.generate,
            ],  # a shrunk example is not worth the minutes it takes here
            database=None,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
