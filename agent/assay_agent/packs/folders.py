"""A pack's folder → its document, with the file that each part came from.

    <pack>/pack.json                       slug, name, version, categories, format_version
           prompts/base/                   areas.json, base_context.md, exploration.md, recommendations.md, analysis_*.md
           prompts/categories/<category>/  areas.json, exploration_context.md, analysis_*.md
           profiles/schema.json            and profiles/categories/<category>.json

An area's `prompt_file` is named from the folder of its areas.json and may lie in another folder of the same pack.
Invariant: nothing outside the pack's folder is read, and a folder with problems gives no pack.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay_agent.packs.checking import Place, Problem, dotted, newer_format, problems_of
from assay_core.errors import ConfigError
from assay_core.model.pack import DomainPack

_BASE = ("base_context", "exploration", "recommendations")
_AREA_FILE = "analysis_*.md"
_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A pack, or what is wrong with its folder."""

    pack: DomainPack | None
    problems: tuple[Problem, ...]


def read_pack(folder: Path) -> DomainPack:
    """A checked pack. Raises ConfigError with its first problem."""
    examined = examine(folder)
    if examined.pack is None:
        first, more = examined.problems[0], len(examined.problems) - 1
        also = f" (and {more} more: assay packs validate {folder.name})" if more else ""
        raise ConfigError(f"domain pack {folder.name}: {first}{also}")
    return examined.pack


def examine(folder: Path) -> Examined:
    """Read a folder whole and say everything that is wrong with it."""
    reading = _Reading(folder)
    document = reading.document()
    if document is None or reading.problems:
        return Examined(pack=None, problems=tuple(reading.problems))
    problems = problems_of(document, reading.locate)
    problems += list(reading.unused())
    if problems:
        return Examined(pack=None, problems=tuple(problems))
    return Examined(pack=DomainPack.model_validate(document), problems=())


@dataclass(slots=True)
class _Reading:
    """One folder being read; problems are gathered, so that one look names them all."""

    folder: Path
    problems: list[Problem] = field(default_factory=list)
    prompt_files: dict[Place, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any] | None:
        head = self._json("pack.json")
        if head is None:
            return None
        newer = newer_format(head)
        if newer:
            self._problem("pack.json", newer)
            return None
        listed = head.get("categories")
        categories = [
            str(item["id"])
            for item in (listed if isinstance(listed, list) else [])
            if isinstance(item, dict) and "id" in item and "/" not in str(item["id"])
        ]
        return {
            **head,
            "prompts": {
                "base": {name: self._text(f"prompts/base/{name}.md") for name in _BASE},
                "categories": {
                    name: {
                        "exploration_context": self._text(
                            f"prompts/categories/{name}/exploration_context.md", optional=True
                        )
                    }
                    for name in categories
                },
            },
            "analysis_areas": {
                "base": self._areas("prompts/base", ("analysis_areas", "base")),
                "categories": {
                    name: self._areas(
                        f"prompts/categories/{name}", ("analysis_areas", "categories", name), optional=True
                    )
                    for name in categories
                },
            },
            "profile_schema": {
                "base": self._json("profiles/schema.json", optional=True) or {},
                "categories": {
                    name: self._json(f"profiles/categories/{name}.json", optional=True) or {}
                    for name in categories
                },
            },
        }

    def locate(self, place: Place) -> str:
        """The file, and the place in it, of a part of the document."""
        match place:
            case ("prompts", "base", str(name), *_):
                return f"prompts/base/{name}.md"
            case ("prompts", "categories", str(name), *_):
                return f"prompts/categories/{name}/exploration_context.md"
            case ("analysis_areas", "base", *rest):
                return self._area_place("prompts/base", place, tuple(rest))
            case ("analysis_areas", "categories", str(name), *rest):
                return self._area_place(f"prompts/categories/{name}", place, tuple(rest))
            case ("profile_schema", "base", *rest):
                return _in_file("profiles/schema.json", tuple(rest))
            case ("profile_schema", "categories", str(name), *rest):
                return _in_file(f"profiles/categories/{name}.json", tuple(rest))
            case _:
                return _in_file("pack.json", place)

    def unused(self) -> Iterator[Problem]:
        """Files of prompts that nothing names: most often a slip of the pen in areas.json."""
        used = set(self.prompt_files.values())
        for path in sorted((self.folder / "prompts").rglob(_AREA_FILE)):
            name = path.relative_to(self.folder).as_posix()
            if name not in used:
                yield Problem(where=name, text="no area names this file")

    def _area_place(self, folder: str, place: Place, rest: Place) -> str:
        if rest[1:] == ("prompt",) and place in self.prompt_files:
            return self.prompt_files[place]
        return _in_file(f"{folder}/areas.json", ("areas", *rest))

    def _areas(self, folder: str, place: Place, *, optional: bool = False) -> list[Any]:
        """Areas of a folder, the text of each prompt file in place of its name."""
        listing = self._json(f"{folder}/areas.json", optional=optional)
        if listing is None:
            return []
        areas = listing.get("areas")
        if not isinstance(areas, list):
            self._problem(f"{folder}/areas.json: areas", "must be a list of areas")
            return []
        return [self._area(folder, item, (*place, position)) for position, item in enumerate(areas)]

    def _area(self, folder: str, item: Any, place: Place) -> Any:
        if not isinstance(item, dict) or "prompt_file" not in item:
            return item
        path = (self.folder / folder / str(item["prompt_file"])).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            where = _in_file(f"{folder}/areas.json", ("areas", place[-1], "prompt_file"))
            self._problem(where, f"must lie in the pack's own folder, not {item['prompt_file']!r}")
            return item
        name = path.relative_to(self.folder.resolve()).as_posix()
        self.prompt_files[*place, "prompt"] = name
        rest = {key: value for key, value in item.items() if key != "prompt_file"}
        return {**rest, "prompt": self._text(name)}

    def _json(self, name: str, *, optional: bool = False) -> dict[str, Any] | None:
        if optional and not (self.folder / name).is_file():
            return None
        before = len(self.problems)
        text = self._text(name)
        if len(self.problems) > before:
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            self._problem(name, f"is not JSON: {error}")
            return None
        if not isinstance(value, dict):
            self._problem(name, "must hold a JSON object")
            return None
        return value

    def _text(self, name: str, *, optional: bool = False) -> str:
        path = self.folder / name
        if optional and not path.is_file():
            return ""
        try:
            with path.open(encoding="utf-8") as source:
                return source.read(_FILE_BYTES)
        except FileNotFoundError:
            self._problem(name, "is missing")
        except UnicodeDecodeError:
            self._problem(name, "cannot be read: it is not UTF-8 text")
        except OSError as error:
            self._problem(name, f"cannot be read: {error.strerror}")
        return ""

    def _problem(self, where: str, text: str) -> None:
        self.problems.append(Problem(where=where, text=text))


def _in_file(name: str, place: Place) -> str:
    return f"{name}: {dotted(place)}" if place else name
