"""Stored projects and feedback, as a person uses them: applied, explored, judged, explored again, removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from assay_agent.cli.program import execute
from assay_agent.settings import AgentSettings
from assay_agent.stores import open_for_reading
from tests.integration.discovery import A_RECOMMENDATION, WHOLE, an_insight, insights, orders, recommendations


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mongo_uri: str) -> Path:
    """A folder with a warehouse and the file of a project whose model answers by script."""
    monkeypatch.chdir(tmp_path)
    for name in ("QDRANT_URL", "ASSAY_DOMAIN_PACKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MONGODB_URI", mongo_uri)
    monkeypatch.setenv("MONGODB_DB", f"test_{uuid4().hex[:12]}")
    orders(tmp_path / "orders.duckdb")
    replies = {
        **WHOLE,
        "analysis": [insights(an_insight())],
        "recommendations": [recommendations(A_RECOMMENDATION)],
    }
    (tmp_path / "script.json").write_text(json.dumps(replies), encoding="utf-8")
    written(tmp_path)
    return tmp_path


def written(place: Path, **fields: Any) -> None:
    document = {
        "id": "our-shop",
        "name": "Our shop",
        "datasources": [
            {"id": "default", "provider": "duckdb", "config": {"path": str(place / "orders.duckdb")}}
        ],
        "llm": {
            "provider": "scripted",
            "config": {"script": str(place / "script.json"), "repeat_last": True},
        },
        **fields,
    }
    kept = {name: value for name, value in document.items() if value is not None}
    (place / "project.yaml").write_text(yaml.safe_dump(kept), encoding="utf-8")


def output(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert execute(list(arguments)) == code, capsys.readouterr().err
    told = capsys.readouterr()
    return told.out if code == 0 else told.err


def test_applying_says_what_it_did_and_takes_back_what_is_not_said(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(place, prompts={"exploration": "Mine: {{DATASET}} {{SCHEMA_INFO}} {{ANALYSIS_AREAS}}"})
    assert output(capsys, "project", "apply", "project.yaml").startswith("project our-shop created")
    assert output(capsys, "project", "apply", "project.yaml") == "project our-shop is unchanged\n"
    written(place, description="Sells things")
    assert output(capsys, "project", "apply", "project.yaml").startswith("project our-shop changed")
    shown = yaml.safe_load(output(capsys, "project", "show", "our-shop"))
    assert (shown["description"], shown["domain"], shown["category"]) == (
        "Sells things",
        "generic",
        "tabular",
    )
    assert "prompts" not in shown
    listed = json.loads(output(capsys, "project", "list", "--json"))
    assert [(row["id"], row["status"]) for row in listed] == [("our-shop", {"state": "never run"})]
    assert "never run" in output(capsys, "project", "list")


def test_project_of_a_cluster_s_namespace_stays_there(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "created" in output(capsys, "project", "apply", "project.yaml", "--namespace", "team-a")
    assert '"namespace": "team-a"' in output(capsys, "project", "show", "our-shop", "--json")
    written(place, name="Another name")
    assert "changed" in output(capsys, "project", "apply", "project.yaml")
    assert '"namespace": "team-a"' in output(capsys, "project", "show", "our-shop", "--json")
    said = output(capsys, "project", "apply", "project.yaml", "--namespace", "team-b", code=10)
    assert "the project belongs to namespace team-a" in said
    said = output(capsys, "project", "apply", "project.yaml", "--namespace", "Team B", code=10)
    assert said.count("\n") == 1
    assert "--namespace must be a namespace's name" in said


def test_stored_project_is_explored_judged_and_explored_again(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output(capsys, "project", "apply", "project.yaml")
    output(capsys, "run", "--project", "our-shop", "--quiet", "--areas", "data_quality", "--max-steps", "9")
    [run] = json.loads(output(capsys, "runs", "--json"))
    run_id = run["id"][:8]
    disliked = ("feedback", run_id, "data_quality-1", "dislike", "--comment", "known: guests\nhave none")
    assert output(capsys, *disliked) == "dislike: data_quality-1, 20.0% of orders have no amount\n"
    assert output(capsys, "feedback", run_id, "recommendation-1", "like").startswith("like: recommendation-1")
    assert "step 2: a look at quality" in output(capsys, "feedback", run_id, "step-2", "like")
    output(capsys, "run", "--project", "our-shop", "--quiet", "--areas", "data_quality", "--max-steps", "9")
    prompt = newest_prompt(place)
    avoid, monitor = prompt.index("AVOID similar"), prompt.index("MONITOR for changes")
    assert (
        '- 20.0% of orders have no amount (a person said: "known: guests have none")' in prompt[avoid:monitor]
    )
    assert "- Fill the amounts" in prompt[monitor:]
    assert "- step 2: a look at quality and trend" in prompt[monitor:]
    state = json.loads(output(capsys, "project", "show", "our-shop", "--json"))["status"]
    assert state["state"] == "completed"
    assert output(capsys, "feedback", run_id, "data_quality-1", "like").startswith("like:")
    refused = output(capsys, "project", "delete", "our-shop", code=10)
    assert "say --yes" in refused
    assert output(capsys, "project", "delete", "our-shop", "--yes") == "project our-shop removed\n"
    assert json.loads(output(capsys, "runs", "--json")) == []
    assert "there is no project 'our-shop'; stored: none" in output(
        capsys, "project", "show", "our-shop", code=10
    )


def newest_prompt(place: Path) -> str:
    with open_for_reading(home=place / ".assay", settings=AgentSettings.load()) as stores:
        discovery = stores.store.discoveries.recent("our-shop", 1)[0]
        return stores.store.discoveries.logs(discovery.id).analysis[0].prompt


def test_a_failed_run_is_the_projects_last(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(place, llm={"provider": "scripted", "config": {"replies": {"exploration": []}}})
    output(capsys, "project", "apply", "project.yaml")
    output(capsys, "run", "--project", "our-shop", "--quiet", code=10)
    assert "failed, last run 20" in output(capsys, "project", "list")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"id": None}, "id must be 1 to 64 letters"),
        ({"id": "no spaces"}, "not 'no spaces'"),
        ({"last_run_status": "completed"}, "last_run_status is recorded by runs"),
        ({"datasource": []}, "unknown key datasource; known:"),
        ({"datasources": None}, "has no datasource"),
        ({"datasources": [{"provider": "oracle"}]}, "datasources[].provider is 'oracle', must be one of:"),
        (
            {"datasources": [{"provider": "duckdb"}, {"provider": "duckdb"}]},
            "datasources: the id 'default' is used twice",
        ),
        (
            {"datasources": [{"provider": "postgres", "config": {"password": "hunter2"}}]},
            "datasource default: config.password would store a secret",
        ),
        (
            {"llm": {"provider": "scripted", "config": {"api_key": "hunter2"}}},
            "llm: config.api_key would store a secret; give it as the secret llm-api-key",
        ),
        ({"domain": "gaming"}, "category is missing; pack gaming has match3, idle, casual"),
        ({"domain": "shop"}, "domain pack 'shop' not found"),
        (
            {"domain": "ecommerce", "profile": {"kpi": {}}},
            "profile.kpi is unknown; did you mean kpis? known:",
        ),
    ],
)
def test_wrong_project_is_refused_on_one_line_before_a_store_is_started(
    place: Path, capsys: pytest.CaptureFixture[str], fields: dict[str, Any], says: str
) -> None:
    written(place, **fields)
    said = output(capsys, "project", "apply", "project.yaml", code=10)
    assert says in said
    assert len(said.splitlines()) == 1
    assert "hunter2" not in said
    assert fields.get("domain") == "shop" or not (place / ".assay").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--project", "nobody", "--quiet"], "there is no project 'nobody'; stored: our-shop"),
        (["run", "orders.duckdb", "--project", "our-shop", "--quiet"], "without SOURCE here"),
        (["run", "--project", "our-shop", "--pack", "gaming", "--quiet"], "without --pack here"),
        (["project", "delete", "nobody", "--yes"], "stored: our-shop"),
        (["project", "list", "--limit", "0"], "--limit must be from 1 to 1000"),
        (["feedback", "zzzz", "churn-1", "like"], "no run has an id"),
        (["feedback", "zzzz", "churn-1", "maybe"], "maybe"),
        (["feedback", "zzzz", "churn-1", "like", "--comment", "x" * 2_000], "at most 1000 are kept"),
    ],
)
def test_bad_input_is_one_line_and_exit_ten(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    if "our-shop" in says:
        output(capsys, "project", "apply", "project.yaml")
    said = output(capsys, *arguments, code=10)
    assert says in said
    assert len([line for line in said.splitlines() if line.startswith("error:")]) == 1


def test_target_that_is_not_there_names_those_that_are(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output(capsys, "project", "apply", "project.yaml")
    output(capsys, "run", "--project", "our-shop", "--quiet", "--areas", "data_quality", "--max-steps", "9")
    [run] = json.loads(output(capsys, "runs", "--json"))
    said = output(capsys, "feedback", run["id"], "churn-1", "like", code=10)
    assert "it has data_quality-1, recommendation-1, and step-N" in said
