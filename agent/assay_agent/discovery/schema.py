"""Phase 2: the tables a run can see, from the schema cache, or read from the warehouse when the project has none.

A run that finds no cache indexes first itself, unless `--require-index` makes that an error. Indexing lists, describes and
samples every table, writes a description by rules, embeds it for `search_tables`, and fills the cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from assay_agent.context import RunContext
from assay_agent.evidence.catalog import Catalog, render_catalog, render_rows
from assay_agent.ports import Point, QueryLimits, Warehouse
from assay_core import clock, log
from assay_core.encoding import json_value
from assay_core.errors import ConfigError, QueryError, TransientError
from assay_core.model.project import Datasource, Project
from assay_core.model.table import CachedTable, TableSchema
from assay_core.store.schema import IndexProgress
from assay_core.vectors import names

_logger = log.logger(__name__)
_DESCRIBED_COLUMNS = 40
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Tables by (datasource, ref), and the catalogue for the prompt."""

    tables: Mapping[tuple[str, str], TableSchema]
    catalog: Catalog


def datasources_of(project: Project) -> tuple[Datasource, ...]:
    """The project's datasources; a legacy single `warehouse` counts as one called `default`."""
    if project.datasources:
        return tuple(project.datasources)
    if project.warehouse is not None:
        return (Datasource.model_validate({"id": "default", **project.warehouse.model_dump()}),)
    raise ConfigError(f"project {project.id} has no datasource; set `datasources` (provider and config)")


