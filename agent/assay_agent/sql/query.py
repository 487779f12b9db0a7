"""One statement from proposal to rows: guard, confine, execute, and let the model repair what fails, within bounds.

Called by the explore phase and by the validators. Every call of the fixer leaves a `FixAttempt`, applied or not. What
is the statement's fault becomes `QueryRun.error`; what is the warehouse's (`TransientError`, `ConfigError`) is raised
after bounded tries, and is never blamed on the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from assay_agent.ports import Completion, Message, QueryLimits, QueryResult, Warehouse
from assay_agent.sql.confined import ConfinedWarehouse
from assay_agent.sql.guard import Guarded, check
from assay_agent.sql.repair import extract_sql, fix_messages
from assay_core.errors import ModelOutputError, ModelRefusal, QueryError, TransientError
from assay_core.model.step import FixAttempt

WAREHOUSE_TRIES = 3
BACKOFF_S = 1.0
"""Seconds before the second try of an unreachable warehouse; doubled after each."""
TIMEOUTS = 2
"""A query that ran into its time limit this often is not repaired further: each try costs the whole limit."""
IDENTICAL_STOP = 2

Complete = Callable[[tuple[Message, ...]], Completion]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRun:
    """What became of one proposed statement. Exactly one of `result` and `error` is set.

    `executed_sql` is the last statement that was sent (the guard's rendering), or the proposal when none passed.
    `fix_attempts` counts repairs that were applied; `fix_history` holds all. Tokens are None when no call reported any.
    """

    result: QueryResult | None
    executed_sql: str
    fix_history: tuple[FixAttempt, ...] = ()
    fix_attempts: int = 0
    error: str | None = None
    tables: tuple[str, ...] = ()
    tokens_in: int | None = None
    tokens_out: int | None = None


def run_query(
    *,
    warehouse: Warehouse,
    sql: str,
    limits: QueryLimits,
    repairs: int,
    complete: Complete,
    clock: Callable[[], datetime],
    step: int,
    schema_hint: Callable[[Sequence[str]], str],
    rationale: str = "",
    identical_stop: int = IDENTICAL_STOP,
    sleep: Callable[[float], None] = time.sleep,
) -> QueryRun:
    """Run `sql`, asking `complete` for at most `repairs` repairs. Raises what is not the statement's fault."""
    loop = _Loop(
        dialect=warehouse.dialect,
        gate=lambda statement: _admitted(warehouse, statement),
        complete=complete,
        clock=clock,
        step=step,
        schema_hint=schema_hint,
        rationale=rationale,
        repairs=repairs,
        identical_stop=identical_stop,
        failing=sql.strip(),
        executed=sql.strip(),
    )
    candidate = loop.admit(sql)
    while True:
        if candidate is not None:
            try:
                return loop.outcome(_execute(warehouse, candidate, limits=limits, sleep=sleep))
            except QueryError as error:
                loop.failed(candidate.sql, error)
        candidate = loop.repaired()
        if candidate is None:
            return loop.outcome(None)


def _admitted(warehouse: Warehouse, sql: str) -> Guarded:
    """The statement as it may run there: guarded, and of one tenant where the datasource shows one."""
    guarded = check(sql, dialect=warehouse.dialect)
    return warehouse.confined(guarded) if isinstance(warehouse, ConfinedWarehouse) else guarded


def _execute(
    warehouse: Warehouse, guarded: Guarded, *, limits: QueryLimits, sleep: Callable[[float], None]
) -> QueryResult:
    tries = 1
    while True:
        try:
            return warehouse.execute(guarded.sql, limits=limits)
        except TransientError as error:
            if tries >= WAREHOUSE_TRIES:
                raise
            sleep(error.retry_after_s or BACKOFF_S * 2 ** (tries - 1))
            tries += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What one call of the fixer came to: `guarded` may run; otherwise `problem` says why not."""

    reply: Completion | None = None
    proposal: str = ""
    guarded: Guarded | None = None
    problem: str = ""
    refused: QueryError | None = None
    stop: bool = False


@dataclass(slots=True, kw_only=True)
class _Loop:
    """The state of one run: the statement that fails now, why, and everything tried before."""

    dialect: str
    gate: Callable[[str], Guarded]
    complete: Complete
    clock: Callable[[], datetime]
    step: int
    schema_hint: Callable[[Sequence[str]], str]
    rationale: str
    repairs: int
    identical_stop: int
    failing: str
    executed: str
    error: str = ""
    tables: tuple[str, ...] = ()
    applied: int = 0
    timeouts: int = 0
    stopped: bool = False
    history: list[FixAttempt] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)

    def admit(self, sql: str) -> Guarded | None:
        """The gates' word on the first proposal."""
        self.seen[_squashed(sql)] = 1
        try:
            guarded = self.gate(sql)
        except QueryError as error:
            self.failed(sql, error)
            return None
        self._accept(guarded)
        return guarded

    def failed(self, sql: str, error: QueryError) -> None:
        if self.error:
            self.failures.append((self.failing, self.error))
        self.failing, self.error = sql.strip(), str(error)
        self.timeouts += error.kind == "timeout"

    def repaired(self) -> Guarded | None:
        """The next statement worth running, or None when the bounds are met."""
        while not self.stopped and self.timeouts < TIMEOUTS and len(self.history) < self.repairs:
            reading = self._ask()
            if reading.refused is not None:
                self.failed(reading.proposal, reading.refused)
            self.stopped = reading.stop
            if reading.guarded is not None and not self.stopped:
                self.applied += 1
                self._accept(reading.guarded)
                return reading.guarded
        return None

    def outcome(self, result: QueryResult | None) -> QueryRun:
        counted_in = [fix.input_tokens for fix in self.history if fix.input_tokens is not None]
        counted_out = [fix.output_tokens for fix in self.history if fix.output_tokens is not None]
        return QueryRun(
            result=result,
            executed_sql=self.executed,
            fix_history=tuple(self.history),
            fix_attempts=self.applied,
            error=None if result is not None else self.error,
            tables=self.tables,
            tokens_in=sum(counted_in) if counted_in else None,
            tokens_out=sum(counted_out) if counted_out else None,
        )

    def _accept(self, guarded: Guarded) -> None:
        self.executed, self.tables = guarded.sql, guarded.tables
        if guarded.sql not in self.seen:
            self.seen[_squashed(guarded.sql)] = 1

    def _ask(self) -> _Reading:
        """One call of the fixer, recorded."""
        messages = fix_messages(
            dialect=self.dialect,
            sql=self.failing,
            error=self.error,
            tables=self.schema_hint(self.tables),
            rationale=self.rationale,
            earlier=self.failures,
        )
        started = self.clock()
        try:
            reading = self._read(self.complete(messages))
        except TransientError as error:
            self.error += f"\n(not repaired: the model was not reachable: {error})"
            reading = _Reading(problem=f"the model was not reachable: {error}", stop=True)
        except ModelRefusal as error:
            reading = _Reading(problem=f"the model declined to repair: {error}", stop=True)
        except ModelOutputError as error:
            reading = _Reading(problem=f"the model's reply could not be used: {error}")
        reply = reading.reply
        self.history.append(
            FixAttempt(
                step=self.step,
                attempt=len(self.history),
                prompt_in=messages[0].content,
                response_out=(reply.text or reply.reasoning) if reply else "",
                sql_before=self.failing,
                sql_after=reading.proposal,
                error_in=self.error,
                fixer_error=reading.problem,
                input_tokens=reply.usage.input_tokens if reply else None,
                output_tokens=reply.usage.output_tokens if reply else None,
                duration_ms=max(0, int((self.clock() - started).total_seconds() * 1000)),
                timestamp=started,
            )
        )
        return reading

    def _read(self, reply: Completion) -> _Reading:
        if reply.finish == "refusal":
            return _Reading(reply=reply, problem="the model declined to repair", stop=True)
        if reply.finish == "length":
            return _Reading(reply=reply, problem="the reply was cut at its length limit")
        proposal = extract_sql(reply.text or reply.reasoning)
        if proposal is None:
            return _Reading(reply=reply, problem="the reply holds no statement")
        key = _squashed(proposal)
        times = self.seen[key] = self.seen.get(key, 0) + 1
        if times > 1:
            problem, stop = "this statement was tried before", times > self.identical_stop
            return _Reading(reply=reply, proposal=proposal, problem=problem, stop=stop)
        try:
            guarded = self.gate(proposal)
        except QueryError as error:
            return _Reading(reply=reply, proposal=proposal, problem=str(error), refused=error)
        return _Reading(reply=reply, proposal=proposal, guarded=guarded)


def _squashed(sql: str) -> str:
    return " ".join(sql.split()).rstrip("; ")
