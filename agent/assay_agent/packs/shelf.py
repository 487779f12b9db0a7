"""Which pack a name means: a shipped folder, a folder below ASSAY_DOMAIN_PACKS, then a pack that was imported.

`wiring` and the command line make a `Shelf`; `imported` reads the store, and is asked only when no folder has the name.
A pack that is not published is there only for who asks for it: the shipped one tests a system, not a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from assay_agent.packs.checking import newer_format
from assay_agent.packs.folders import read_pack
from assay_core.errors import ConfigError
from assay_core.model.pack import DomainPack

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])")
_HIDDEN = "system-test"
_SWITCH = "ASSAY_ENABLE_SYSTEM_TEST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelved:
    """A pack and where it is kept."""

    pack: DomainPack
    source: Literal["shipped", "folder", "imported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Every place packs are kept. `imported` gives one by slug, `all_imported` every one; without a store, none."""

    extra: Path | None = None
    system_test: bool = False
    imported: Callable[[str], DomainPack | None] = lambda _slug: None
    all_imported: Callable[[], Sequence[DomainPack]] = tuple

    def folders(self) -> dict[str, Path]:
        """Packs that can be loaded by name from a folder; a shipped one wins."""
        shipped = _packs_below(_shipped())
        if not self.system_test:
            shipped.pop(_HIDDEN, None)
        return (_packs_below(self.extra) if self.extra else {}) | shipped

    def load(self, name: str) -> DomainPack:
        """A checked pack by slug, or by the path of its folder. Raises ConfigError naming what is wrong."""
        folders = self.folders()
        if _SLUG.fullmatch(name):
            if name in folders:
                return read_pack(folders[name])
            stored = self.imported(name)
            if stored is not None:
                return _readable(stored)
        if (Path(name) / "pack.json").is_file():
            return read_pack(Path(name))
        if name == _HIDDEN:
            raise ConfigError(f"domain pack {name!r} is there only with {_SWITCH}=true")
        known = sorted({*folders, *(pack.slug for pack in self.all_imported())})
        raise ConfigError(f"domain pack {name!r} not found; available: {', '.join(known) or 'none'}")

    def all(self) -> list[Shelved]:
        """Every pack that can be loaded by name, by slug."""
        shipped = _shipped()
        found = {
            name: Shelved(pack=read_pack(folder), source="shipped" if folder.parent == shipped else "folder")
            for name, folder in self.folders().items()
        }
        for pack in self.all_imported():
            found.setdefault(pack.slug, Shelved(pack=pack, source="imported"))
        return [found[name] for name in sorted(found)]


def _readable(pack: DomainPack) -> DomainPack:
    """The pack, unless a newer program stored it in a form that this one does not know."""
    newer = newer_format({"format_version": pack.format_version})
    if newer:
        raise ConfigError(f"domain pack {pack.slug}: {newer}")
    return pack


def _shipped() -> Path:
    return Path(str(files("assay_agent").joinpath("domain_packs")))


def _packs_below(root: Path) -> dict[str, Path]:
    if not root.is_dir():
        return {}
    return {folder.name: folder for folder in sorted(root.iterdir()) if (folder / "pack.json").is_file()}
