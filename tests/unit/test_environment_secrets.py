"""Secrets from variables and mounted files: found by key, never logged, never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay_agent.adapters.environment_secrets import EnvironmentSecrets
from assay_core import log
from assay_core.errors import ConfigError


def test_a_key_is_the_variable_of_its_name() -> None:
    secrets = EnvironmentSecrets({"LLM_API_KEY": "key-one", "LLM_API_KEY_FAST": "key-two", "EMPTY": ""})
    assert secrets.get(project_id="p", key="llm-api-key") == "key-one"
    assert secrets.get(project_id="p", key="llm-api-key-fast") == "key-two"
    assert secrets.get(project_id="p", key="warehouse-credentials") is None
    assert secrets.get(project_id="p", key="empty") is None
    assert log.masked("with key-one") == f"with {log.MASK}"


def test_a_secret_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "llm-api-key").write_text("from-the-mount\n", encoding="utf-8")
    (tmp_path / "elsewhere").write_text("from-the-file\n", encoding="utf-8")
    secrets = EnvironmentSecrets({"OTHER": f"file://{tmp_path}/elsewhere"}, directory=tmp_path)
    assert secrets.get(project_id="p", key="llm-api-key") == "from-the-mount"
    assert secrets.get(project_id="p", key="other") == "from-the-file"


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    secrets = EnvironmentSecrets({"LLM_API_KEY": f"file://{tmp_path}/none"})
    with pytest.raises(ConfigError, match="LLM_API_KEY names a file that cannot be read"):
        secrets.get(project_id="p", key="llm-api-key")


@pytest.mark.parametrize("key", ["../etc/passwd", "", "a/b", "A", "x" * 80])
def test_a_key_is_a_name_not_a_path(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError):
        EnvironmentSecrets({}, directory=tmp_path).get(project_id="p", key=key)
