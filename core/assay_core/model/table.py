"""A warehouse table as the schema cache keeps it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from assay_core.model.document import Document

ColumnCategory = Literal["primary_key", "time", "metric", "dimension"]


class ColumnSchema(Document):
    """`type` is the warehouse's own label (an unknown type stays a label), `kind` the normalised one."""

    name: str
    type: str
    kind: str = "STRING"
    nullable: bool = True
    category: ColumnCategory = "dimension"
    comment: str = ""


class TableSchema(Document):
    """`ref` is how queries and lookups name the table (`schema.table`); `row_count` is approximate, None unknown."""

    ref: str
    columns: list[ColumnSchema]
    row_count: int | None = None
    comment: str = ""
    sample: list[dict[str, Any]] = []
    datasource_id: str = "default"


class CachedTable(Document):
    """A row of `project_schema_cache`: one table of a project's warehouse, with its description for search."""

    project_id: str
    warehouse_hash: str
    table: TableSchema
    description: str = ""
    keywords: list[str] = []
    cached_at: datetime
