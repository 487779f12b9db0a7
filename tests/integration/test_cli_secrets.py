"""Secrets of stored projects from the command line: sealed, used by a run, and never shown."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest

from tests.integration.test_cli_projects import output, place, written
from tests.integration.test_litellm_run import as_scout
from tests.openai_server import serving

__all__ = ["place"]
VALUE = "sk-marked-77ab31f0c2d94e58"


@pytest.fixture(autouse=True)
def sealing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_PROVIDER", "mongodb")
    monkeypatch.setenv("SECRET_ENCRYPTION_KEY", base64.b64encode(bytes(range(32))).decode())


def test_stored_key_is_used_by_a_run_and_shown_nowhere(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(as_scout) as server:
        connection = {"id": "main", "provider": "openai-compatible", "config": {"base_url": server.url}}
        written(
            place,
            llm=None,
            llm_providers=[connection],
            layer_models={"default": {"provider_id": "main", "model": "gpt-4o-mini"}},
        )
        told = output(capsys, "project", "apply", "project.yaml")
        monkeypatch.setattr("sys.stdin", io.StringIO(VALUE + "\n"))
        told += output(capsys, "secrets", "set", "llm-api-key-main", "--project", "our-shop")
        told += output(capsys, "secrets", "list", "--project", "our-shop")
        assert "llm-api-key-main" in told
        run = ["run", "--project", "our-shop", "--max-steps", "6", "--areas", "data_quality", "--quiet"]
        told += output(capsys, *run)
        told += output(capsys, "project", "show", "our-shop")
    assert set(server.keys) == {VALUE}
    assert VALUE not in told
    output(capsys, "secrets", "delete", "llm-api-key-main", "--project", "our-shop")
    assert "no secrets" in output(capsys, "secrets", "list", "--project", "our-shop")


def test_wrong_use_is_one_line(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output(capsys, "project", "apply", "project.yaml")
    assert "--project nobody is not stored" in output(
        capsys, "secrets", "list", "--project", "nobody", code=10
    )
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert "is empty" in output(capsys, "secrets", "set", "llm-api-key", "--project", "our-shop", code=10)
    gone = output(capsys, "secrets", "delete", "llm-api-key", "--project", "our-shop", code=10)
    assert "there is no secret llm-api-key" in gone
    monkeypatch.setenv("SECRET_ENCRYPTION_KEY", "")
    assert "32 bytes" in output(capsys, "secrets", "list", "--project", "our-shop", code=10)
