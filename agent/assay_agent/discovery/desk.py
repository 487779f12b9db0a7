"""The schema desk: answers lookups and searches during exploration, and keeps their budgets.

One per exploration. Lookups read what the schema phase loaded and the samples from the schema cache (no warehouse traffic),
searches embed once and query the index once. A replay goes through the same desk, which is how a resumed run gets its budgets
and its "already shown" back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from assay_agent.context import RunContext
from assay_agent.discovery.schema import Schema
from assay_agent.exploration.messages import lookup_message, search_message
from assay_agent.ports import Hit
from assay_core import log
from assay_core.errors import TransientError
from assay_core.model.table import TableSchema
from assay_core.vectors import names

_logger = log.logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model is told, which tables that shows, and how many there were."""

    text: str
    tables: tuple[str, ...] = ()
    count: int = 0


@dataclass(slots=True)
class SchemaDesk:
    """`lookups` and `searches` count calls, failed ones too."""

    ctx: RunContext
    schema: Schema
    lookups: int = 0
    searches: int = 0
    _by_name: dict[str, list[TableSchema]] = field(default_factory=dict)
    _columns: dict[tuple[str, str], int] = field(default_factory=dict)
    """Columns of every table that was shown."""

    def __post_init__(self) -> None:
        for table in self.schema.tables.values():
            for name in {_plain(table.ref), _plain(table.ref.split(".", 1)[-1])}:
                self._by_name.setdefault(name, []).append(table)

    def lookup(self, refs: Sequence[str], *, visible: set[str], datasource_id: str | None) -> Answer:
        """Columns and samples of the named tables; those still visible are only named again, and free."""
        policy = self.ctx.policy.exploration
        found, missing = self._resolve(refs, datasource_id)
        known = [table.ref for table in found if table.ref in visible]
        wanted = [table for table in found if table.ref not in visible]
        if wanted or missing or not known:
            if self.lookups >= policy.lookup_calls:
                return Answer(
                    text=f"No lookups are left; {policy.lookup_calls} were used. Query the tables you have seen."
                )
            self.lookups += 1
        shown = wanted[: policy.lookup_tables_per_call]
        self._columns |= {(table.datasource_id, table.ref): len(table.columns) for table in shown}
        text = lookup_message(
            self.schema.sampled(shown),
            known=known,
            missing=missing,
            dropped=[table.ref for table in wanted[policy.lookup_tables_per_call :]],
            calls_left=policy.lookup_calls - self.lookups,
            policy=policy,
        )
        return Answer(text=text, tables=tuple(table.ref for table in shown), count=len(shown))

    def limitation(self) -> str | None:
        """How many columns of the tables looked up were never shown, as a sentence; None where all were."""
        most = self.ctx.policy.exploration.lookup_columns
        unseen = sum(max(count - most, 0) for count in self._columns.values())
        if not unseen:
            return None
        return (
            f"{unseen:,} of {sum(self._columns.values()):,} columns of the tables looked up were not looked at: "
            f"a lookup shows the first {most} columns of a table"
        )

    def _resolve(self, refs: Sequence[str], datasource_id: str | None) -> tuple[list[TableSchema], list[str]]:
        found: list[TableSchema] = []
        missing: list[str] = []
        for ref in refs:
            table = self.find(ref, datasource_id)
            if table is None:
                missing.append(ref)
            elif table not in found:
                found.append(table)
        return found, missing

    def find(self, ref: str, datasource_id: str | None = None) -> TableSchema | None:
        """A table by reference, in any case; by bare name only where that is unambiguous."""
        name = _plain(ref)
        candidates = self._by_name.get(name) or self._by_name.get(name.split(".", 1)[-1], [])
        if datasource_id is not None:
            candidates = [table for table in candidates if table.datasource_id == datasource_id]
        exact = [table for table in candidates if _plain(table.ref) == name]
        chosen = exact or candidates
        return chosen[0] if len(chosen) == 1 else None

    def search(self, text: str, top_k: int | None) -> Answer:
        """Tables whose description is near the text."""
        policy = self.ctx.policy.exploration
        if self.searches >= policy.search_calls:
            return Answer(text=f"No searches are left; {policy.search_calls} were used.")
        self.searches += 1
        count = min(max(top_k or policy.search_top_k, 1), policy.search_top_k_max)
        vector = self.ctx.embedder.embed([text])[0]
        try:
            hits = self.ctx.vectors.search(names.schema(self.ctx.project.id), vector, top_k=count)
        except TransientError as error:
            _logger.warning("tables not searched", error=str(error))
            return Answer(
                text="The search is not available now. Choose tables from the list and look them up."
            )
        known = [hit for hit in map(self._current, hits) if hit is not None]
        return Answer(
            text=search_message(known, calls_left=policy.search_calls - self.searches), count=len(known)
        )

    def _current(self, hit: Hit) -> Hit | None:
        """The hit with the row count of the cache, which is kept up; None for a table that is not there any more."""
        key = (str(hit.payload.get(names.DATASOURCE, "default")), str(hit.payload.get(names.TABLE)))
        table = self.schema.tables.get(key)
        if table is None:
            return None
        return replace(hit, payload={**hit.payload, names.ROW_COUNT: table.row_count})

    def hint(self, refs: Sequence[str]) -> str:
        """Columns of the named tables for a repair prompt, a line each."""
        tables = [table for ref in refs if (table := self.find(ref)) is not None]
        return "\n".join(
            f"{table.ref}({', '.join(f'{column.name} {column.type}' for column in table.columns[:50])})"
            for table in tables[:10]
        )


def _plain(ref: str) -> str:
    """A reference without quotes and case, as models write it in many ways."""
    return ref.replace('"', "").replace("`", "").lower()
