"""Phase 2: the tables a run can see, from the schema cache where that is fresh; else the run indexes first itself.

With `--require-index` an index that is missing, unfinished or too old is an error instead. A run's own index describes by rules,
unless the project names a model for the layer `table_descriptions`; descriptions that a model wrote before are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay_agent.context import RunContext
from assay_agent.evidence.catalog import Catalog, render_catalog
from assay_agent.indexing.describer import Describer, ModelDescriber, RuleDescriber
from assay_agent.indexing.freshness import why_not_fresh
from assay_agent.indexing.job import IndexJob, sample_limits
from assay_agent.indexing.pipeline import index_tables
from assay_agent.indexing.scope import warehouse_hash
from assay_agent.llm.layers import description_choice
from assay_agent.policy import Policy
from assay_core import clock, log
from assay_core.errors import ConfigError, TransientError
from assay_core.model.project import Project
from assay_core.model.table import TableSchema
from assay_core.store.client import Store
from assay_core.store.schema import IndexProgress, TableKey
from assay_core.vectors import names

_logger = log.logger(__name__)
Sample = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Tables by (datasource, ref), and the catalogue for the prompt.

    Samples are the larger half of a cache: with `read_samples` they are left there until a table is looked up.
    """

    tables: Mapping[TableKey, TableSchema]
    catalog: Catalog
    read_samples: Callable[[Sequence[TableKey]], Mapping[TableKey, Sample]] | None = None

    def sampled(self, tables: Sequence[TableSchema]) -> list[TableSchema]:
        """The tables with their samples; without, where the cache does not answer."""
        if self.read_samples is None or not tables:
            return list(tables)
        keys = [(table.datasource_id, table.ref) for table in tables]
        try:
            samples = self.read_samples(keys)
        except TransientError as error:
            _logger.warning("samples not read", error=str(error))
            return list(tables)
        return [
            table.model_copy(update={"sample": samples.get(key, [])})
            for key, table in zip(keys, tables, strict=True)
        ]


def load_schema(ctx: RunContext) -> Schema:
    """The schema of this run; the run document records the catalogue's tokens and the table count."""
    fingerprint = warehouse_hash(ctx.project)
    stale = _stale(ctx, fingerprint)
    if stale is not None:
        if ctx.require_index:
            raise ConfigError(
                f"project {ctx.project.id} has no schema index that can be used ({stale}); run `assay index` or drop "
                "--require-index"
            )
        _logger.info("indexing first", reason=stale)
        index_tables(_own_index(ctx, fingerprint))
    schema = read_schema(
        ctx.store,
        ctx.project,
        policy=ctx.policy,
        keywords=[word for area in ctx.areas for word in area.keywords],
    )
    found = {"schema_tokens": schema.catalog.tokens, "schema_table_count": schema.catalog.table_count}
    ctx.fenced.mark(set=found)
    return schema


def read_schema(store: Store, project: Project, *, policy: Policy, keywords: Sequence[str]) -> Schema:
    """What is cached of a project's tables, and their catalogue."""
    fingerprint = warehouse_hash(project)

    def read_samples(keys: Sequence[TableKey]) -> Mapping[TableKey, Sample]:
        rows = store.schema.rows(project.id, fingerprint, keys)
        return {(row.table.datasource_id, row.table.ref): row.table.sample for row in rows}

    cached = store.schema.tables(project.id, fingerprint, samples=False)
    tables = {(row.table.datasource_id, row.table.ref): row.table for row in cached}
    catalog = render_catalog(
        list(tables.values()),
        keywords=keywords,
        budget_tokens=policy.exploration.catalog_tokens,
        max_keywords=policy.exploration.catalog_keywords,
    )
    return Schema(tables=tables, catalog=catalog, read_samples=read_samples)


def _stale(ctx: RunContext, fingerprint: str) -> str | None:
    """Why the index that is there cannot be used."""
    progress = ctx.store.schema.progress(ctx.project.id)
    cached = ctx.store.schema.count(ctx.project.id, fingerprint) if progress is not None else 0
    return why_not_fresh(
        progress,
        warehouse_hash=fingerprint,
        cached=cached,
        vectors=_vectors(ctx) if cached else None,
        embedding_model=ctx.embedder.model,
        now=clock.now(),
        fresh_s=ctx.policy.index.fresh_s,
    )


def _vectors(ctx: RunContext) -> int | None:
    try:
        return ctx.vectors.count(names.schema(ctx.project.id))
    except TransientError as error:
        _logger.warning("vectors of the tables not counted", error=str(error))
        return None


def _own_index(ctx: RunContext, fingerprint: str) -> IndexJob:
    """The index a run does first itself, under the run's id, budget and deadline."""
    return IndexJob(
        project=ctx.project,
        index_id=ctx.run.id,
        warehouse_hash=fingerprint,
        warehouses=ctx.warehouses,
        store=ctx.store,
        vectors=ctx.vectors,
        embedder=ctx.embedder,
        describer=_describer(ctx),
        policy=ctx.policy.index,
        limits=sample_limits(ctx.policy),
        check=ctx.check,
        tell=lambda progress: _tell(ctx, progress),
        note=ctx.progress.note,
    )


def _tell(ctx: RunContext, progress: IndexProgress) -> None:
    ctx.progress.note(f"indexed {progress.tables_seen} of {progress.tables_total} tables")


def _describer(ctx: RunContext) -> Describer:
    choice = description_choice(ctx.project, inherited=False)
    if choice is None:
        return RuleDescriber(policy=ctx.policy.index)
    return ModelDescriber(model=ctx.model, by=choice.name, policy=ctx.policy.index)
