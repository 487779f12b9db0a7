"""The plugin's tables, its progress and its one-line errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay_operator.plugin.main import execute
from assay_operator.plugin.show import age, exit_code, progress, table

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def a_run(name: str, *, minutes: int, **status: Any) -> dict[str, Any]:
    created = (NOW - timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")
    return {
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": created},
        **({"status": status} if status else {}),
    }


def test_table_shows_oldest_first_and_a_reason_only_where_it_says_more_than_the_phase() -> None:
    done = {"step": 12, "maxSteps": 40, "queries": 9, "insights": 3}
    bodies = [
        a_run("young", minutes=1),
        a_run("old", minutes=130, phase="Failed", reason="OOMKilled", attempt=2, progress=done),
        a_run("middle", minutes=20, phase="Succeeded", reason="Succeeded", attempt=1, progress={"step": 8}),
    ]
    assert table(bodies, now=NOW, namespaces=False).splitlines() == [
        "NAME    PHASE      REASON     ATTEMPT  STEP   QUERIES  INSIGHTS  AGE",
        "old     Failed     OOMKilled  2        12/40  9        3         2h",
        "middle  Succeeded  -          1        8      -        -         20m",
        "young   -          -          -        -      -        -         60s",
    ]
    assert table(bodies, now=NOW, namespaces=True).splitlines()[1].startswith("team")


def test_progress_is_one_line_with_a_bar_that_is_never_over_full() -> None:
    done = {"phase": "exploration", "percent": 250, "step": 5, "maxSteps": 10, "queries": 4, "insights": 0}
    text = progress(a_run("shop", minutes=1, phase="Running", attempt=2, progress=done))
    assert text == f"[{'#' * 24}] 100%  attempt 2  exploration  step 5/10  4 queries  0 insights"
    assert progress(a_run("shop", minutes=1, phase="Pending", reason="ProjectBusy")) == "Pending: ProjectBusy"
    assert progress(a_run("shop", minutes=1)) == "not seen yet"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-5, "0s"), (119, "119s"), (120, "2m"), (7_199, "119m"), (7_200, "2h"), (172_800, "2d")],
)
def test_age_is_in_the_largest_unit_that_says_enough(seconds: int, text: str) -> None:
    assert age((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == text


def test_age_of_nonsense_is_not_known() -> None:
    assert age("yesterday", NOW) == "-"


@pytest.mark.parametrize(
    ("phase", "code"), [("Succeeded", 0), ("Failed", 1), ("Cancelled", 3), ("Running", None)]
)
def test_exit_code_tells_the_end(phase: str, code: int | None) -> None:
    assert exit_code(a_run("shop", minutes=1, phase=phase)) == code


def kubeconfig(folder: Path, *, server: str) -> str:
    path = folder / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": {"token": "very-secret-token"}}],
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            }
        )
    )
    return str(path)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line."""
    line = capsys.readouterr().err
    assert line.count("\n") == 1, line
    assert "very-secret-token" not in line
    return line


def test_no_kubeconfig_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["runs", "--kubeconfig", str(tmp_path / "none")]) == 10
    assert "set KUBECONFIG or --kubeconfig" in said(capsys)


def test_context_that_is_not_there_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kubeconfig(tmp_path, server="http://127.0.0.1:1")
    assert execute(["runs", "--kubeconfig", path, "--context", "elsewhere"]) == 10
    assert "elsewhere" in said(capsys)


def test_cluster_that_does_not_answer_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kubeconfig(tmp_path, server="http://127.0.0.1:1")
    for argv in (["why", "shop"], ["logs", "shop", "-f"], ["resume", "shop"], ["cancel", "shop", "-y"]):
        assert execute([*argv, "--kubeconfig", path]) == 11
        assert "the Kubernetes API is not reachable" in said(capsys)


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["nonsense"], "nonsense"),
        (["why"], "RUN"),
        (["logs", "shop", "--attempt", "one"], "--attempt"),
        (["logs", "shop", "--attempt", "0"], "--attempt"),
        (["watch", "shop", "--limit", "-3"], "--limit"),
        (["watch", "shop", "--limit", "nan"], "--limit"),
        (["why", "../secrets"], "../secrets"),
        (["why", "shop", "-n", "a/b"], "--namespace"),
        (["why", "no/such name"], "no/such name"),
    ],
)
def test_wrong_arguments_are_said_in_one_line(
    argv: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        execute(argv)
    assert stopped.value.code == 10
    assert word in said(capsys)


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute([]) == 0
    assert "kubectl assay" in capsys.readouterr().out
