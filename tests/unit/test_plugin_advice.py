"""`kubectl assay why` has an answer to every reason that the operator can give, and only commands that exist."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, get_args

import pytest

import assay_operator
from assay_core.errors import ResumeRefusal
from assay_operator.decide import HoldReason
from assay_operator.endings import CONTRACT
from assay_operator.findings import FailureClass
from assay_operator.plugin.advice import ADVICE, BY_CLASS
from assay_operator.plugin.explain import explain
from assay_operator.plugin.main import parser
from assay_operator.resource import Phase

SOURCES = Path(assay_operator.__file__).parent
_JUDGES = {"failed": 2, "stalled": 2, "fault": 1}
"""The position of the reason in a call of each."""


def named_in_calls() -> set[str]:
    found = set()
    for path in SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _JUDGES:
                at = _JUDGES[node.func.id]
                if len(node.args) > at and isinstance(reason := node.args[at], ast.Constant):
                    found.add(str(reason.value))
    return found


def test_every_reason_has_an_advice_of_its_own() -> None:
    in_calls = named_in_calls()
    assert {"OOMKilled", "QuotaExceeded", "NameConflict"} <= in_calls
    reasons = (
        in_calls
        | {reason for _, reason in CONTRACT.values()}
        | (set(get_args(HoldReason)) - {"AttemptRunning"})
        | {one.value for one in ResumeRefusal}
        | {one.value for one in Phase if one is not Phase.FAILED}
    )
    assert reasons - set(ADVICE) == set()
    assert set(BY_CLASS) == set(FailureClass)


def status_of(reason: str) -> dict[str, Any]:
    return {
        "phase": "Failed",
        "reason": reason,
        "attempt": 2,
        "message": "what the cluster said",
        "conditions": [{"type": "Resumable", "status": "True", "reason": "CheckpointFound"}],
        "progress": {"step": 7},
    }


def body(status: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "shop", "namespace": "team"}, "status": status}


@pytest.mark.parametrize("reason", sorted(ADVICE))
def test_commands_it_advises_can_be_typed(reason: str) -> None:
    text = explain(body(status_of(reason)))
    assert "it says:    what the cluster said" in text
    assert "{" not in text.replace('{"spec"', "").replace("{.spec", "").replace(':{"', "")
    for line in text.splitlines():
        command = line.removeprefix("type:").strip()
        if command.startswith("kubectl assay "):
            parsed = parser().parse_args(command.removeprefix("kubectl assay ").split())
            assert parsed.namespace == "team"


def test_failed_run_says_whose_turn_it_is_and_where_it_would_go_on() -> None:
    status = {**status_of("OOMKilled"), "failure": {"class": "Resource", "actor": "User"}}
    assert explain(body(status)).splitlines() == [
        "shop: Failed, OOMKilled: the agent needs more memory than podPatch.resources lets it have.",
        "it says:    what the cluster said",
        "resumable:  yes, after step 7",
        "whose turn: you",
        "type:       apply another DiscoveryRun with that mended, then: kubectl assay purge shop -n team",
        "            kubectl assay resume shop -n team",
    ]


def test_resume_is_not_advised_where_it_would_be_refused() -> None:
    status = status_of("OOMKilled")
    status["conditions"] = [
        {"type": "Resumable", "status": "False", "reason": "Expired", "message": "too old"}
    ]
    text = explain(body(status))
    assert "resumable:  no: too old" in text
    assert "assay resume" not in text


def test_reason_that_nobody_knows_is_explained_by_its_class() -> None:
    status = {**status_of("ExitCode3"), "failure": {"class": "Agent", "actor": "User"}}
    assert explain(body(status)).startswith("shop: Failed, ExitCode3: the agent failed.")
    assert "nobody saw how it ended" in explain(body(status_of("SomethingNew")))


def test_run_that_no_operator_has_seen_says_so() -> None:
    assert explain(body({})).startswith("shop: no operator has seen it yet.")
