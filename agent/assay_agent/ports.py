"""The seams of the agent: what a warehouse, a model, an embedder, a vector index and a secret provider must do.

Protocols and the frozen values they exchange; implementations live in `adapters/` (or in an installed package) and are
found by entry point. Every implementation passes the contract suite of its port in `tests/contract/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from assay_core.model.step import Caveat, ResultColumn
from assay_core.model.table import TableSchema
from assay_core.store.client import Store

# ---------------------------------------------------------------------------------------------------- warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """What one statement may cost. The model cannot raise any of it.

    `scan_bytes` is what a source that bills by bytes may read for it; None leaves that to the source's own limit.
    """

    rows: int
    cell_chars: int
    result_bytes: int
    timeout_s: float
    scan_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """Rows of one statement, in the order returned, cut to the limits.

    `rows` are tuples aligned with `columns`, whose names are unique (`n`, `n_2`, …). Values are the driver's Python
    values (Decimal, datetime, bytes, list, dict …); `assay_core.encoding.canonical` makes them storable. `truncated` says that
    more rows existed than were kept; every cut also stands in `caveats`. `bytes_scanned` is what the source billed.
    """

    columns: tuple[ResultColumn, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False
    duration_ms: int = 0
    caveats: tuple[Caveat, ...] = ()
    bytes_scanned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRef:
    """A table as listed: `ref` (`schema.table`), the number of columns, approximate rows (None: unknown)."""

    ref: str
    column_count: int
    row_count: int | None


@runtime_checkable
class Warehouse(Protocol):
    """A read-only SQL source. Safe to call from several threads.

    Errors: `QueryError` when the statement is at fault (its text is shown to the model), `TransientError` (dependency
    "warehouse") when the source is unreachable, `ConfigError` when credentials or settings are wrong.
    """

    @property
    def datasource_id(self) -> str: ...
    @property
    def dialect(self) -> str:
        """The sqlglot dialect name: duckdb, sqlite, postgres, bigquery, redshift."""
        ...

    @property
    def datasets(self) -> tuple[str, ...]:
        """Schemas or datasets in scope, in order."""
        ...

    def check(self) -> str:
        """Prove that the source answers; returns one line naming product and version."""
        ...

    def tables(self) -> Sequence[TableRef]:
        """Every table and view in scope, system ones excluded, sorted by `ref`."""
        ...

    def describe(self, refs: Sequence[str]) -> Sequence[TableSchema]:
        """Columns of the named tables, without samples; an unknown type becomes a label, never an error."""
        ...

    def sample(self, ref: str, *, limits: QueryLimits) -> QueryResult:
        """The first `limits.rows` rows as the source gives them."""
        ...

    def execute(self, sql: str, *, limits: QueryLimits) -> QueryResult:
        """Run one statement that has passed the guard."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Privileges on one thing, as the source names both: `("INSERT", "UPDATE")` on `table public.orders`."""

    on: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """What a source says that a credential may do beyond reading, itself and by every role it could take.

    `proof` says in a few words how the source was asked. Names are the source's; whether they matter is judged elsewhere.
    """

    user: str
    attributes: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    privileges: tuple[Grant, ...] = ()
    proof: str = ""


@runtime_checkable
class Inspectable(Protocol):
    """A warehouse that can say what its credential may do. One that cannot is recorded as not proven."""

    def grants(self) -> Grants | None:
        """None where the source was asked and does not say."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MiddlewareContext:
    project_id: str


WarehouseMiddleware = Callable[[Warehouse, MiddlewareContext], Warehouse]
"""Wraps a warehouse and returns one; applied in configured order, the first named is the innermost."""


class Meter(Protocol):
    """What a source bills for questions of its own (catalogue, samples) is counted where the run's budget is.

    The bytes of `execute` are not among them: they stand in its result, and whoever asked counts them.
    """

    def left(self) -> int | None:
        """Bytes that may still be billed; None where there is no limit."""
        ...

    def bill(self, scanned: int) -> None:
        """Count bytes that have been billed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WarehouseSettings:
    """What an adapter's `open_warehouse(settings)` receives. `secret` is never logged (and not in `repr`).

    `labels` say for whom a statement runs, to a source that keeps such a note (`run`, `attempt`, `project`). `meter` is None
    where no run pays.
    """

    datasource_id: str
    provider: str
    datasets: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    meter: Meter | None = field(default=None, repr=False, compare=False)
    secret: str | None = field(default=None, repr=False)


