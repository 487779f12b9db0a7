"""The profile schema of a pack and category, and what a project's profile lacks against it. Pure.

JSON Schema 2020-12; a category's schema is merged over the base: objects key by key, `required` joined, anything
else replaced. `wiring` calls `check_profile` before a run spends anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from assay_core.errors import ConfigError
from assay_core.model.pack import DomainPack
from assay_core.model.project import Project

_TOLD = 3
"""Problems of a profile told in its one line."""
_SHOWN_CHARS = 60
_LINE_CHARS = 500


def merge(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """`own` over `base`."""
    merged = dict(base)
    for key, value in own.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(before, value)
        elif key == "required" and isinstance(before, Sequence) and isinstance(value, Sequence):
            merged[key] = list(dict.fromkeys([*before, *value]))
        else:
            merged[key] = value
    return merged


def merged_schema(pack: DomainPack, category: str) -> dict[str, Any]:
    """The schema that a profile of this category must satisfy; empty when the pack asks for nothing."""
    return merge(pack.profile_schema.base, pack.profile_schema.categories.get(category, {}))


def check_profile(pack: DomainPack, category: str, project: Project) -> None:
    """Raise ConfigError, on one line, for a profile that does not satisfy its pack's schema."""
    problems = profile_problems(merged_schema(pack, category), project.profile)
    if problems:
        more = f" (and {len(problems) - _TOLD} more)" if len(problems) > _TOLD else ""
        raise ConfigError("; ".join(problems[:_TOLD]) + more + f"; see `assay packs show {pack.slug}`")


def profile_problems(schema: Mapping[str, Any], profile: Mapping[str, Any]) -> list[str]:
    """What is wrong with a profile, one line each: the field, what would be right, what it is."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import relevance

    if not schema:
        return []
    errors = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).iter_errors(
        cast("Any", profile)
    )
    told = [
        " ".join(line.split())[:_LINE_CHARS]
        for error in sorted(errors, key=relevance)
        for line in _told(error)
    ]
    return sorted(dict.fromkeys(told))


def schema_problems(schema: Mapping[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    """Where a schema is no JSON Schema 2020-12, and why."""
    from jsonschema import Draft202012Validator

    meta = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    errors = sorted(
        meta.iter_errors(cast("Any", schema)), key=lambda error: [str(part) for part in error.path]
    )
    return [(tuple(error.path), f"is no JSON Schema 2020-12: {_short(error.message)}") for error in errors]


def _told(error: Any) -> Iterator[str]:
    """One violation in words: the keyword decides what would have been right."""
    field = ".".join(["profile", *(str(part) for part in error.absolute_path)])
    given, wanted, schema = error.instance, error.validator_value, error.schema
    match error.validator:
        case "additionalProperties" if wanted is False:
            known = sorted(schema.get("properties", {}))
            for name in sorted(set(given) - set(known)):
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]}? " if near else ""
                yield f"{field}.{name} is unknown; {hint}known: {', '.join(known)}"
        case "required":
            for name in wanted:
                if name not in given:
                    yield f"{field}.{name} is missing{_described(schema.get('properties', {}).get(name))}"
        case "enum":
            yield f"{field} must be one of {', '.join(map(str, wanted))}, not {_value(given)}"
        case "type":
            kinds = " or ".join(wanted) if isinstance(wanted, list) else wanted
            yield f"{field} must be {_article(kinds)}, not {_value(given)}{_described(schema)}"
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            yield f"{field} must be {_range(schema)}, not {_value(given)}{_described(schema)}"
        case "pattern":
            yield f"{field} must match {wanted}, not {_value(given)}{_described(schema)}"
        case "format":
            yield f"{field} must be a {wanted}, not {_value(given)}"
        case _:
            yield f"{field}: {_short(error.message)}"


def _range(schema: Mapping[str, Any]) -> str:
    signs = (
        ("minimum", "at least"),
        ("exclusiveMinimum", "above"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "below"),
    )
    return " and ".join(f"{words} {schema[key]}" for key, words in signs if key in schema)


def _article(kinds: str) -> str:
    return f"an {kinds}" if kinds[:1] in "aeio" else f"a {kinds}"


def _described(schema: Any) -> str:
    text = schema.get("description", "") if isinstance(schema, Mapping) else ""
    return f" ({_short(str(text))})" if text else ""


def _value(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN_CHARS else f"{type(value).__name__} of {len(shown)} characters"


def _short(text: str) -> str:
    return " ".join(text.split())[:160]
