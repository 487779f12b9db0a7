"""Settings both programs share: where the stores are and how long things may last.

Each program's own `settings.py` extends `Settings`; nothing else reads the environment. A value `file://path`
is read from that file, a duration is written `24h`, `1h30m`, `300s` or `250ms`. What is wrong is a
`ConfigError` of one line that names the variable and never its value.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from assay_core.errors import ConfigError

_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_FILE_CHARS = 1_000_000
_FIELD = re.compile(r'field "(\w+)"')


def parse_duration(text: str, *, name: str = "duration") -> float:
    """Seconds of a duration such as `24h`, `300s`, `5m`, `1h30m`, `250ms`; plain `0` is zero."""
    trimmed = text.strip()
    parts = _PART.findall(trimmed)
    if trimmed == "0":
        return 0.0
    if not parts or "".join(number + unit for number, unit in parts) != trimmed:
        raise ConfigError(f"{name} must be a duration such as 24h, 300s, 5m, 1h30m or 250ms")
    return sum(float(number) * _UNIT_S[unit] for number, unit in parts)


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except ConfigError as error:
        raise ValueError(str(error).partition(" must ")[2]) from None


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0)]
"""A duration variable: Go-style text in the environment, seconds as a float here."""


class Settings(BaseSettings):
    """What every settings class shares: environment names as they are, `file://` values, one-line errors."""

    model_config = SettingsConfigDict(
        extra="ignore", frozen=True, hide_input_in_errors=True, case_sensitive=False, env_ignore_empty=True
    )

    @classmethod
    def load(cls) -> Self:
        """Read the environment; every problem is named in one `ConfigError`."""
        try:
            return cls()
        except ValidationError as error:
            raise ConfigError("; ".join(_problem(item) for item in error.errors())) from None
        except SettingsError as error:
            field = _FIELD.search(str(error))
            raise ConfigError(f"{field[1].upper() if field else 'a variable'} must be JSON") from None

    @model_validator(mode="before")
    @classmethod
    def _from_files(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {name: _content(str(name), value) for name, value in values.items()}


class StoreSettings(Settings):
    """MongoDB, Qdrant, and the durations that bind checkpoints to runs."""

    mongodb_uri: str | None = Field(default=None, repr=False)
    mongodb_db: str = "assay"
    qdrant_url: str | None = None
    qdrant_api_key: str | None = Field(default=None, repr=False)
    discovery_checkpoint_retention: Seconds = 48 * 3600.0
    """Seconds checkpoints are kept at most."""
    discovery_max_duration: Seconds = 24 * 3600.0
    """Seconds a run may compute; 0 means no limit."""

    @model_validator(mode="after")
    def _retention_outlives_runs(self) -> Self:
        if self.discovery_checkpoint_retention <= self.discovery_max_duration:
            raise ConfigError(
                "DISCOVERY_CHECKPOINT_RETENTION must be longer than DISCOVERY_MAX_DURATION, "
                "or a run would lose its checkpoints while it is still allowed to work"
            )
        return self


def _content(name: str, value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("file://"):
        return value
    path = unquote(urlsplit(value).path) if value.startswith("file:///") else value.removeprefix("file://")
    try:
        with Path(path).open(encoding="utf-8") as source:
            return source.read(_FILE_CHARS).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"{name.upper()} names a file that cannot be read: {path}: {why}") from None


def _problem(item: Any) -> str:
    where = "_".join(str(part) for part in item["loc"]).upper()
    text = str(item["msg"]).removeprefix("Value error, ")
    return f"{where} must {text}" if text.startswith("be ") else f"{where}: {text}"
