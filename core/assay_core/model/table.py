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
    """A row of `project_schema_cache`: one table of a project's warehouse, with its description for search.

    `structure` is the digest of what was described, `described_by` the rules or a model, `index_id` the index that did it.
    `embedded_by` names the model of its vector, empty where it has none. A `problem` makes the next index try again.
    """

    project_id: str
    warehouse_hash: str
    table: TableSchema
    description: str = ""
    keywords: list[str] = []
    structure: str = ""
    described_by: str = ""
    index_id: str = ""
    embedded_by: str = ""
    problem: str | None = None
    cached_at: datetime
