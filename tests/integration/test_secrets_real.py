"""`make secrets-real` does what it says: tried here on the server that speaks both clouds' protocols."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.secret_server import GOOGLE_PROJECT, REGION, SecretServer, secret_server

ROOT = Path(__file__).parents[2]
VARIABLES = ("SECRET_GCP_PROJECT_ID", "SECRET_AWS_REGION")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SecretServer]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with secret_server() as opened:
        opened.sign_in(monkeypatch, tmp_path)
        monkeypatch.setenv("SECRET_GCP_ENDPOINT", opened.url)
        yield opened


def ended(*clouds: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.real", *clouds]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_suite_runs_on_both_clouds_and_leaves_nothing(
    server: SecretServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_GCP_PROJECT_ID", GOOGLE_PROJECT)
    monkeypatch.setenv("SECRET_AWS_REGION", REGION)
    done = ended()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 passed" in done.stdout
    assert "skipped" not in done.stdout
    assert server.kept == {}
    assert {call for call in server.calls if "GetSecretValue" in call or "latest:access" in call}


@pytest.mark.parametrize(
    ("clouds", "words"),
    [
        ((), "secrets-real needs SECRET_GCP_PROJECT_ID and SECRET_AWS_REGION"),
        (("aws",), "secrets-real needs SECRET_AWS_REGION:"),
        (("azure",), "azure is no cloud known here"),
    ],
)
def test_without_a_place_to_try_it_fails_on_one_line(
    server: SecretServer, clouds: tuple[str, ...], words: str
) -> None:
    done = ended(*clouds)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(words)
    assert done.stderr.count("\n") == 1
    assert server.calls == []
