"""Guard, execute, repair: on a real SQLite file, with a model that answers by script."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay_agent.adapters.sqlite import open_warehouse
from assay_agent.ports import (
    Completion,
    Message,
    QueryLimits,
    QueryResult,
    Usage,
    Warehouse,
    WarehouseSettings,
)
from assay_agent.sql.query import QueryRun, run_query
from assay_agent.sql.repair import extract_sql, fix_messages
from assay_core.errors import BudgetExhausted, ModelOutputError, ModelRefusal, QueryError, TransientError

LIMITS = QueryLimits(rows=10, cell_chars=100, result_bytes=10_000, timeout_s=5)
START = datetime(2020, 1, 1, tzinfo=UTC)


class Script:
    """A model that gives its lines in order, and keeps what it was asked."""

    def __init__(self, *lines: str | Completion | BaseException) -> None:
        self.lines = list(lines)
        self.asked: list[tuple[Message, ...]] = []

    def __call__(self, messages: tuple[Message, ...]) -> Completion:
        self.asked.append(messages)
        line = self.lines.pop(0)
        if isinstance(line, BaseException):
            raise line
        if isinstance(line, Completion):
            return line
        return Completion(text=line, usage=Usage(input_tokens=100, output_tokens=10))


class Flaky:
    """A warehouse that fails a number of times before it answers as the real one does."""

    def __init__(self, real: Warehouse, *errors: Exception) -> None:
        self._real = real
        self._errors = list(errors)
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, sql: str, *, limits: QueryLimits) -> QueryResult:
        self.calls += 1
        if self._errors:
            raise self._errors.pop(0)
        return self._real.execute(sql, limits=limits)


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    path = tmp_path / "data.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE flights (id INTEGER, carrier TEXT)")
    connection.execute("INSERT INTO flights VALUES (1, 'AA'), (2, 'UA')")
    connection.commit()
    connection.close()
    opened = open_warehouse(
        WarehouseSettings(datasource_id="d", provider="sqlite", config={"path": str(path)})
    )
    yield opened
    opened.close()


def run(
    warehouse: Any,
    sql: str,
    script: Callable[[tuple[Message, ...]], Completion],
    *,
    repairs: int = 5,
    slept: list[float] | None = None,
) -> QueryRun:
    ticks = iter(range(10_000))
    return run_query(
        warehouse=warehouse,
        sql=sql,
        limits=LIMITS,
        repairs=repairs,
        complete=script,
        clock=lambda: START + timedelta(seconds=next(ticks)),
        step=4,
        schema_hint=_hint,
        rationale="count the flights",
        sleep=(slept if slept is not None else []).append,
    )


def _hint(tables: Sequence[str]) -> str:
    return f"hint for {','.join(tables)}"


def test_a_good_statement_runs_without_the_model(warehouse: Warehouse) -> None:
    ran = run(warehouse, "select count(*) from flights;", Script())
    assert ran.result is not None
    assert ran.result.rows == ((2,),)
    assert (ran.error, ran.fix_attempts, ran.fix_history, ran.tokens_in) == (None, 0, (), None)
    assert ran.executed_sql == "SELECT COUNT(*) FROM flights"
    assert ran.tables == ("flights",)


def test_a_failing_statement_is_repaired_and_recorded(warehouse: Warehouse) -> None:
    script = Script("```sql\nSELECT carrier FROM flights ORDER BY 1\n```")
    ran = run(warehouse, "SELECT carier FROM flights", script)
    assert ran.result is not None
    assert [row[0] for row in ran.result.rows] == ["AA", "UA"]
    assert (ran.fix_attempts, ran.error, ran.tokens_in, ran.tokens_out) == (1, None, 100, 10)
    (fix,) = ran.fix_history
    assert (fix.step, fix.attempt, fix.fixer_error) == (4, 0, "")
    assert fix.sql_before == "SELECT carier FROM flights"
    assert fix.sql_after == "SELECT carrier FROM flights ORDER BY 1"
    assert "carier" in fix.error_in
    assert fix.response_out.startswith("```sql")
    assert fix.duration_ms == 1000
    assert fix.prompt_in == script.asked[0][0].content
    for part in ("no such column: carier", "hint for flights", "count the flights", "SQLite"):
        assert part in fix.prompt_in


def test_a_refused_statement_is_repaired_too_and_never_runs(warehouse: Warehouse) -> None:
    flaky = Flaky(warehouse)
    script = Script("```sql\nDELETE FROM flights\n```", "SELECT count(*) FROM flights")
    ran = run(flaky, "DROP TABLE flights", script)
    assert ran.result is not None
    assert flaky.calls == 1
    assert [fix.fixer_error.split(":")[0] for fix in ran.fix_history] == ["Refused before execution", ""]
    assert [fix.attempt for fix in ran.fix_history] == [0, 1]
    assert ran.fix_attempts == 1
    assert "DELETE" in script.asked[1][0].content


def test_repairs_are_bounded_and_the_last_error_stands(warehouse: Warehouse) -> None:
    script = Script(*(f"SELECT nope{n} FROM flights" for n in range(9)))
    ran = run(warehouse, "SELECT nope FROM flights", script, repairs=3)
    assert ran.result is None
    assert (ran.fix_attempts, len(ran.fix_history), len(script.asked)) == (3, 3, 3)
    assert ran.error is not None
    assert "nope2" in ran.error
    assert ran.executed_sql == "SELECT nope2 FROM flights"
    assert "nope0" in script.asked[2][0].content


def test_no_repairs_means_no_model(warehouse: Warehouse) -> None:
    ran = run(warehouse, "SELECT nope", Script(), repairs=0)
    assert ran.error is not None
    assert ran.fix_history == ()


def test_the_same_statement_twice_ends_the_repair(warehouse: Warehouse) -> None:
    same = "SELECT nope FROM flights"
    flaky = Flaky(warehouse)
    ran = run(flaky, same, Script(same, f"  {same} ;", "SELECT 1"))
    assert flaky.calls == 1
    assert ran.result is None
    assert [fix.fixer_error for fix in ran.fix_history] == ["this statement was tried before"] * 2
    assert ran.fix_attempts == 0


def test_a_reply_without_statement_counts_as_a_try(warehouse: Warehouse) -> None:
    cut = Completion(text="```sql\nSELECT 1", finish="length")
    ran = run(
        warehouse,
        "SELECT nope",
        Script("I am sorry.", cut, ModelOutputError("empty reply"), "SELECT 1"),
        repairs=5,
    )
    assert ran.result is not None
    assert [bool(fix.fixer_error) for fix in ran.fix_history] == [True, True, True, False]
    assert ran.fix_history[1].sql_after == ""
    assert ran.fix_attempts == 1


def test_a_refusing_model_is_not_asked_again(warehouse: Warehouse) -> None:
    for refusal in (ModelRefusal("no"), Completion(text="", finish="refusal")):
        script = Script(refusal)
        ran = run(warehouse, "SELECT nope", script)
        assert ran.result is None
        assert len(ran.fix_history) == 1
        assert "declined" in ran.fix_history[0].fixer_error


def test_an_unreachable_model_ends_the_step_and_is_not_blamed_on_the_statement(warehouse: Warehouse) -> None:
    ran = run(warehouse, "SELECT nope", Script(TransientError("connection refused", dependency="model")))
    assert ran.result is None
    assert ran.error is not None
    assert "the model was not reachable" in ran.error
    assert ran.fix_history[0].fixer_error == "the model was not reachable: connection refused"


def test_an_unreachable_warehouse_is_tried_three_times_and_then_raised(warehouse: Warehouse) -> None:
    down = [TransientError("down", dependency="warehouse") for _ in range(5)]
    slept: list[float] = []
    ran = run(Flaky(warehouse, *down[:2]), "SELECT 1", Script(), slept=slept)
    assert ran.result is not None
    assert slept == [1.0, 2.0]
    flaky = Flaky(warehouse, *down)
    with pytest.raises(TransientError, match="down"):
        run(flaky, "SELECT 1", Script())
    assert flaky.calls == 3


def test_a_second_timeout_ends_the_repair(warehouse: Warehouse) -> None:
    slow = [QueryError("stopped after 5 s", kind="timeout") for _ in range(5)]
    ran = run(Flaky(warehouse, *slow), "SELECT 1", Script("SELECT 2", "SELECT 3", "SELECT 4"))
    assert ran.result is None
    assert ran.fix_attempts == 1
    assert ran.error == "stopped after 5 s"


def test_a_used_up_budget_is_the_pipelines_business(warehouse: Warehouse) -> None:
    with pytest.raises(BudgetExhausted):
        run(warehouse, "SELECT nope", Script(BudgetExhausted("no tokens left")))


@pytest.mark.parametrize(
    ("reply", "sql"),
    [
        ("```sql\nSELECT 1\n```", "SELECT 1"),
        ("Wrong was:\n```sql\nSELECT a\n```\nRight is:\n```sql\nSELECT b\n```", "SELECT b"),
        ("```SQL\nSELECT 1;\n```", "SELECT 1;"),
        ("```postgresql\nSELECT 1\n```", "SELECT 1"),
        ("```python\n1\n```\n```googlesql\nSELECT 1\n```", "SELECT 1"),
        ("```\nWITH a AS (SELECT 1) SELECT * FROM a\n```", "WITH a AS (SELECT 1) SELECT * FROM a"),
        ("```python\nprint('select')\n```\n```\nSELECT 2\n```", "SELECT 2"),
        ('```json\n{"fixed_sql": "SELECT 3"}\n```', "SELECT 3"),
        ('{"query": "SELECT 4", "rationale": "x"}', "SELECT 4"),
        ('Here: {"sql": "SELECT\n5"}', "SELECT\n5"),
        ("SELECT 6 FROM t", "SELECT 6 FROM t"),
        ("  with a as (select 1) select * from a", "with a as (select 1) select * from a"),
        ("-- fixed\nSELECT 7", "-- fixed\nSELECT 7"),
        ("(SELECT 8)", "(SELECT 8)"),
        ("FROM t SELECT 9", "FROM t SELECT 9"),
        ("<think>maybe ```sql\nSELECT 0\n```</think>SELECT 10", "SELECT 10"),
        ("it should be SELECT 0 </think>\nSELECT 11", "SELECT 11"),
        ("```sql\nSELECT 12", "SELECT 12"),
        ("Selecting the right column would help.", None),
        ("I cannot do that.", None),
        ("", None),
        ("```sql\n```", None),
        ("{}", None),
        ('{"query": 5}', None),
    ],
)
def test_the_statement_is_found_in_any_usual_reply(reply: str, sql: str | None) -> None:
    assert extract_sql(reply) == sql


def test_the_fix_prompt_is_the_same_for_the_same_facts_and_bounded() -> None:
    def ask() -> str:
        return fix_messages(
            dialect="duckdb",
            sql="SELECT x" * 10_000,
            error="bad {{SQL}} " * 1_000,
            tables="main.t(a INTEGER)",
            rationale="",
            earlier=[(f"SELECT {n}", f"error {n}") for n in range(9)],
        )[0].content

    assert ask() == ask()
    assert len(ask()) < 30_000
    assert "bad {{SQL}}" in ask()
    assert "SELECT 8" in ask()
    assert "SELECT 5`" not in ask()
