"""Rows on their way to the server: what a write names, its storable form, its id, its bytes, its batch. Pure.

Used by `fence` for what belongs to a run and by the other modules of the store for what does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import bson
from bson.raw_bson import RawBSONDocument

from assay_core.encoding import canonical
from assay_core.model.document import Document
from assay_core.store.size import LIMIT_BYTES, fit

_BATCH_BYTES = 32 * 1024 * 1024
_BATCH_ROWS = 500


@dataclass(frozen=True, slots=True)
class Put:
    """A row to be replaced under its key (the fields that identify it, or its `_id`); `extra` fields are
    added.
    """

    collection: str
    key: Mapping[str, Any]
    document: Document | Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Insert:
    """A row to be appended."""

    collection: str
    document: Document | Mapping[str, Any]


def storable(value: Any) -> Any:
    """The storable form of a model, a mapping or a plain value, without caveats."""
    return canonical(value.stored() if isinstance(value, Document) else value)[0]


def row_id(key: Mapping[str, Any]) -> Any:
    """The `_id` that belongs to a key: itself when the key is an `_id`, else its values joined by colons.

    The collision that keeps an older attempt out is thereby one of `_id`, and holds without any other index.
    """
    return key["_id"] if "_id" in key else ":".join(str(value) for value in key.values())


def encoded(document: dict[str, Any]) -> RawBSONDocument:
    """A canonical document as bytes, encoded once; made smaller first if the server would refuse it."""
    raw = bson.encode(document)
    if len(raw) > LIMIT_BYTES:
        raw = bson.encode(fit(document))
    return RawBSONDocument(raw)


def batches(
    rows: Iterable[tuple[Put | Insert, RawBSONDocument]],
) -> Iterator[list[tuple[Put | Insert, RawBSONDocument]]]:
    """Rows in order, in batches of at most 32 MiB and 500 rows; the next batch is not encoded before it is
    due.
    """
    batch: list[tuple[Put | Insert, RawBSONDocument]] = []
    size = 0
    for item in rows:
        length = len(item[1].raw)
        if batch and (size + length > _BATCH_BYTES or len(batch) >= _BATCH_ROWS):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += length
    if batch:
        yield batch


def of_tenant(tenant: str | None) -> dict[str, Any]:
    """The condition on rows that were made for one tenant; empty text is "without a filter", None is every tenant.

    Rows without the field were made before it existed: they count as unfiltered, and so reach no tenant.
    """
    if tenant is None:
        return {}
    return {"tenant": tenant or {"$in": ["", None]}}
