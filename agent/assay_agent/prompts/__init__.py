"""Engine prompts as Markdown files, and the strict renderer that packs use too.

A variable is `{{[A-Z_]+}}`; figures (`{{f1}}`) and prose braces pass untouched. In an engine prompt an unknown or an
unused variable is an error; in a pack template only an unknown one is, since a pack may leave variables out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from assay_core.errors import ConfigError

_VARIABLE = re.compile(r"\{\{([A-Z][A-Z_]*)\}\}")
_REFERENCE = re.compile(r"\{\{REF:([^{}]+)\}\}")


@cache
def template(name: str) -> str:
    """The text of the engine prompt `name` (without `.md`)."""
    return files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def render(name: str, /, **values: str) -> str:
    """Render an engine prompt; every variable must be given and every given one used."""
    text = template(name)
    unused = sorted(set(values) - set(_VARIABLE.findall(text)))
    if unused:
        raise ConfigError(f"prompt {name}.md does not use {', '.join(unused)}")
    return fill(text, values, origin=f"prompt {name}.md")


def fill(
    text: str, values: Mapping[str, str], *, origin: str, quote_ref: Callable[[str], str] | None = None
) -> str:
    """Substitute variables in one pass, so that a value holding `{{NAME}}` is never substituted again.

    `{{REF:table}}` becomes the dialect's quoted reference. Raises ConfigError naming `origin` for an unknown variable.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in values:
            known = ", ".join(sorted(values)) or "none"
            raise ConfigError(f"{origin} names the unknown variable {name}; known here: {known}")
        return values[name]

    def replace(match: re.Match[str]) -> str:
        reference = _REFERENCE.fullmatch(match.group(0))
        if reference:
            return quote_ref(reference.group(1)) if quote_ref else reference.group(1)
        variable = _VARIABLE.fullmatch(match.group(0))
        return value_of(variable) if variable else match.group(0)

    return re.sub(r"\{\{(?:REF:[^{}]+|[A-Z][A-Z_]*)\}\}", replace, text)


def variables(text: str) -> set[str]:
    """Names of the variables a template uses."""
    return set(_VARIABLE.findall(text))
