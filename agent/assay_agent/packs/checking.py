"""What is wrong with a pack's document, one line each. Pure.

A document is the stored form as plain values; `locate` says in which file of a folder, or at which place of an
envelope, a part of it stands. Called by `folders` and `envelope` before anything is used. Invariant: a document
without problems is a valid `DomainPack` whose templates render.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from assay_agent.packs.profiles import merge, schema_problems
from assay_agent.prompts import variables
from assay_core.model.pack import PACK_FORMAT_VERSION, Area, DomainPack, PackCategory

EVERYWHERE = frozenset({"DATASET", "DIALECT", "LANGUAGE", "FILTER", "FILTER_CONTEXT", "FILTER_RULE"})
"""Variables that every template may use."""
OWN = {
    "base_context": frozenset({"PROFILE", "PREVIOUS_CONTEXT"}),
    "exploration": frozenset({"SCHEMA_INFO", "ANALYSIS_AREAS"}),
    "recommendations": frozenset({"DISCOVERY_DATE", "INSIGHTS_SUMMARY", "INSIGHTS_DATA"}),
    "area": frozenset({"TOTAL_QUERIES", "QUERY_RESULTS"}),
}
"""Variables that one kind of template may use besides."""
REQUIRED = {
    "base_context": frozenset({"PROFILE"}),
    "exploration": frozenset({"DATASET", "SCHEMA_INFO", "ANALYSIS_AREAS"}),
    "recommendations": frozenset({"INSIGHTS_DATA"}),
    "area": frozenset({"QUERY_RESULTS"}),
}

_PROMPT_CHARS = 60_000
"""A prompt is sent with every call: a longer one leaves no room for results."""
_PRIORITY_MOST = 1_000
_CATEGORY = re.compile(r"[a-z0-9][a-z0-9_-]*")
_BRACED = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_FIGURE = re.compile(r"[a-z]\d{1,3}")
_DRAFT = "https://json-schema.org/draft/2020-12/schema"

Place = tuple[str | int, ...]
Locate = Callable[[Place], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong; `where` is a file and a place in it."""

    where: str
    text: str

    def __str__(self) -> str:
        return " ".join(f"{self.where}: {self.text}".split())


def dotted(place: Place) -> str:
    """`analysis_areas.base[2].priority`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")


def newer_format(document: Mapping[str, Any]) -> str | None:
    """Why a document of a newer format is refused: nothing else of it can be judged."""
    version = document.get("format_version", PACK_FORMAT_VERSION)
    if isinstance(version, int) and not isinstance(version, bool) and version > PACK_FORMAT_VERSION:
        known = PACK_FORMAT_VERSION
        return f"format_version {version} is newer than this program reads ({known}); update assay, or use a pack of format {known}"
    return None


def problems_of(document: Mapping[str, Any], locate: Locate = dotted) -> list[Problem]:
    """Everything wrong with a pack's document."""
    newer = newer_format(document)
    if newer:
        return [Problem(where=locate(("format_version",)), text=newer)]
    found = [Problem(where=locate(place), text=text) for place, text in _shape(document)]
    if found:
        return found
    pack = DomainPack.model_validate(document)
    return [
        Problem(where=locate(place), text=text)
        for check in (_categories, _prompts, _areas, _schemas)
        for place, text in check(pack)
    ]


