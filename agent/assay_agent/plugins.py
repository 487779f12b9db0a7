"""Find implementations of the ports: by entry point of an installed package, or registered by an import before the run.

A custom build imports this module, calls `register`, and then `agentserver.run`. A registered name wins over an entry point.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Literal

from assay_core.errors import ConfigError

Group = Literal["warehouses", "llms", "embedders", "secret_providers", "warehouse_middleware"]

_SETTINGS: dict[Group, str] = {
    "warehouses": "datasources[].provider",
    "llms": "llm.provider",
    "embedders": "embedding.provider (EMBEDDING_PROVIDER)",
    "secret_providers": "SECRET_PROVIDER",
    "warehouse_middleware": "ASSAY_WAREHOUSE_MIDDLEWARE",
}
_registered: dict[tuple[Group, str], Callable[..., Any]] = {}


def register(group: Group, name: str, factory: Callable[..., Any]) -> None:
    """Offer `factory` under `name`. Raises ConfigError for a name that is registered already."""
    if not name or (group, name) in _registered:
        raise ConfigError(f"{group}: the name {name!r} is empty or registered twice")
    _registered[group, name] = factory


def available(group: Group) -> list[str]:
    """Names that can be loaded, sorted."""
    installed = {entry.name for entry in entry_points(group=f"assay.{group}")}
    return sorted(installed | {name for of, name in _registered if of == group})


def load(group: Group, name: str) -> Callable[..., Any]:
    """The factory called `name`. Raises ConfigError naming the setting and the values it may take."""
    if (group, name) in _registered:
        return _registered[group, name]
    for entry in entry_points(group=f"assay.{group}", name=name):
        try:
            return entry.load()  # type: ignore[no-any-return]  # entry points are untyped
        except ImportError as error:
            raise ConfigError(
                f"{_SETTINGS[group]} {name!r} needs a package that is not installed: {error.name}"
            ) from error
    known = ", ".join(available(group)) or "none"
    raise ConfigError(f"{_SETTINGS[group]} is {name!r}, must be one of: {known}")
