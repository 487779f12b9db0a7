"""`assay` as a person uses it: the real command line, embedded stores, files on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assay_agent.cli.configuration import read_config
from assay_agent.cli.execution import DEFAULT_STEPS
from assay_agent.cli.program import execute
from assay_core.errors import ConfigError
from assay_core.model.project import Project
from assay_core.model.written import unknown_key
from tests.integration.discovery import DONE, WHOLE, an_insight, insights, orders, query

ASSAY = [sys.executable, "-c", "from assay_agent.cli import main; main()"]
LIMIT_S = 90


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a warehouse and a config whose model answers by script."""
    monkeypatch.chdir(tmp_path)
    for name in ("MONGODB_URI", "QDRANT_URL"):
        monkeypatch.delenv(name, raising=False)
    orders(tmp_path / "orders.duckdb")
    script(tmp_path, {**WHOLE, "analysis": [insights(an_insight())]})
    return tmp_path


def script(place: Path, replies: dict[str, Any]) -> None:
    (place / "script.json").write_text(json.dumps(replies), encoding="utf-8")
    config = {
        "llm": {"provider": "scripted", "config": {"script": str(place / "script.json"), "repeat_last": True}}
    }
    (place / "assay.yaml").write_text(json.dumps(config), encoding="utf-8")


def assay(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ASSAY, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, **environment},
        check=False,
    )


def errors(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("error:")]


