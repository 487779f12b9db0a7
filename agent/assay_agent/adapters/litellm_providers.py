"""Provider ids of a project and what they are called by litellm; which settings a connection may have. Pure data and checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay_core.errors import ConfigError

PREFIX: Mapping[str, str] = {
    "openai": "openai",
    "openai-compatible": "openai",
    "claude": "anthropic",
    "anthropic": "anthropic",
    "azure-openai": "azure",
    "azure-foundry": "azure_ai",
    "bedrock": "bedrock",
    "vertex-ai": "vertex_ai",
    "gemini": "gemini",
    "mistral": "mistral",
    "groq": "groq",
    "deepseek": "deepseek",
    "openrouter": "openrouter",
    "ollama": "ollama_chat",
    "litellm": "litellm_proxy",
}
"""Provider id → litellm's prefix. The one place that knows both."""

NEEDS_ADDRESS = frozenset({"openai-compatible", "azure-openai", "azure-foundry", "litellm"})
_KEYLESS = frozenset({"openai-compatible", "ollama", "litellm", "bedrock", "vertex-ai"})
"""Local servers, and clouds whose own credentials serve."""

_PASSED: Mapping[str, str] = {
    "base_url": "api_base",
    "host": "api_base",
    "api_version": "api_version",
    "region": "aws_region_name",
    "project_id": "vertex_project",
    "location": "vertex_location",
    "num_ctx": "num_ctx",
    "temperature": "temperature",
    "reasoning_effort": "reasoning_effort",
}
"""Setting → litellm's argument."""
_KEYS = {
    "llm": ("llm-api-key", "LLM_API_KEY", "scout"),
    "embedding": ("embedding-api-key", "EMBEDDING_API_KEY", "minilm"),
}
"""Part → its secret, the variable that holds it, and what needs none."""
_OWN = frozenset({"max_input_tokens", "max_output_tokens", "timeout_seconds"})


def call_arguments(
    provider: str, model: str, config: Mapping[str, Any], *, secret: str | None, where: str = "llm"
) -> dict[str, Any]:
    """litellm's arguments of a connection, the model's name among them; raises ConfigError naming the setting."""
    prefix = PREFIX[provider]
    if not model:
        raise ConfigError(f"{where}.model is empty: name a model of {provider}")
    unknown = sorted(set(config) - set(_PASSED) - _OWN)
    if unknown:
        known = ", ".join(sorted({*_PASSED, *_OWN}))
        raise ConfigError(f"{where}.config.{unknown[0]} is not known; known are {known}")
    if provider in NEEDS_ADDRESS and not (config.get("base_url") or config.get("host")):
        raise ConfigError(f"{where}.config.base_url is missing: {provider} needs the address of its server")
    if secret is None and provider not in _KEYLESS:
        raise ConfigError(
            f"{provider} needs a key: give the secret {_KEYS[where][0]} (environment variable {_KEYS[where][1]}), "
            f"or use provider {_KEYS[where][2]}"
        )
    arguments = {_PASSED[name]: value for name, value in config.items() if name in _PASSED}
    arguments["model"] = f"{prefix}/{model}"
    # A server without a key still gets one, or the SDK looks for one in the environment.
    arguments["api_key"] = (
        secret if secret is not None else "none" if prefix in ("openai", "litellm_proxy") else None
    )
    return {name: value for name, value in arguments.items() if value is not None}


def positive(config: Mapping[str, Any], name: str, *, where: str = "llm.config") -> int | None:
    """A whole number above 0, or None where it is not set."""
    value = config.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{where}.{name} must be a whole number above 0, not {value!r}")
    return value
