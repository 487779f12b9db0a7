"""What the model sees after a resume is byte for byte what it would have seen in an undisturbed run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from assay_agent.context import RunContext
from assay_agent.discovery.explore import explore
from assay_agent.discovery.recall import Previous
from assay_agent.llm.scripted import ScriptedLlm
from assay_agent.ports import CompletionRequest
from assay_core import clock
from assay_core.errors import StopRequested
from assay_core.model.run import RunStatus
from assay_core.store.client import Store
from assay_core.store.control import resume_run
from assay_core.store.fence import Fence, FencedRun
from tests.bench.steps import InstantWarehouse, a_context, a_result, a_schema
from tests.builders import a_run

PREVIOUS = Previous(text="", discoveries=0)
SQL = "SELECT count(*) AS c FROM main.flights"
TURNS: list[dict[str, Any]] = [
    {"lookup_schema": ["main.flights", "main.nowhere"]},
    {"query_purpose": "all of them", "query": SQL, "rationale": "first"},
    {"query_purpose": "refused", "query": "DROP TABLE main.flights"},
    {"done": True, "summary": "too early"},
    {"lookup_schema": ["main.flights"]},
    {"query_purpose": "again", "query": f"{SQL} WHERE c > 1"},
    {"search_tables": "late planes"},
    {"query_purpose": "nested", "query": f"SELECT * FROM ({SQL}) AS t"},
    {"done": True, "summary": "seen enough"},
]


def replies(turns: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(turn) for turn in turns]


def context(
    store: Store, run: Any, attempt: int, turns: list[dict[str, Any]], **fields: Any
) -> tuple[RunContext, ScriptedLlm]:
    store.runs.claim(run.id, attempt, f"owner-{attempt}")
    fenced = FencedRun(store, Fence(run.id, attempt, f"owner-{attempt}"))
    model = ScriptedLlm({"exploration": replies(turns), "sql_fix": ["```sql\n```"] * 20})
    ctx = replace(
        a_context(store, fenced, run, a_result(2)),
        model=model,
        attempt=attempt,
        max_steps=len(TURNS),
        min_steps=6,
        warehouses={"default": InstantWarehouse(a_result(2))},
        vectors=NoVectors(),  # type: ignore[arg-type]  # only searched
        **fields,
    )
    return ctx, model


class NoVectors:
    """Knows no table."""

    def search(self, *_: Any, **__: Any) -> list[Any]:
        return []


def asked(requests: list[CompletionRequest]) -> list[Any]:
    return [request.messages for request in requests if request.layer == "exploration"]


def new_run(store: Store) -> Any:
    run = a_run(started_at=clock.now(), updated_at=clock.now())
    store.runs.create(run)
    return run


@pytest.mark.parametrize("died_after", range(1, len(TURNS)))
def test_transcript_after_a_resume_equals_that_of_an_undisturbed_run(store: Store, died_after: int) -> None:
    calm, model = context(store, new_run(store), 1, TURNS)
    explore(calm, PREVIOUS, a_schema())
    calm.fenced.finish(status=RunStatus.COMPLETED)
    undisturbed = asked(model.requests)

    run = new_run(store)
    first, before = context(store, run, 1, TURNS)

    class Dies:
        def phase(self, name: str, *, percent: int, detail: str) -> None: ...
        def note(self, text: str) -> None: ...
        def step(self, row: Any, *, percent: int) -> None:
            if row.step_num == died_after:
                raise StopRequested(exit_code=143)

    with pytest.raises(StopRequested):
        explore(replace(first, progress=Dies()), PREVIOUS, a_schema())
    first.fenced.finish(status=RunStatus.FAILED, error="died")
    resumed = resume_run(store, run.id)
    second, after = context(store, resumed, 2, TURNS[died_after:], resume=True)
    explore(second, PREVIOUS, a_schema())
    assert asked(before.requests) + asked(after.requests) == undisturbed
