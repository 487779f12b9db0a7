"""The tables' vectors during one index: brought in line with what the cache says, filled, rid of tables that are gone.

Where a job does not need vectors, the first failure of their store or of the embedder ends their use and is said once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from assay_agent.indexing.job import IndexJob
from assay_agent.indexing.rules import BY_RULES, name_in_words
from assay_agent.ports import Point
from assay_core import log
from assay_core.errors import TransientError
from assay_core.model.table import CachedTable
from assay_core.store.schema import KnownTable, TableKey
from assay_core.vectors import names

_logger = log.logger(__name__)


def embedded_text(row: CachedTable) -> str:
    """What stands for a table in the search: its description, led by its name in words, and its keywords."""
    text = row.description
    if row.described_by != BY_RULES:
        text = f"{name_in_words(row.table.ref)}: {text}"
    return f"{text} {', '.join(row.keywords)}".rstrip()


class TableVectors:
    """Used by one index, from one thread."""

    def __init__(self, job: IndexJob) -> None:
        self._job = job
        self._collection = names.schema(job.project.id)
        self.in_use = True

    def prepare(self, known: Mapping[TableKey, KnownTable]) -> dict[TableKey, KnownTable]:
        """A collection of the right size that holds what the cache says it holds; else an empty one, and a cache that says so.

        Returns what is known from then on. Without vectors what is described is as good as done.
        """
        whole: list[bool] = []
        self._unless_gone(lambda: whole.append(self._prepare(known)))
        if not self.in_use:
            return {key: replace(found, embedded_by=self._job.embedder.model) for key, found in known.items()}
        return (
            dict(known) if whole[0] else {key: replace(found, embedded_by="") for key, found in known.items()}
        )

    def add(self, rows: Sequence[CachedTable]) -> list[CachedTable]:
        """Embed and put; returns the rows with what they were embedded by."""
        if not self._unless_gone(lambda: self._put(rows)):
            return [row.model_copy(update={"embedded_by": ""}) for row in rows]
        return [row.model_copy(update={"embedded_by": self._job.embedder.model}) for row in rows]

    def remove(self, keys: Sequence[TableKey]) -> None:
        points = [names.table_point_id(self._job.project.id, *key) for key in keys]
        for start in range(0, len(points), self._job.policy.describe_batch):
            batch = points[start : start + self._job.policy.describe_batch]
            self._unless_gone(partial(self._job.vectors.delete, self._collection, batch))

    def _prepare(self, known: Mapping[TableKey, KnownTable]) -> bool:
        job = self._job
        by_model = Counter(found.embedded_by for found in known.values() if found.embedded_by)
        mine = by_model[job.embedder.model]
        whole = 0 < mine == by_model.total() and job.vectors.count(self._collection) >= mine
        if not whole:
            if by_model:
                job.store.schema.forget_vectors(job.project.id)
            job.vectors.drop(self._collection)
        job.vectors.ensure_collection(self._collection, job.embedder.dimensions)
        return whole

    def _put(self, rows: Sequence[CachedTable]) -> None:
        vectors = self._job.embedder.embed([embedded_text(row) for row in rows])
        points = [self._point(row, vector) for row, vector in zip(rows, vectors, strict=True)]
        self._job.vectors.upsert(self._collection, points)

    def _point(self, row: CachedTable, vector: Sequence[float]) -> Point:
        table = row.table
        return Point(
            id=names.table_point_id(self._job.project.id, table.datasource_id, table.ref),
            vector=vector,
            payload={
                names.TABLE: table.ref,
                names.DATASOURCE: table.datasource_id,
                names.ROW_COUNT: table.row_count,
                names.COLUMN_COUNT: len(table.columns),
                names.DESCRIPTION: row.description,
                names.KEYWORDS: row.keywords,
                names.BLURB_MODEL: row.described_by,
                names.EMBEDDING_MODEL: self._job.embedder.model,
            },
        )

    def _unless_gone(self, do: Callable[[], None]) -> bool:
        if not self.in_use:
            return False
        try:
            do()
        except TransientError as error:
            if self._job.needs_vectors or error.dependency == "mongodb":
                raise
            self.in_use = False
            _logger.warning("tables not indexed for search", error=str(error))
            self._job.note(f"tables cannot be searched in this run: {error}")
            return False
        return True
