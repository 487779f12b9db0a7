"""Shared settings: durations, values from files, and errors of one line that name the variable, not its value."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay_core.errors import ConfigError
from assay_core.settings import StoreSettings, parse_duration


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in StoreSettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("24h", 86_400), ("300s", 300), ("5m", 300), ("1h30m", 5_400), ("250ms", 0.25), ("1.5h", 5_400), ("0", 0),
        ("0s", 0), (" 2m ", 120),
    ],
)  # fmt: skip
def test_durations_are_read_as_they_are_written(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "24", "h", "-5m", "5 m", "1d", "5min", "24h!", "nan", "١h", "1h 30m"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="LLM_TIMEOUT must be a duration such as 24h"):
        parse_duration(text, name="LLM_TIMEOUT")


def test_defaults_need_no_environment() -> None:
    settings = StoreSettings.load()
    assert (settings.mongodb_uri, settings.mongodb_db, settings.qdrant_url) == (None, "assay", None)
    assert settings.discovery_checkpoint_retention == 48 * 3600
    assert settings.discovery_max_duration == 24 * 3600


def test_an_empty_variable_is_an_absent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_URI", "")
    assert StoreSettings.load().mongodb_uri is None


def test_a_value_is_read_from_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "the uri"
    file.write_text("mongodb://host/\n", encoding="utf-8")
    monkeypatch.setenv("MONGODB_URI", f"file://{file}")
    monkeypatch.setenv("DISCOVERY_MAX_DURATION", "1h")
    settings = StoreSettings.load()
    assert settings.mongodb_uri == "mongodb://host/"
    assert settings.discovery_max_duration == 3600


def test_a_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", "file:///no/such/file")
    with pytest.raises(ConfigError, match="QDRANT_API_KEY names a file that cannot be read: /no/such/file"):
        StoreSettings.load()


def test_retention_must_outlive_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCOVERY_CHECKPOINT_RETENTION", "24h")
    with pytest.raises(
        ConfigError, match=r"DISCOVERY_CHECKPOINT_RETENTION .* DISCOVERY_MAX_DURATION"
    ) as caught:
        StoreSettings.load()
    assert "\n" not in str(caught.value)


def test_no_limit_on_a_run_accepts_any_retention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCOVERY_CHECKPOINT_RETENTION", "1h")
    monkeypatch.setenv("DISCOVERY_MAX_DURATION", "0")
    assert StoreSettings.load().discovery_max_duration == 0


def test_every_bad_duration_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCOVERY_CHECKPOINT_RETENTION", "soon")
    monkeypatch.setenv("DISCOVERY_MAX_DURATION", "later")
    with pytest.raises(ConfigError) as caught:
        StoreSettings.load()
    text = str(caught.value)
    assert "DISCOVERY_CHECKPOINT_RETENTION must be a duration" in text
    assert "DISCOVERY_MAX_DURATION must be a duration" in text
    assert "\n" not in text
    assert "soon" not in text


def test_secrets_are_not_in_the_representation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_URI", "mongodb://u:hunter2-pass@h/")
    monkeypatch.setenv("QDRANT_API_KEY", "hunter2-pass")
    assert "hunter2" not in repr(StoreSettings.load())