def _shape(document: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    yield from _unknown(document, DomainPack, ())
    for place, item in _listed(document, "categories"):
        yield from _unknown(item, PackCategory, place)
    for place, item in _area_items(document):
        yield from _unknown(item, Area, place)
    try:
        DomainPack.model_validate(document)
    except ValidationError as error:
        for item in error.errors():
            yield tuple(item["loc"]), _said(item)


def _said(item: Any) -> str:
    """What pydantic says, in the words of the other messages."""
    text = str(item["msg"]).removeprefix("Input ").removeprefix("Value error, ")
    if item["type"] == "missing":
        return "is missing"
    if item["type"] == "string_pattern_mismatch":
        return f"must match {item['ctx']['pattern']}, not {item['input']!r}"
    given = item.get("input")
    shown = f", not {given!r}" if isinstance(given, (str, int, float)) else ""
    return f"{text[:1].lower()}{text[1:].replace('should be', 'must be')}{shown}"


def _unknown(item: Any, model: type[BaseModel], place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(item, Mapping):
        for key in item:
            if key not in model.model_fields:
                yield (*place, str(key)), f"unknown key; known: {', '.join(sorted(model.model_fields))}"


def _listed(document: Mapping[str, Any], *path: str) -> Iterator[tuple[Place, Any]]:
    value: Any = document
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, Sequence) and not isinstance(value, str):
        for position, item in enumerate(value):
            yield (*path, position), item


def _area_items(document: Mapping[str, Any]) -> Iterator[tuple[Place, Any]]:
    yield from _listed(document, "analysis_areas", "base")
    areas = document.get("analysis_areas")
    categories = areas.get("categories") if isinstance(areas, Mapping) else None
    for category in categories if isinstance(categories, Mapping) else {}:
        yield from _listed(document, "analysis_areas", "categories", str(category))


def _categories(pack: DomainPack) -> Iterator[tuple[Place, str]]:
    if not pack.categories:
        yield ("categories",), 'at least one category is needed, such as {"id": "all", "name": "All"}'
    counts = Counter(category.id for category in pack.categories)
    for position, category in enumerate(pack.categories):
        place = ("categories", position, "id")
        if not _CATEGORY.fullmatch(category.id):
            yield place, f"must be lower-case letters, digits, - and _, not {category.id!r}"
        elif counts[category.id] > 1:
            yield place, f"{category.id!r} is used {counts[category.id]} times"
    for section, names in (
        ("prompts", pack.prompts.categories),
        ("analysis_areas", pack.analysis_areas.categories),
        ("profile_schema", pack.profile_schema.categories),
    ):
        for name in names:
            if name not in counts:
                yield (
                    (section, "categories", name),
                    f"{name!r} is no category of this pack; it has {', '.join(counts) or 'none'}",
                )


def _prompts(pack: DomainPack) -> Iterator[tuple[Place, str]]:
    for name in ("base_context", "exploration", "recommendations"):
        yield from _template(getattr(pack.prompts.base, name), name, ("prompts", "base", name))
    for category, texts in pack.prompts.categories.items():
        place = ("prompts", "categories", category, "exploration_context")
        yield from _template(texts.exploration_context, "exploration", place, part=True)


def _template(text: str, kind: str, place: Place, *, part: bool = False) -> Iterator[tuple[Place, str]]:
    """What is wrong with one template; `part` of one needs no variable."""
    used = variables(text)
    allowed = EVERYWHERE | OWN[kind]
    for name in sorted(REQUIRED[kind] - used) if not part else ():
        yield place, f"must contain {{{{{name}}}}}"
    for name in sorted(used - allowed):
        yield place, f"unknown template variable {{{{{name}}}}}; known here: {', '.join(sorted(allowed))}"
    for name in sorted({name for name in _BRACED.findall(text) if not _FIGURE.fullmatch(name)} - used):
        yield (
            place,
            f"{{{{{name}}}}} is no variable: they are upper-case without spaces, such as {{{{DATASET}}}}",
        )
    if not part and not text.strip():
        yield place, "is empty"
    if len(text) > _PROMPT_CHARS:
        yield place, f"is longer than {_PROMPT_CHARS} characters"


def _areas(pack: DomainPack) -> Iterator[tuple[Place, str]]:
    if not pack.analysis_areas.base:
        yield ("analysis_areas", "base"), "at least one area is needed"
    seen: dict[str, str] = {}
    for position, area in enumerate(pack.analysis_areas.base):
        place: Place = ("analysis_areas", "base", position)
        yield from _area(area, place, seen)
        seen[area.id] = "the base areas"
    for category, areas in pack.analysis_areas.categories.items():
        there = dict(seen)
        for position, area in enumerate(areas):
            yield from _area(area, ("analysis_areas", "categories", category, position), there)
            there[area.id] = f"category {category}"


def _area(area: Area, place: Place, seen: Mapping[str, str]) -> Iterator[tuple[Place, str]]:
    if area.id in seen:
        yield (*place, "id"), f"area {area.id!r} is in {seen[area.id]} already"
    if not area.name.strip():
        yield (*place, "name"), "is empty"
    if not 1 <= area.priority <= _PRIORITY_MOST:
        yield (
            (*place, "priority"),
            f"must be a whole number from 1 (first) to {_PRIORITY_MOST}, not {area.priority}",
        )
    if not area.keywords:
        yield (*place, "keywords"), "at least one is needed"
    for position, keyword in enumerate(area.keywords):
        if not keyword.strip() or keyword != keyword.lower():
            yield (*place, "keywords", position), f"must be a lower-case fragment of text, not {keyword!r}"
    yield from _template(area.prompt, "area", (*place, "prompt"))


def _schemas(pack: DomainPack) -> Iterator[tuple[Place, str]]:
    base = pack.profile_schema.base
    found = list(_schema(base, ("profile_schema", "base")))
    yield from found
    for category, own in pack.profile_schema.categories.items():
        place: Place = ("profile_schema", "categories", category)
        problems = list(_schema(own, place))
        yield from problems
        if not problems and not found:
            yield from (((*place, *at), text) for at, text in schema_problems(merge(base, own)))


def _schema(schema: Mapping[str, Any], place: Place) -> Iterator[tuple[Place, str]]:
    if not schema:
        return
    if schema.get("$schema", _DRAFT) != _DRAFT:
        yield (*place, "$schema"), f"must be {_DRAFT}"
    elif schema.get("type", "object") != "object":
        yield (*place, "type"), "a profile is an object"
    else:
        yield from (((*place, *at), text) for at, text in schema_problems(schema))
