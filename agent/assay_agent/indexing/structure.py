"""The digest of a table's structure: a table whose digest is the same is not described again. Pure."""

from __future__ import annotations

import hashlib
import json

from assay_core.model.table import TableSchema


def structure_of(table: TableSchema) -> str:
    """SHA-256 over name, comment and columns in order. Rows, their number and samples are no part of it."""
    parts = [
        table.ref,
        table.comment,
        *(
            [column.name, column.type, column.kind, column.nullable, column.category, column.comment]
            for column in table.columns
        ),
    ]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode(errors="replace")).hexdigest()