# ------------------------------------------------------------------------------------------------ language model

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


FinishReason = Literal["stop", "length", "refusal", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call; `None` is unknown, never zero. `estimated` marks our own count."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """`layer` says what the call is for: exploration, analysis, recommendations, sql_fix, table_descriptions."""

    layer: str
    messages: tuple[Message, ...]
    max_output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """`text` may be empty; `reasoning` is what a provider sent apart from it."""

    text: str
    finish: FinishReason = "stop"
    reasoning: str = ""
    usage: Usage = Usage()


class LanguageModel(Protocol):
    """Errors: `TransientError` (dependency "model"), `ModelRefusal`, `ConfigError` (key, model name), never an SDK's."""

    @property
    def provider(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def context_tokens(self) -> int:
        """Input window in tokens."""
        ...

    def complete(self, request: CompletionRequest) -> Completion: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """What an adapter's `open_model(settings)` receives. `secret_key` is how the user calls the secret; times in seconds."""

    provider: str
    model: str
    config: Mapping[str, Any] = field(default_factory=dict)
    secret: str | None = field(default=None, repr=False)
    secret_key: str = "llm-api-key"
    timeout_s: float = 300.0
    tries: int = 3
    backoff_s: float = 5.0
    request_delay_s: float = 0.0


# ------------------------------------------------------------------------------------------- embedder and vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderSettings:
    """What an adapter's `open_embedder(settings)` receives; times in seconds."""

    provider: str = ""
    model: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    secret: str | None = field(default=None, repr=False)
    secret_key: str = "embedding-api-key"
    timeout_s: float = 300.0
    tries: int = 3
    backoff_s: float = 5.0


class Embedder(Protocol):
    """Deterministic text embedding. Vectors have length `dimensions` and unit norm."""

    @property
    def model(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    def embed(self, texts: Sequence[str]) -> list[list[float]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """`id` is a UUID string; `payload` is JSON."""

    id: str
    vector: Sequence[float]
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    id: str
    score: float
    payload: Mapping[str, Any]


class VectorIndex(Protocol):
    """Cosine similarity over named collections. Errors: `TransientError` (dependency "vectors"), `ConfigError` (size)."""

    def ensure_collection(self, name: str, dimensions: int) -> None: ...
    def collections(self) -> list[str]: ...
    def upsert(self, name: str, points: Sequence[Point]) -> None: ...
    def search(
        self,
        name: str,
        vector: Sequence[float],
        *,
        top_k: int,
        equals: Mapping[str, Any] | None = None,
        excluding: Mapping[str, Sequence[Any]] | None = None,
        min_score: float | None = None,
    ) -> list[Hit]:
        """Best first. `equals`: payload fields that must match; `excluding`: fields that must be none of the values."""
        ...

    def count(self, name: str) -> int: ...
    def delete(self, name: str, ids: Sequence[str]) -> None: ...
    def drop(self, name: str) -> None:
        """Remove a collection; one that does not exist is no error."""
        ...

    def close(self) -> None: ...


# -------------------------------------------------------------------------------------------------------- secrets


class SecretProvider(Protocol):
    """Looks secrets up by key (`llm-api-key`, `llm-api-key-<id>`, `warehouse-credentials`, `embedding-api-key`)."""

    def get(self, *, project_id: str, key: str) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSettings:
    """What an adapter's `open_provider(settings)` receives; `store` is None where a command opens none.

    `config` is the variables of a provider by their names without `SECRET_`, in lower case; those that are not set are not in it.
    """

    namespace: str = "assay"
    config: Mapping[str, str] = field(default_factory=dict)
    encryption_key: str | None = field(default=None, repr=False)
    store: Store | None = None