def warehouse_hash(project: Project) -> str:
    """SHA-256 over what decides which tables a project sees; secrets are not part of it."""
    parts = [
        {
            "id": source.id,
            "provider": source.provider,
            "project_id": source.project_id,
            "location": source.location,
            "datasets": sorted(source.datasets),
            "filter": [
                source.filter_field,
                source.filter_value,
                *(sorted(source.tenant_columns.items()) + [[name] for name in sorted(source.shared_tables)]),
            ],
            "config": source.config,
        }
        for source in datasources_of(project)
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def load_schema(ctx: RunContext) -> Schema:
    """The schema of this run; the run document records the catalogue's tokens and the table count."""
    fingerprint = warehouse_hash(ctx.project)
    cached = ctx.store.schema.tables(ctx.project.id, fingerprint)
    progress = ctx.store.schema.progress(ctx.project.id)
    if progress is not None and progress.status != "completed":
        cached = []  # whoever was indexing died on the way: what is there is not the whole schema
    if not cached:
        if ctx.require_index:
            raise ConfigError(
                f"project {ctx.project.id} has no schema index; run `assay index` or drop --require-index"
            )
        cached = index_schema(ctx, fingerprint)
    tables = {(row.table.datasource_id, row.table.ref): row.table for row in cached}
    keywords = [word for area in ctx.areas for word in area.keywords]
    policy = ctx.policy.exploration
    catalog = render_catalog(
        list(tables.values()),
        keywords=keywords,
        budget_tokens=policy.catalog_tokens,
        max_keywords=policy.catalog_keywords,
    )
    ctx.fenced.mark(set={"schema_tokens": catalog.tokens, "schema_table_count": catalog.table_count})
    return Schema(tables=tables, catalog=catalog)


def index_schema(ctx: RunContext, fingerprint: str) -> list[CachedTable]:
    """Read every datasource and fill cache and vector collection. A few unreadable tables are tolerated."""
    tables: list[TableSchema] = []
    for warehouse in ctx.warehouses.values():
        tables += _read_tables(ctx, warehouse)
    if not tables:
        sources = ", ".join(ctx.warehouses)
        raise ConfigError(
            f"the warehouse ({sources}) has no tables that this user can see; load data or grant SELECT"
        )
    progress = IndexProgress(
        project_id=ctx.project.id, run_id=ctx.run.id, tables_total=len(tables), started_at=clock.now()
    )
    ctx.store.schema.report(progress)
    rows = [
        CachedTable(
            project_id=ctx.project.id,
            warehouse_hash=fingerprint,
            table=table,
            description=describe_table(table)[: ctx.policy.index.description_chars],
            cached_at=clock.now(),
        )
        for table in tables
    ]
    _index_tables(ctx, rows)
    ctx.store.schema.drop(ctx.project.id)
    ctx.store.schema.put(rows)
    ctx.store.schema.report(progress.model_copy(update={"status": "completed", "tables_done": len(rows)}))
    return rows


def _index_tables(ctx: RunContext, rows: Sequence[CachedTable]) -> None:
    """The tables' vectors. Without a vector store the model chooses tables from the catalogue alone."""
    collection = names.schema(ctx.project.id)
    size = ctx.policy.index.embed_batch
    done = 0
    try:
        ctx.vectors.drop(collection)
        ctx.vectors.ensure_collection(collection, ctx.embedder.dimensions)
        for batch in _batches(rows, size):
            ctx.check()
            vectors = ctx.embedder.embed([row.description for row in batch])
            points = [_point(ctx, row, vector) for row, vector in zip(batch, vectors, strict=True)]
            ctx.vectors.upsert(collection, points)
            done += len(batch)
            if len(rows) > size:
                ctx.progress.note(f"indexed {done} of {len(rows)} tables")
    except TransientError as error:
        _logger.warning("tables not indexed for search", error=str(error))
        ctx.progress.note(f"tables cannot be searched in this run: {error}")


def _read_tables(ctx: RunContext, warehouse: Warehouse) -> list[TableSchema]:
    listed = warehouse.tables()
    counts = {table.ref: table.row_count for table in listed}
    limits = QueryLimits(
        rows=ctx.policy.index.sample_rows,
        cell_chars=ctx.policy.exploration.lookup_cell_chars * 4,
        result_bytes=ctx.policy.query.result_bytes,
        timeout_s=ctx.policy.index.sample_timeout_s,
        scan_bytes=ctx.policy.index.sample_scan_bytes,
    )
    tables: list[TableSchema] = []
    failures: list[str] = []
    for batch in _batches([table.ref for table in listed], ctx.policy.index.describe_batch):
        ctx.check()
        for table in warehouse.describe(batch):
            try:
                sample = _sample(warehouse, table.ref, limits)
            except (QueryError, TransientError) as error:
                if not (isinstance(error, QueryError) and error.kind == "scan_bytes"):
                    failures.append(f"{table.ref}: {error}")
                sample = []
            tables.append(
                table.model_copy(
                    update={
                        "sample": sample,
                        "row_count": counts.get(table.ref),
                        "datasource_id": warehouse.datasource_id,
                    }
                )
            )
        if len(listed) > ctx.policy.index.describe_batch:
            ctx.progress.note(f"read {len(tables)} of {len(listed)} tables")
    if failures:
        _logger.warning("tables could not be sampled", count=len(failures), first=failures[0])
    if len(failures) > max(1, ctx.policy.index.failures_allowed * len(tables)):
        raise ConfigError(f"{len(failures)} of {len(tables)} tables cannot be read; the first: {failures[0]}")
    return tables


def _sample(warehouse: Warehouse, ref: str, limits: QueryLimits) -> list[dict[str, Any]]:
    result = warehouse.sample(ref, limits=limits)
    columns = [column.name for column in result.columns]
    return [json_value(dict(zip(columns, row, strict=True))) for row in result.rows]


def describe_table(table: TableSchema) -> str:
    """A description by rules: name in words, what it counts, columns by category, the comment if there is one. Pure."""
    words = table.ref.rsplit(".", 1)[-1].replace("_", " ")
    by_category: dict[str, list[str]] = {}
    for column in table.columns[:_DESCRIBED_COLUMNS]:
        by_category.setdefault(column.category, []).append(column.name.replace("_", " "))
    parts = [f"{words}: {render_rows(table.row_count)} rows, {len(table.columns)} columns."]
    labels = {"primary_key": "Key", "time": "Time", "metric": "Measures", "dimension": "Attributes"}
    parts += [
        f"{label}: {', '.join(by_category[key])}." for key, label in labels.items() if key in by_category
    ]
    if table.comment:
        parts.append(table.comment)
    return " ".join(parts)


def _point(ctx: RunContext, row: CachedTable, vector: Sequence[float]) -> Point:
    table = row.table
    return Point(
        id=names.table_point_id(ctx.project.id, table.datasource_id, table.ref),
        vector=vector,
        payload={
            names.TABLE: table.ref,
            names.DATASOURCE: table.datasource_id,
            names.ROW_COUNT: table.row_count,
            names.COLUMN_COUNT: len(table.columns),
            "description": row.description,
            names.EMBEDDING_MODEL: ctx.embedder.model,
        },
    )


def _batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
