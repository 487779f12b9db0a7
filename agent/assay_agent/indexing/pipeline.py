"""One index, from listing to the last row. The only effectful order of things in this package.

    list ─► per 500 tables: describe ─► plan ─► unchanged: keep │ embed again │ per 64: sample ─► description ─► embed ─► store

A row is stored after its vector, so that a row says what is done; what an index that died had stored is not done again. A
description that was paid for is stored at once. Memory holds the names and digests of all tables, the columns of 500 and the
samples of 64.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from assay_agent.indexing.describer import Description
from assay_agent.indexing.job import IndexJob, Tally
from assay_agent.indexing.plan import Plan, key_of, what_is_left
from assay_agent.indexing.structure import structure_of
from assay_agent.indexing.table_vectors import TableVectors
from assay_agent.ports import TableRef, Warehouse
from assay_core import clock, log
from assay_core.encoding import json_value
from assay_core.errors import AssayError, ConfigError, QueryError, StopRequested, TransientError
from assay_core.model.table import CachedTable, TableSchema
from assay_core.store import faults
from assay_core.store.schema import IndexProgress, KnownTable, KnownTables, TableKey

_logger = log.logger(__name__)
Item = TypeVar("Item")


def index_tables(job: IndexJob) -> IndexProgress:
    """Bring cache and vectors in line with the warehouses; returns what was done. Raises what ended it early, recorded."""
    report = _Report(job)
    report.start()
    try:
        done = _index(job, report)
    except (AssayError, StopRequested) as error:
        report.failed(error)
        raise
    return report.completed(done)


@dataclass(slots=True)
class _Report:
    """Progress, history and the project's own word of its index."""

    job: IndexJob
    last: IndexProgress | None = None
    written: float = field(default=0.0)

    def start(self) -> None:
        """Go on with an unfinished index of the same id: its first start and what it spent stay."""
        job = self.job
        before = job.store.schema.progress(job.project.id)
        again = before is not None and before.run_id == job.index_id
        self.last = IndexProgress(
            project_id=job.project.id,
            run_id=job.index_id,
            warehouse_hash=job.warehouse_hash,
            described_by=job.describer.by,
            attempt=before.attempt + 1 if before is not None and again else 1,
            started_at=before.started_at if before is not None and again else clock.now(),
            usage=list(job.usage()),
        )
        job.store.schema.report(self.last)
        job.store.projects.set_index_status(job.project.id, "indexing")

    def so_far(self, tally: Tally) -> None:
        """Written and told at most once in `report_every_s`."""
        if time.monotonic() - self.written < self.job.policy.report_every_s:
            return
        self._write(tally, status="running")
        assert self.last is not None
        self.job.tell(self.last)

    def completed(self, tally: Tally) -> IndexProgress:
        """The project's word first: an index that dies between the two is not finished, and says both again."""
        self.job.store.projects.set_index_status(self.job.project.id, "ready")
        self._write(tally, status="completed", completed_at=clock.now())
        assert self.last is not None
        return self.last

    def failed(self, error: BaseException) -> None:
        """What ended it, as far as it can still be written."""
        assert self.last is not None
        failed = self.last.model_copy(
            update={"status": "failed", "error": str(error), "usage": list(self.job.usage())}
        )
        try:
            self.job.store.schema.report(failed)
            self.job.store.projects.set_index_status(self.job.project.id, "failed", error=str(error))
        except AssayError as failure:
            _logger.error("end of the index not recorded", error=str(failure))

    def _write(self, tally: Tally, **fields: Any) -> None:
        assert self.last is not None
        self.last = self.last.model_copy(
            update={
                "tables_total": tally.total,
                "tables_done": tally.done,
                "tables_described": tally.described,
                "tables_unchanged": tally.unchanged,
                "tables_embedded": tally.embedded,
                "tables_failed": tally.failed,
                "failures": list(tally.failures),
                "embedding_model": tally.embedding_model,
                "usage": list(self.job.usage()),
                **fields,
            }
        )
        self.written = time.monotonic()
        self.job.store.schema.report(self.last)


def _index(job: IndexJob, report: _Report) -> Tally:
    listed = {name: warehouse.tables() for name, warehouse in job.warehouses.items()}
    tally = Tally(total=sum(len(tables) for tables in listed.values()), policy=job.policy)
    if not tally.total:
        sources = ", ".join(job.warehouses)
        raise ConfigError(
            f"the warehouse ({sources}) has no tables that this user can see; load data or grant SELECT"
        )
    vectors = TableVectors(job)
    cached = job.store.schema.known(job.project.id, job.warehouse_hash)
    known = vectors.prepare(cached.tables)
    with ThreadPoolExecutor(max_workers=job.policy.threads, thread_name_prefix="table") as pool:
        for name, refs in listed.items():
            step = _Step(job, job.warehouses[name], known, vectors, tally, report, pool)
            for batch in _batches(refs, job.policy.describe_batch):
                step.index(batch)
    tally.embedding_model = job.embedder.model if vectors.in_use else ""
    _forget_gone(job, vectors, cached, _keys(listed) - tally.lost)
    return tally


