"""Secrets from the environment or from a mounted directory: how a pod and a user's shell hand them over.

The key `llm-api-key` is the variable `LLM_API_KEY` (a value `file://path` is read from that file), or the
file `llm-api-key` in the directory `SECRETS_DIR`. Every project of the process sees the same secrets.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from assay_agent.adapters.secret_names import checked
from assay_agent.ports import SecretProvider, SecretSettings
from assay_core.errors import ConfigError
from assay_core.log import hide

_BYTES = 1_000_000


class EnvironmentSecrets:
    """Implements the `SecretProvider` port over a mapping of variables."""

    def __init__(self, environment: Mapping[str, str], *, directory: Path | None = None) -> None:
        self._environment = environment
        self._directory = directory

    def get(self, *, project_id: str, key: str) -> str | None:  # noqa: ARG002 - the port names it
        """The secret, made known to the log as one to hide; None when there is none."""
        value = self._find(checked(key))
        hide(value)
        return value

    def _find(self, key: str) -> str | None:
        name = key.upper().replace("-", "_")
        value = self._environment.get(name)
        if value:
            return _read(Path(value.removeprefix("file://")), name) if value.startswith("file://") else value
        if self._directory is not None and (self._directory / key).is_file():
            return _read(self._directory / key, key)
        return None


def _read(path: Path, name: str) -> str | None:
    try:
        with path.open(encoding="utf-8") as source:
            return source.read(_BYTES).rstrip("\r\n") or None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"secret {name} names a file that cannot be read: {path}: {why}") from None


class WithEnvironment:
    """Another provider, and the environment for what it does not hold."""

    def __init__(self, first: SecretProvider) -> None:
        self._first = first
        self._environment = open_provider()

    def get(self, *, project_id: str, key: str) -> str | None:
        return self._first.get(project_id=project_id, key=key) or self._environment.get(
            project_id=project_id, key=key
        )


def open_provider(_settings: SecretSettings | None = None) -> EnvironmentSecrets:
    """Entry point."""
    directory = os.environ.get("SECRETS_DIR")
    return EnvironmentSecrets(os.environ, directory=Path(directory) if directory else None)
