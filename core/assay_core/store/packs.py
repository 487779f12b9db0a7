"""Imported domain packs: the collection `domain_packs`, one row per slug. Written by `assay packs import` alone."""

from __future__ import annotations

import builtins
from typing import Any

from pymongo.database import Database

from assay_core import clock
from assay_core.model.pack import DomainPack
from assay_core.store import names
from assay_core.store.rows import storable
from assay_core.store.translate import DuplicateKey, translated


class Packs:
    """The collection `domain_packs`."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self._rows = database[names.DOMAIN_PACKS]

    def add(self, pack: DomainPack) -> bool:
        """Store a pack; False when its slug is taken."""
        at = clock.now()
        try:
            with translated():
                self._rows.insert_one(
                    {"_id": pack.slug, **storable(pack), "created_at": at, "updated_at": at}
                )
        except DuplicateKey:
            return False
        return True

    def replace(self, pack: DomainPack) -> None:
        """Store a pack, in place of the one that has its slug."""
        at = clock.now()
        fields = {**storable(pack), "updated_at": at}
        with translated():
            kept = self._rows.find_one({"_id": pack.slug}, {"created_at": 1}) or {}
            self._rows.replace_one(
                {"_id": pack.slug}, {**fields, "created_at": kept.get("created_at", at)}, upsert=True
            )

    def get(self, slug: str) -> DomainPack | None:
        with translated():
            found = self._rows.find_one({"_id": slug})
        return DomainPack.read(found) if found else None

    def list(self, limit: int = 1_000) -> builtins.list[DomainPack]:
        """By slug."""
        with translated():
            return [DomainPack.read(row) for row in self._rows.find().sort("_id").limit(limit)]