def test_run_then_runs_show_and_report(place: Path) -> None:
    ran = assay("run", "orders.duckdb", "--config", "assay.yaml", "--max-steps", "9", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    assert "20.0% of orders have no amount" in ran.stdout
    assert "stores:" in ran.stderr
    document = json.loads((place / "out" / "discovery.json").read_text(encoding="utf-8"))
    assert len(document["_id"] if "_id" in document else document["id"]) == 24
    assert document["run_type"] == "full"
    assert document["discovery_date"].endswith("Z")
    assert "20.0% of orders have no amount" in (place / "out" / "report.html").read_text(encoding="utf-8")
    listed = json.loads(assay("runs", "--json").stdout)
    assert [run["status"] for run in listed] == ["completed"]
    assert "1 finding from 2 queries" in ran.stdout
    assert "1 insight from" in ran.stderr
    table = [line.split() for line in assay("runs").stdout.splitlines()]
    # A lookup and the last word of the model are steps too.
    assert dict(zip(table[0][-3:], table[1][-2:], strict=False)) == {"STEPS": "4", "FINDINGS": "1"}
    shown = assay("show")
    assert "20.0% of orders have no amount" in shown.stdout
    again = assay("report", listed[0]["id"][:8], "--out", "again")
    assert again.returncode == 0, again.stderr
    assert (place / "again" / "report.html").is_file()


def test_columns_that_nobody_looked_at_are_counted_beside_the_findings(place: Path) -> None:
    with duckdb.connect(str(place / "wide.duckdb")) as connection:
        columns = ", ".join(f"(i * {n + 1}) % 97 AS c{n}" for n in range(120))
        connection.execute(f"CREATE TABLE wide AS SELECT {columns} FROM range(200) t(i)")
    ran = assay("run", "wide.duckdb", "--out", "out", "--max-steps", "200")
    assert ran.returncode == 0, ran.stderr
    said = "70 of 120 columns of the tables looked up were not looked at: a lookup shows the first 50 columns of a table"
    assert said in ran.stdout
    assert said in (place / "out" / "report.html").read_text(encoding="utf-8")
    document = json.loads((place / "out" / "discovery.json").read_text(encoding="utf-8"))
    assert document["summary"]["limitations"] == [said]
    assert "the tables in reach were questioned, 70 columns were not looked at" in ran.stderr


def test_json_puts_the_document_alone_on_standard_output(place: Path) -> None:
    ran = assay("run", "orders.duckdb", "--config", "assay.yaml", "--json", "--quiet")
    assert json.loads(ran.stdout)["summary"]["total_insights"] >= 1


def test_interrupt_saves_the_steps_and_names_the_command_that_shows_them(place: Path) -> None:
    script(
        place,
        {
            "exploration": [
                query("SELECT count(*) FROM main.orders a, main.orders b, main.orders c, main.orders d")
            ]
        },
    )
    process = subprocess.Popen(
        [*ASSAY, "run", "orders.duckdb", "--config", "assay.yaml", "--max-steps", "10000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    seen = ""
    deadline = time.monotonic() + LIMIT_S
    while " rows, " not in seen and time.monotonic() < deadline:
        seen += process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    rest = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 130, seen + rest
    command = rest.strip().splitlines()[-1]
    assert command.startswith("stopped; its steps are saved: assay show ")
    shown = assay(*command.split("assay ")[1].split()[:2])
    assert "failed" in shown.stdout
    assert "a look at quality and trend" in shown.stdout


def test_resume_continues_a_killed_run_and_repeats_no_saved_query(place: Path) -> None:
    script(place, {"exploration": [query("SELECT count(*) FROM main.orders")]})
    process = subprocess.Popen(
        [
            *ASSAY,
            "run",
            "orders.duckdb",
            "--config",
            "assay.yaml",
            "--max-steps",
            "10000",
            "--areas",
            "data_quality",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    seen = ""
    while "  5  " not in seen:
        seen += process.stderr.readline()
    process.kill()
    process.communicate(timeout=LIMIT_S)
    script(place, {**WHOLE, "exploration": [DONE]})
    resumed = assay("resume")
    assert resumed.returncode == 0, resumed.stderr
    asked = [line for line in resumed.stderr.splitlines() if " rows, " in line]
    assert asked == []
    [run] = json.loads(assay("runs", "--json").stdout)
    assert (run["status"], run["attempt"]) == ("completed", 2)
    again = assay("resume")
    assert again.returncode == 10
    assert "is completed; only a failed run can be resumed" in errors(again.stderr)[0]


def killed_run(source: str) -> None:
    """A run of `source` that is killed after its third query."""
    process = subprocess.Popen(
        [*ASSAY, "run", source, "--config", "assay.yaml", "--max-steps", "10000", "--areas", "data_quality"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    seen = ""
    while "  3  " not in seen:
        seen += process.stderr.readline()
    process.kill()
    process.communicate(timeout=LIMIT_S)


@pytest.mark.parametrize("changed", [False, True])
def test_resume_says_that_the_source_has_changed_since(place: Path, changed: bool) -> None:
    script(place, {"exploration": [query("SELECT count(*) FROM main.orders")]})
    killed_run("orders.duckdb")
    if changed:
        with duckdb.connect(str(place / "orders.duckdb")) as connection:
            connection.execute("DELETE FROM orders WHERE order_id > 50")
    script(place, {**WHOLE, "exploration": [DONE], "analysis": [insights(an_insight())]})
    resumed = assay("resume", "--out", "out")
    assert resumed.returncode == 0, resumed.stderr
    said = "the source orders.duckdb is not as it was when this run started"
    page = (place / "out" / "report.html").read_text(encoding="utf-8")
    assert [said in text for text in (resumed.stdout, resumed.stderr, page)] == [changed] * 3


def test_resume_of_data_files_says_that_it_reads_their_copy(place: Path) -> None:
    (place / "orders.csv").write_text("id,amount\n" + "".join(f"{n},{n}\n" for n in range(50)), "utf-8")
    script(place, {"exploration": [query("SELECT count(*) FROM main.orders")]})
    killed_run("orders.csv")
    (place / "orders.csv").write_text("id,amount\n1,1\n", encoding="utf-8")
    script(place, {**WHOLE, "exploration": [DONE], "analysis": [insights(an_insight())]})
    resumed = assay("resume")
    assert resumed.returncode == 0, resumed.stderr
    assert (
        "reading the copy made when the files were loaded; later changes of them are not seen"
        in resumed.stderr
    )
    assert "is not as it was" not in resumed.stdout


def test_run_whose_process_was_killed_is_shown_as_failed(place: Path) -> None:
    script(place, {"exploration": [query("SELECT count(*) FROM main.orders")]})
    process = subprocess.Popen(
        [*ASSAY, "run", "orders.duckdb", "--config", "assay.yaml", "--max-steps", "10000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    seen = ""
    while " rows, " not in seen:
        seen += process.stderr.readline()
    process.kill()
    process.communicate(timeout=LIMIT_S)
    listed = json.loads(assay("runs", "--json").stdout)
    assert [(run["status"], run["error"]) for run in listed] == [("failed", "its process is gone")]


def test_second_command_on_a_used_home_names_the_process_and_sigterm_ends_the_first(place: Path) -> None:
    script(place, {"exploration": [query("SELECT count(*) FROM main.orders")]})
    process = subprocess.Popen(
        [*ASSAY, "run", "orders.duckdb", "--config", "assay.yaml", "--max-steps", "10000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        seen = ""
        while " rows, " not in seen:
            seen += process.stderr.readline()
        second = assay("run", "orders.duckdb", "--config", "assay.yaml")
        assert second.returncode == 10
        assert str(process.pid) in errors(second.stderr)[0]
        assert "running" in assay("show").stdout
    finally:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=25)[1]
    assert process.returncode == 143
    assert said.strip().splitlines()[-1].startswith("stopped; its steps are saved: assay show ")


def test_a_run_that_another_command_cancels_says_so(place: Path) -> None:
    script(place, {"exploration": [query("SELECT count(*) FROM main.orders")]})
    process = subprocess.Popen(
        [*ASSAY, "run", "orders.duckdb", "--config", "assay.yaml", "--max-steps", "10000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    seen = ""
    while " rows, " not in seen:
        seen += process.stderr.readline()
    [run] = json.loads(assay("runs", "--json").stdout)
    assert assay("cancel", run["id"]).returncode == 0
    said = process.communicate(timeout=25)[1]
    assert process.returncode == 13
    assert said.strip().splitlines()[-1] == f"run {run['id'][:8]} was cancelled by another command"
    assert not errors(said)


@pytest.mark.parametrize("terminated", [False, True])
def test_a_killed_document_store_ends_the_run_in_seconds_with_one_line(place: Path, terminated: bool) -> None:
    script(place, {"exploration": [query("SELECT count(*) FROM main.orders")]})
    process = subprocess.Popen(
        [*ASSAY, "run", "orders.duckdb", "--config", "assay.yaml", "--max-steps", "10000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    seen = ""
    while " rows, " not in seen:
        seen += process.stderr.readline()
    os.kill(json.loads((place / ".assay" / "stores.json").read_text("utf-8"))["server_pid"], signal.SIGKILL)
    if terminated:
        process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=20)[1].strip().splitlines()
    assert process.returncode == (143 if terminated else 11)
    word = "stopped" if terminated else "error"
    assert said[-1].startswith(
        f"{word}: the embedded document store ended (signal 9); what was saved is kept: "
    )
    assert all(line[:1] == " " or line == said[-1] for line in said), said  # no raw log between the steps
    script(place, {**WHOLE, "exploration": [DONE]})
    resumed = assay(*said[-1].split("assay ")[1].split())
    assert resumed.returncode == 0, resumed.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "no source given"),
        (["run", "nowhere.csv"], "nowhere.csv"),
        (["run", "empty"], "empty"),
        (
            ["run", "orders.duckdb", "--max-steps", "0"],
            "--max-steps: must be a whole number from 1 to 10000, not '0'",
        ),
        (["run", "orders.duckdb", "--max-steps", "ten"], "not 'ten'"),
        (["run", "orders.duckdb", "--config", "missing.yaml"], "missing.yaml cannot be read"),
        (
            ["run", "orders.duckdb", "--config", "bad.yaml"],
            "unknown key llm.modell; known: config, model, provider",
        ),
        (["run", "orders.duckdb", "--config", "other.yaml"], "llm.provider is 'gpt', must be one of:"),
        (["run", "orders.duckdb", "--areas", "churn"], "--areas: churn unknown; pack generic has anomalies"),
        (["run", "orders.duckdb", "--source-env", "NOT_SET"], "NOT_SET"),
        (["show", "zzzz"], "zzzz"),
        (["show"], "no run yet"),
        (["runs", "--limit", "0"], "--limit must be from 1 to 1000"),
        (["estimate", "orders.duckdb", "--max-steps", "0"], "--max-steps must be from 1"),
    ],
)
def test_bad_input_is_one_line_and_exit_ten(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    (place / "empty").mkdir()
    (place / "bad.yaml").write_text("llm: {provider: scout, modell: x}", encoding="utf-8")
    (place / "other.yaml").write_text("llm: {provider: gpt}", encoding="utf-8")
    assert (
        execute([*arguments, *([] if "--quiet" in arguments or arguments[0] != "run" else ["--quiet"])]) == 10
    )
    said = capsys.readouterr().err
    assert len([line for line in said.splitlines() if "error:" in line]) == 1
    assert says in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--areas", "churn"], "--areas: churn unknown"),
        (["--pack", "nothing"], "domain pack 'nothing' not found; available: "),
        (["--category", "nothing"], "category 'nothing' is not one of pack generic's: tabular"),
        (["--config", "other.yaml"], "llm.provider is 'gpt', must be one of:"),
        (["--out", "file/out"], "--out file/out cannot be written: Not a directory"),
    ],
)
def test_a_wrong_choice_is_said_before_any_data_is_loaded(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    (place / "orders.csv").write_text("id,amount\n1,2\n", encoding="utf-8")
    (place / "file").write_text("", encoding="utf-8")
    (place / "other.yaml").write_text("llm: {provider: gpt}", encoding="utf-8")
    assert execute(["run", "orders.csv", *arguments]) == 10
    [said] = errors(capsys.readouterr().err)
    assert says in said
    assert not (place / ".assay" / "warehouses").exists()


@pytest.mark.parametrize("arguments", [["run", "x", "--unknown"], ["rnu"], ["test-connection", "moon"]])
def test_wrong_command_line_is_exit_ten(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert execute(arguments) == 10
    assert "error:" in capsys.readouterr().err


def test_probes_say_what_answered(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["test-connection", "warehouse", "orders.duckdb"]) == 0
    assert execute(["test-connection", "embedding"]) == 0
    assert execute(["test-connection", "stores"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "2 tables" in said[0]
    assert "384 dimensions" in said[1]
    assert all(line.startswith("ok: ") for line in said)


def test_estimate_names_every_cost_and_spends_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["estimate", "orders.duckdb", "--json", "--max-steps", "50"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["tables"], figures["rows"], figures["max_queries"], figures["cost_usd"]) == (
        2,
        110,
        50,
        0.0,
    )
    assert figures["input_tokens"] > 10_000
    assert execute(["estimate", "orders.duckdb", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["max_queries"] == DEFAULT_STEPS


def test_config_names_the_unknown_key_at_any_depth(tmp_path: Path) -> None:
    assert unknown_key(Project, {"datasources": [{"id": "a", "provider": "duckdb", "confg": {}}]}) is not None
    assert (
        unknown_key(
            Project, {"datasources": [{"id": "a", "config": {"anything": 1}}], "profile": {"x": {"y": 1}}}
        )
        is None
    )
    (tmp_path / "list.yaml").write_text("- a", encoding="utf-8")
    with pytest.raises(ConfigError, match="must be a mapping"):
        read_config(tmp_path / "list.yaml")
