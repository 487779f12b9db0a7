"""Which connection and model each layer of a project uses. Pure.

`layer_models` is authoritative where it is given, with its reserved row `default`; else the legacy `llm` (and `blurb_llm` for the
table descriptions) is read as what it mirrors. Nothing configured at all is the scout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay_core.errors import ConfigError
from assay_core.model.project import LLMConfig, LLMProviderEntry, Project

DEFAULT = "default"
LAYERS = ("exploration", "analysis", "recommendations", "sql_fix", "validation", "table_descriptions")
SCOUT = "scout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One layer's model; `entry` is the id of the connection, by which its secret is found."""

    entry: str
    provider: str
    model: str
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}" if self.model else self.provider


def choices_of(project: Project) -> dict[str, Choice]:
    """Layer → choice, with `default` always there. Raises ConfigError that names the row at fault."""
    configured = bool(project.layer_models or project.llm_providers or project.llm)
    if configured and project.llm_config_version < 1:
        raise ConfigError(
            "llm_config_version is 0, so the project's models were never settled: set llm_providers and layer_models, "
            "and llm_config_version to 1"
        )
    if project.layer_models:
        return _by_layer(project)
    if project.llm_providers:
        raise ConfigError(
            "llm_providers are given but layer_models names none of them; add layer_models.default"
        )
    if project.llm is None:
        return {DEFAULT: Choice(entry=DEFAULT, provider=SCOUT, model="")}
    found = {DEFAULT: _mirrored(project.llm, where="llm")}
    if project.blurb_llm is not None:
        found["table_descriptions"] = _mirrored(project.blurb_llm, where="blurb_llm", entry="blurb")
    return found


def description_choice(project: Project, *, inherited: bool) -> Choice | None:
    """The model of `table_descriptions`; the default one counts with `inherited` alone. None where that is no real model."""
    choices = choices_of(project)
    choice = choices.get("table_descriptions") or (choices[DEFAULT] if inherited else None)
    return None if choice is None or choice.provider == SCOUT else choice


def _by_layer(project: Project) -> dict[str, Choice]:
    entries = {entry.id: entry for entry in project.llm_providers}
    if len(entries) < len(project.llm_providers):
        raise ConfigError("llm_providers: an id is used twice; each connection needs its own")
    if DEFAULT not in project.layer_models:
        raise ConfigError(
            f"layer_models has no row {DEFAULT!r}; add one for the layers that have none of their own"
        )
    found: dict[str, Choice] = {}
    for layer, row in project.layer_models.items():
        if layer != DEFAULT and layer not in LAYERS:
            raise ConfigError(
                f"layer_models.{layer} is not a layer; layers are {DEFAULT}, {', '.join(LAYERS)}"
            )
        entry = entries.get(row.provider_id or DEFAULT)
        if entry is None:
            known = ", ".join(sorted(entries)) or "none"
            raise ConfigError(
                f"layer_models.{layer}.provider_id is {row.provider_id!r}, must be one of llm_providers: {known}"
            )
        found[layer] = _chosen(entry, row.model, row.config, layer)
    return found


def _chosen(entry: LLMProviderEntry, model: str, config: Mapping[str, Any], layer: str) -> Choice:
    if not model and entry.provider != SCOUT:
        raise ConfigError(
            f"layer_models.{layer}.model is empty; name a model of {entry.id} ({entry.provider})"
        )
    return Choice(entry=entry.id, provider=entry.provider, model=model, config={**entry.config, **config})


def _mirrored(llm: LLMConfig, *, where: str, entry: str = DEFAULT) -> Choice:
    if not llm.provider:
        raise ConfigError(
            f"{where}.provider is empty; name a provider, or leave {where} out to use the scout"
        )
    return Choice(entry=entry, provider=llm.provider, model=llm.model, config=llm.config)


def secret_keys(choice: Choice) -> tuple[str, ...]:
    """Names under which the connection's key is looked for, the first that is there wins."""
    if choice.entry == DEFAULT:
        return ("llm-api-key",)
    legacy = ("blurb-llm-api-key",) if choice.entry == "blurb" else ()
    return (*legacy, f"llm-api-key-{choice.entry}", "llm-api-key")
