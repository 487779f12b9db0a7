"""`assay packs list|show|validate|import|export|new`: look at domain packs, check one, and move them between installations.

A pack in a folder needs no import: name its folder in ASSAY_DOMAIN_PACKS. Imported ones live in MongoDB, for installations whose
agents share no disk.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from assay_agent.cli.terminal import console
from assay_agent.cli.verbs import verbs_of
from assay_agent.packs import (
    Shelf,
    examine,
    merged_schema,
    packed,
    unpacked,
    write_skeleton,
)
from assay_agent.packs.folders import Examined
from assay_agent.settings import AgentSettings
from assay_agent.stores import Stores, open_for_reading
from assay_agent.wiring import open_shelf
from assay_core.errors import ConfigError
from assay_core.model.pack import Area, DomainPack

_EXIT_PROBLEMS = 10
_FILE_BYTES = 16_000_000
"""A pack larger than a MongoDB document could not be stored."""


def add_commands(packs: argparse.ArgumentParser, shared: argparse.ArgumentParser) -> None:
    """The verbs of `assay packs`."""
    verb = verbs_of(packs, shared)

    verb("list", "Packs that can be used, with their categories and areas", show_list).add_argument(
        "--json", action="store_true", help="print JSON"
    )
    one = verb("show", "One pack: its areas, and the fields of a project's profile", show)
    one.add_argument("pack", help="a pack's name or its folder")
    one.add_argument("--category", help="areas and profile of one category")
    checking = verb("validate", "Name everything that is wrong with a pack's folder or file", validate)
    checking.add_argument("path", type=Path, metavar="DIR|FILE")
    importing = verb("import", "Store a pack in MongoDB, where every agent finds it", import_pack)
    importing.add_argument("path", type=Path, metavar="DIR|FILE")
    importing.add_argument("--replace", action="store_true", help="take the place of an imported one")
    exporting = verb("export", "Write a pack as one file", export_pack)
    exporting.add_argument("pack", help="a pack's name or its folder")
    exporting.add_argument("path", type=Path, metavar="FILE")
    making = verb("new", "Write the folder of a new pack, to be filled", new)
    making.add_argument("name", help="lower-case letters, digits and hyphens")
    making.add_argument("--dir", type=Path, default=Path(), help="where the folder is made (here)")


def show_list(arguments: argparse.Namespace) -> int:
    """`assay packs list`."""
    with _shelf(arguments) as shelf:
        found = shelf.all()
    rows = [
        {
            "name": item.pack.slug,
            "version": item.pack.version,
            "source": item.source,
            "categories": [category.id for category in item.pack.categories],
            "areas": {
                "base": [area.id for area in _ordered(item.pack.analysis_areas.base)],
                "categories": {
                    category: [area.id for area in _ordered(areas)]
                    for category, areas in item.pack.analysis_areas.categories.items()
                },
            },
        }
        for item in found
    ]
    if arguments.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return 0
    table = Table(box=None, pad_edge=False)
    for heading in ("PACK", "VERSION", "FROM", "CATEGORIES", "AREAS"):
        table.add_column(heading, overflow="fold")
    for item in found:
        names = [category.id for category in item.pack.categories]
        cells = (item.pack.slug, item.pack.version, item.source, ", ".join(names), _areas_in_short(item.pack))
        table.add_row(*(escape(cell) for cell in cells))
    console().print(table)
    return 0


def _areas_in_short(pack: DomainPack) -> str:
    base = ", ".join(area.id for area in _ordered(pack.analysis_areas.base))
    own = [
        f"{category}: {', '.join(area.id for area in _ordered(areas))}"
        for category, areas in pack.analysis_areas.categories.items()
        if areas
    ]
    return "; ".join([base, *own])


def show(arguments: argparse.Namespace) -> int:
    """`assay packs show PACK`."""
    with _shelf(arguments) as shelf:
        pack = shelf.load(arguments.pack)
    known = [category.id for category in pack.categories]
    if arguments.category is not None and arguments.category not in known:
        raise ConfigError(
            f"--category {arguments.category!r} is not one of pack {pack.slug}'s: {', '.join(known)}"
        )
    shown = [arguments.category] if arguments.category else known
    out = console()
    out.print(f"[bold]{escape(pack.slug)}[/bold] {escape(pack.version)}  {escape(pack.name)}")
    out.print(pack.description, markup=False)
    out.print("\n[bold]Areas[/bold]")
    _print_areas("every category", pack.analysis_areas.base)
    for category in shown:
        _print_areas(category, pack.analysis_areas.categories.get(category, []))
    out.print("\n[bold]Fields of a profile[/bold]")
    base = dict(_fields(pack.profile_schema.base))
    _print_fields("every category", base)
    for category in shown:
        merged = _fields(merged_schema(pack, category))
        _print_fields(category, {name: told for name, told in merged if base.get(name) != told})
    return 0


def _print_areas(heading: str, areas: list[Area]) -> None:
    if areas:
        console().print(f"  {heading}", markup=False)
    for area in _ordered(areas):
        console().print(f"    {area.priority:>2}  {area.id}: {area.description}", markup=False)


def _print_fields(heading: str, fields: Mapping[str, str]) -> None:
    if fields:
        console().print(f"  {heading}", markup=False)
    for name, told in fields.items():
        console().print(f"    {name}: {told}", markup=False)


def _fields(schema: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, str]]:
    """Every field of a profile with its type, choices and meaning, groups opened."""
    for name, part in schema.get("properties", {}).items():
        if not isinstance(part, Mapping):
            continue
        if part.get("properties"):
            yield from _fields(part, f"{at}{name}.")
            continue
        items = part.get("items")
        choices = part.get("enum") or (items.get("enum") if isinstance(items, Mapping) else None)
        kind = str(part.get("type", "one of" if choices else "anything"))
        of = f" ({', '.join(map(str, choices))})" if choices else ""
        meaning = f", {part['description']}" if part.get("description") else ""
        yield f"{at}{name}", f"{kind}{of}{meaning}"


def validate(arguments: argparse.Namespace) -> int:
    """`assay packs validate DIR|FILE`: each problem on its own line."""
    examined = _examined(arguments.path)
    if examined.pack is None:
        for problem in examined.problems:
            print(problem, file=sys.stderr)
        count = len(examined.problems)
        print(
            f"error: {arguments.path} has {count} problem{'s' if count > 1 else ''}, named above",
            file=sys.stderr,
        )
        return _EXIT_PROBLEMS
    console().print(f"ok: {_in_one_line(examined.pack)}", markup=False)
    return 0


def import_pack(arguments: argparse.Namespace) -> int:
    """`assay packs import DIR|FILE`."""
    pack = _sound(arguments.path)
    settings = AgentSettings.load()
    if pack.slug in open_shelf(settings, None).folders():
        raise ConfigError(
            f"pack {pack.slug} is in a folder already, which would win; give it another slug in pack.json"
        )
    stores = Stores(home=arguments.home, settings=settings)
    try:
        store = stores.start().ready(with_vectors=False).store
        if arguments.replace:
            store.packs.replace(pack)
        elif not store.packs.add(pack):
            raise ConfigError(
                f"a pack {pack.slug} is imported already; --replace takes its place, or give this one another slug"
            )
    finally:
        stores.close()
    console().print(f"imported: {_in_one_line(pack)}", markup=False)
    return 0


def export_pack(arguments: argparse.Namespace) -> int:
    """`assay packs export PACK FILE`."""
    with _shelf(arguments) as shelf:
        pack = shelf.load(arguments.pack)
    unfinished = arguments.path.with_name(arguments.path.name + ".part")
    try:
        unfinished.write_text(packed(pack), encoding="utf-8")
        os.replace(unfinished, arguments.path)
    except OSError as error:
        raise ConfigError(f"{arguments.path} cannot be written: {error.strerror}") from error
    console().print(f"written: {arguments.path}", markup=False, soft_wrap=True)
    return 0


def new(arguments: argparse.Namespace) -> int:
    """`assay packs new NAME`."""
    folder = write_skeleton(arguments.name, arguments.dir)
    console().print(f"written: {folder}; check it with: assay packs validate {folder}", soft_wrap=True)
    return 0


def _sound(path: Path) -> DomainPack:
    examined = _examined(path)
    if examined.pack is None:
        more = len(examined.problems) - 1
        also = f" (and {more} more: assay packs validate {path})" if more else ""
        raise ConfigError(f"{examined.problems[0]}{also}")
    return examined.pack


def _examined(path: Path) -> Examined:
    if path.is_dir():
        return examine(path)
    try:
        with path.open(encoding="utf-8") as source:
            return unpacked(source.read(_FILE_BYTES), name=path.name)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"{path} cannot be read: {why}; give a pack's folder or an exported file"
        ) from error


@contextmanager
def _shelf(arguments: argparse.Namespace) -> Iterator[Shelf]:
    """The packs of this installation; stores are opened only where something may have been imported."""
    settings = AgentSettings.load()
    if not settings.mongodb_uri and not (arguments.home / "mongodb").is_dir():
        yield open_shelf(settings, None)
        return
    with open_for_reading(home=arguments.home, settings=settings) as stores:
        yield open_shelf(settings, stores.store)


def _in_one_line(pack: DomainPack) -> str:
    areas = len(pack.analysis_areas.base) + sum(
        len(group) for group in pack.analysis_areas.categories.values()
    )
    return f"{pack.slug} {pack.version}, {len(pack.categories)} categories, {areas} areas"


def _ordered(areas: list[Area]) -> list[Area]:
    return sorted(areas, key=lambda area: (area.priority, area.id))
