"""What one index is given, and what it counts. Built by `wiring` for a command of its own, by the schema phase inside a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from assay_agent.indexing.describer import Describer
from assay_agent.indexing.plan import Wanted, failures_allowed
from assay_agent.policy import IndexPolicy, Policy
from assay_agent.ports import Embedder, QueryLimits, VectorIndex, Warehouse
from assay_core.errors import ConfigError
from assay_core.model.project import Project
from assay_core.model.run import ModelUsage
from assay_core.store.client import Store
from assay_core.store.schema import IndexProgress, TableFailure, TableKey


def sample_limits(policy: Policy) -> QueryLimits:
    """What the sample of one table may cost."""
    return QueryLimits(
        rows=policy.index.sample_rows,
        cell_chars=policy.index.sample_cell_chars,
        result_bytes=policy.query.result_bytes,
        timeout_s=policy.index.sample_timeout_s,
        scan_bytes=policy.index.sample_scan_bytes,
    )


def _no_usage() -> Sequence[ModelUsage]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexJob:
    """`index_id` is kept by a later start of the same index. `check` raises when the index must end here.

    `tell` shows progress to a person. Without `needs_vectors` a vector store that is gone costs no more than the search.
    """

    project: Project
    index_id: str
    warehouse_hash: str
    warehouses: Mapping[str, Warehouse]
    store: Store
    vectors: VectorIndex
    embedder: Embedder
    describer: Describer
    policy: IndexPolicy
    limits: QueryLimits
    check: Callable[[], None]
    tell: Callable[[IndexProgress], None]
    note: Callable[[str], None]
    usage: Callable[[], Sequence[ModelUsage]] = _no_usage
    needs_vectors: bool = False
    refresh: bool = False

    @property
    def wanted(self) -> Wanted:
        return Wanted(
            described_by=self.describer.by,
            embedded_by=self.embedder.model,
            index_id=self.index_id,
            refresh=self.refresh,
        )


@dataclass(slots=True)
class Tally:
    """What was done so far, of `total` tables. Touched by one thread alone."""

    total: int
    policy: IndexPolicy
    done: int = 0
    described: int = 0
    unchanged: int = 0
    embedded: int = 0
    embedding_model: str = ""
    """Of every table's vector, once all have one."""
    failed: int = 0
    failures: list[TableFailure] = field(default_factory=list)
    lost: set[TableKey] = field(default_factory=set)
    """Tables that are listed and cannot be described at all: they have no row."""

    def fail(self, key: TableKey, error: str, *, lost: bool = False) -> None:
        """Count a failed table; ConfigError when that is one too many."""
        self.failed += 1
        if lost:
            self.lost.add(key)
        if len(self.failures) < self.policy.failures_listed:
            said = " ".join(error.split())[: self.policy.failure_chars]
            self.failures.append(TableFailure(datasource_id=key[0], ref=key[1], error=said))
        if self.failed > failures_allowed(self.total, self.policy.failures_allowed):
            first = self.failures[0]
            raise ConfigError(
                f"{self.failed} of {self.total} tables could not be indexed, more than the "
                f"{self.policy.failures_allowed:.0%} that may fail; the first, {first.ref}: {first.error}"
            )