@dataclass(frozen=True, slots=True)
class _Step:
    """What every batch of one datasource needs."""

    job: IndexJob
    warehouse: Warehouse
    known: Mapping[TableKey, KnownTable]
    vectors: TableVectors
    tally: Tally
    report: _Report
    pool: ThreadPoolExecutor

    def index(self, refs: Sequence[TableRef]) -> None:
        """One batch of listed tables."""
        job = self.job
        job.check()
        counts = {ref.ref: ref.row_count for ref in refs}
        tables = [
            table.model_copy(
                update={"row_count": counts[table.ref], "datasource_id": self.warehouse.datasource_id}
            )
            for table in self._columns([ref.ref for ref in refs])
        ]
        plan = what_is_left(tables, self.known, job.wanted)
        self._keep(plan)
        for chunk in _batches(plan.embed, job.policy.embed_batch):
            self._embed_again(chunk)
        for chunk in _batches(plan.describe, job.policy.embed_batch):
            self._describe(chunk)

    @property
    def _touch_after(self) -> timedelta:
        return timedelta(seconds=self.job.policy.touch_after_s)

    def _columns(self, refs: Sequence[str]) -> list[TableSchema]:
        """The tables' columns; a batch that is refused is halved until the tables at fault are alone."""
        try:
            return list(self.warehouse.describe(refs))
        except QueryError as error:
            if len(refs) > 1:
                middle = len(refs) // 2
                return self._columns(refs[:middle]) + self._columns(refs[middle:])
            self.tally.fail((self.warehouse.datasource_id, refs[0]), str(error), lost=True)
            return []

    def _keep(self, plan: Plan) -> None:
        if not plan.unchanged:
            return
        job = self.job
        now = clock.now()
        keys = [key_of(table) for table in plan.unchanged]
        counts = {key_of(table): table.row_count for table in plan.unchanged}
        job.store.schema.touch(
            job.project.id,
            job.warehouse_hash,
            [key for key in keys if now - self.known[key].cached_at > self._touch_after],
            at=now,
            row_counts={key: count for key, count in counts.items() if count != self.known[key].row_count},
        )
        self.tally.done += len(keys)
        self.tally.unchanged += len(keys)
        self.report.so_far(self.tally)

    def _embed_again(self, tables: Sequence[TableSchema]) -> None:
        """Tables whose description is there and whose vector is not, or is of another model."""
        job = self.job
        job.check()
        rows = job.store.schema.rows(job.project.id, job.warehouse_hash, [key_of(table) for table in tables])
        counts = {key_of(table): table.row_count for table in tables}
        self._store(
            [
                row.model_copy(
                    update={
                        "cached_at": clock.now(),
                        "table": row.table.model_copy(update={"row_count": counts[key_of(row.table)]}),
                    }
                )
                for row in rows
            ]
        )
        self.tally.unchanged += len(rows)

    def _describe(self, tables: Sequence[TableSchema]) -> None:
        self.job.check()
        futures = [self.pool.submit(self._described, table) for table in tables]
        rows: list[CachedTable] = []
        try:
            for future in futures:
                row = future.result()
                self._count(row)
                rows.append(row)
        finally:
            for future in futures:
                future.cancel()
        self._store(rows)

    def _count(self, row: CachedTable) -> None:
        self.tally.described += 1
        if row.problem is not None:
            self.tally.fail(key_of(row.table), row.problem)
        self.report.so_far(self.tally)

    def _described(self, table: TableSchema) -> CachedTable:
        """One table, sampled and described; in a thread of its own."""
        job = self.job
        job.check()
        sample, problem = self._sample(table)
        sampled = table.model_copy(update={"sample": sample})
        description = job.describer.describe(sampled)
        row = self._row(sampled, description, problem or description.problem)
        if job.describer.is_paid:
            job.store.schema.put([row])
            faults.reach("after:description")
        return row

    def _row(self, table: TableSchema, description: Description, problem: str | None) -> CachedTable:
        return CachedTable(
            project_id=self.job.project.id,
            warehouse_hash=self.job.warehouse_hash,
            table=table,
            description=description.text,
            keywords=description.keywords,
            structure=structure_of(table),
            described_by=description.by,
            index_id=self.job.index_id,
            problem=problem,
            cached_at=clock.now(),
        )

    def _sample(self, table: TableSchema) -> tuple[list[dict[str, Any]], str | None]:
        """First rows, and why there are none. A source that is gone raises; one table that does not answer is its own failure."""
        try:
            result = self.warehouse.sample(table.ref, limits=self.job.limits)
        except QueryError as error:
            return [], None if error.kind == "scan_bytes" else f"cannot be read: {error}"
        except TransientError as error:
            self.warehouse.check()
            return [], f"cannot be read: {error}"
        columns = [column.name for column in result.columns]
        return [json_value(dict(zip(columns, row, strict=True))) for row in result.rows], None

    def _store(self, rows: Sequence[CachedTable]) -> None:
        """Vectors first: a row that says it has one has one."""
        embedded = self.vectors.add(rows)
        faults.reach("before:tables")
        self.job.store.schema.put(embedded)
        faults.reach("after:tables")
        self.tally.done += len(rows)
        self.tally.embedded += len(rows) if self.vectors.in_use else 0
        self.report.so_far(self.tally)


def _forget_gone(job: IndexJob, vectors: TableVectors, cached: KnownTables, kept: set[TableKey]) -> None:
    """Tables that are no longer there, and rows of another warehouse; vectors first, so that what is left is found again."""
    gone = [key for key in cached.tables if key not in kept]
    vectors.remove([*gone, *(key for key in cached.foreign if key not in kept)])
    for batch in _batches(gone, job.policy.describe_batch):
        job.store.schema.forget(job.project.id, job.warehouse_hash, batch)
    if cached.foreign:
        job.store.schema.forget_others(job.project.id, job.warehouse_hash)


def _keys(listed: dict[str, Sequence[TableRef]]) -> set[TableKey]:
    return {(name, table.ref) for name, tables in listed.items() for table in tables}


def _batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
