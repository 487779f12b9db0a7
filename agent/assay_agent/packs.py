"""Load a domain pack from its folder, check it, and say which areas and templates a run uses.

A folder pack is data:

    <pack>/pack.json                       slug, name, version, categories
           prompts/base/                   areas.json, base_context.md, exploration.md, recommendations.md, analysis_*.md
           prompts/categories/<category>/  areas.json, exploration_context.md, analysis_*.md
           profiles/schema.json            and profiles/categories/<category>.json

`wiring` calls `load_pack` and `selected_areas`; a project's own prompts win over the pack's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay_agent.context import Templates
from assay_agent.prompts import variables
from assay_core.errors import ConfigError
from assay_core.model.pack import Area, DomainPack
from assay_core.model.project import Project

_REQUIRED = {
    "base_context": {"PROFILE"},
    "exploration": {"DATASET", "SCHEMA_INFO", "ANALYSIS_AREAS"},
    "recommendations": {"INSIGHTS_DATA"},
}
_AREA_REQUIRED = {"QUERY_RESULTS"}
_PROMPT_CHARS = 60_000
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])")


def pack_folders(extra: Path | None = None) -> dict[str, Path]:
    """Packs that can be loaded by name: those shipped, and those below `extra`."""
    roots = [Path(str(files("assay_agent").joinpath("domain_packs")))] + ([extra] if extra else [])
    return {
        folder.name: folder
        for root in roots
        if root.is_dir()
        for folder in sorted(root.iterdir())
        if (folder / "pack.json").is_file()
    }


def load_pack(name: str, *, extra: Path | None = None) -> DomainPack:
    """A checked pack by slug or by path. Raises ConfigError naming the file or field at fault."""
    folders = pack_folders(extra)
    if _SLUG.fullmatch(name) and name in folders:
        return read_pack(folders[name])
    if (Path(name) / "pack.json").is_file():
        return read_pack(Path(name))
    raise ConfigError(f"domain pack {name!r} not found; available: {', '.join(sorted(folders)) or 'none'}")


def read_pack(folder: Path) -> DomainPack:
    """Read and check a pack folder."""
    head = _json(folder / "pack.json")
    categories = [str(item.get("id")) for item in head.get("categories", []) if isinstance(item, dict)]
    base = folder / "prompts" / "base"
    document = {
        **head,
        "prompts": {
            "base": {name: _text(base / f"{name}.md") for name in _REQUIRED},
            "categories": {
                category: {
                    "exploration_context": _optional(
                        folder / "prompts/categories" / category / "exploration_context.md"
                    )
                }
                for category in categories
            },
        },
        "analysis_areas": {
            "base": _areas(base),
            "categories": {
                category: _areas(folder / "prompts/categories" / category) for category in categories
            },
        },
        "profile_schema": {
            "base": _json(folder / "profiles/schema.json", optional=True),
            "categories": {
                category: _json(folder / "profiles/categories" / f"{category}.json", optional=True)
                for category in categories
            },
        },
    }
    try:
        pack = DomainPack.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"domain pack {folder.name}: {where}: {first['msg']}") from error
    problems = check_pack(pack)
    if problems:
        raise ConfigError(f"domain pack {folder.name}: {problems[0]}")
    return pack


def check_pack(pack: DomainPack) -> list[str]:
    """What is wrong with a pack, one line each; empty when it can be used."""
    problems = [] if pack.categories else ["categories: at least one is needed"]
    for name, required in _REQUIRED.items():
        missing = required - variables(getattr(pack.prompts.base, name))
        problems += [
            f"prompts/base/{name}.md must contain {{{{{variable}}}}}" for variable in sorted(missing)
        ]
    if not pack.analysis_areas.base:
        problems.append("prompts/base/areas.json: at least one area is needed")
    areas = [
        *pack.analysis_areas.base,
        *(area for group in pack.analysis_areas.categories.values() for area in group),
    ]
    for area in areas:
        missing = _AREA_REQUIRED - variables(area.prompt)
        problems += [
            f"area {area.id}: its prompt must contain {{{{{variable}}}}}" for variable in sorted(missing)
        ]
        if not area.keywords:
            problems.append(f"area {area.id}: keywords: at least one is needed")
        if len(area.prompt) > _PROMPT_CHARS:
            problems.append(f"area {area.id}: its prompt is longer than {_PROMPT_CHARS} characters")
    return problems


def selected_areas(pack: DomainPack, project: Project, wanted: Sequence[str]) -> tuple[Area, ...]:
    """Areas of this run by priority: the pack's base and category areas, the project's overrides, then the selection."""
    if project.category not in {category.id for category in pack.categories}:
        known = ", ".join(category.id for category in pack.categories)
        raise ConfigError(f"category {project.category!r} is not one of pack {pack.slug}'s: {known}")
    areas = {area.id: area for area in pack.analysis_areas.base}
    areas |= {area.id: area for area in pack.analysis_areas.categories.get(project.category, [])}
    for area_id, override in (project.prompts.analysis_areas if project.prompts else {}).items():
        if not override.enabled:
            areas.pop(area_id, None)
            continue
        kept = areas.get(area_id)
        fields = override.model_dump(exclude={"is_base", "is_custom", "enabled"}, exclude_defaults=True)
        areas[area_id] = Area.model_validate({**(kept.model_dump() if kept else {}), **fields, "id": area_id})
    unknown = sorted(set(wanted) - set(areas))
    if unknown:
        raise ConfigError(
            f"--areas: {', '.join(unknown)} unknown; pack {pack.slug} has {', '.join(sorted(areas))}"
        )
    chosen = [area for area in areas.values() if not wanted or area.id in wanted]
    if not chosen:
        raise ConfigError(f"no analysis area is enabled; pack {pack.slug} has {', '.join(sorted(areas))}")
    return tuple(sorted(chosen, key=lambda area: (area.priority, area.id)))


def templates(pack: DomainPack, project: Project) -> Templates:
    """The three texts of a run."""
    own = project.prompts
    context = pack.prompts.categories.get(project.category)
    exploration = pack.prompts.base.exploration
    if context and context.exploration_context:
        exploration = f"{exploration}\n\n{context.exploration_context}"
    return Templates(
        base_context=(own and own.base_context) or pack.prompts.base.base_context,
        exploration=(own and own.exploration) or exploration,
        recommendations=(own and own.recommendations) or pack.prompts.base.recommendations,
    )


def _areas(folder: Path) -> list[dict[str, Any]]:
    """Areas of a folder, the text of each prompt file in place of its name."""
    listing = folder / "areas.json"
    if not listing.is_file():
        return []
    areas = _json(listing).get("areas", [])
    return [
        {**area, "prompt": _text(folder / str(area["prompt_file"]))}
        if isinstance(area, dict) and "prompt_file" in area
        else area
        for area in areas
    ]


def _json(path: Path, *, optional: bool = False) -> dict[str, Any]:
    if optional and not path.is_file():
        return {}
    try:
        value = json.loads(_text(path))
    except ValueError as error:
        raise ConfigError(f"domain pack file {_shown(path)} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"domain pack file {_shown(path)} must hold a JSON object")
    return value


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"domain pack file {_shown(path)} is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"domain pack file {_shown(path)} cannot be read: {type(error).__name__}"
        ) from error


def _optional(path: Path) -> str:
    return _text(path) if path.is_file() else ""


def _shown(path: Path) -> str:
    """The path from the pack's own folder on."""
    return "/".join(path.parts[-4:])
