"""What the messages of an exploration say: tables, columns, questions asked and what came back. Pure.

The scout keeps nothing between calls, so that it can be served over HTTP: everything it knows stands in the conversation. A question
carries a stable key at the end of its purpose (`… [group:main.flights:carrier:arr_delay]`), which survives the folding of old turns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay_agent.exploration.conversation import FOLDED_HEADING
from assay_agent.llm.objects import decode
from assay_agent.ports import Message
from assay_agent.scout.keys import keys_in

_CATALOG = re.compile(r"^(?P<ref>.+?) \| (?P<columns>\d+)c \| (?P<rows>\S+) rows \| .*$", re.MULTILINE)
_TABLE = re.compile(r"^### (?P<ref>.+) — (?P<rows>\d+|unknown) rows, (?P<columns>\d+) columns$")
_COLUMN = re.compile(
    r'^(?P<name>"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*) (?P<type>.+) (?P<null>NOT NULL|NULL) \[(?P<category>primary_key|time|metric|dimension)\]$'
)
_SAMPLE = re.compile(r"^Sample: (\{.*\})$")
_ROW_COUNT = re.compile(r"^Step \d+: ok, (\d+) rows")
_BUDGET = re.compile(r"You have (\d+) steps")
_LOOKUPS = re.compile(r"look tables up (\d+) times")
_FOLDED_QUERY = re.compile(
    r"step \d+ query: (?P<purpose>.*?)(?P<cut>… \(truncated, \d+ characters\))? → (?P<came>.*)$"
)
_DIALECT = re.compile(r"^SQL dialect: (\w+)", re.MULTILINE)
_SCALES = {"K": 1e3, "M": 1e6, "B": 1e9}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    category: str
    samples: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose columns are known; `rows` is approximate, None unknown."""

    ref: str
    rows: int | None
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Listed:
    """A table as the catalogue lists it."""

    ref: str
    columns: int
    rows: float


@dataclass(slots=True)
class Situation:
    """Everything the scout knows at this moment."""

    dialect: str = "duckdb"
    max_steps: int = 100
    steps: int = 0
    listed: list[Listed] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    looked_up: list[str] = field(default_factory=list)
    lookups_left: int = 1_000
    asked: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    statements: set[str] = field(default_factory=set)
    """SQL of the turns in view."""
    cut_purposes: set[str] = field(default_factory=set)
    """Purposes of folded turns that were too long to keep their key."""
    results: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def steps_left(self) -> int:
        return self.max_steps - self.steps


def read_situation(messages: Sequence[Message]) -> Situation:
    """Read a whole conversation."""
    situation = Situation()
    text = "\n".join(message.content for message in messages if message.role == "system")
    opening = next((message.content for message in messages if message.role == "user"), "")
    situation.listed = [
        Listed(match["ref"], int(match["columns"]), _rows(match["rows"])) for match in _CATALOG.finditer(text)
    ]
    dialect, budget = _DIALECT.search(opening), _BUDGET.search(opening)
    situation.dialect = dialect.group(1) if dialect else situation.dialect
    lookups = _LOOKUPS.search(opening)
    situation.max_steps = int(budget.group(1)) if budget else situation.max_steps
    situation.lookups_left = int(lookups.group(1)) if lookups else situation.lookups_left
    _read_folded(situation, opening)
    pending: dict[str, Any] = {}
    for message in messages:
        if message.role == "assistant":
            turn = decode(message.content)
            pending = turn if isinstance(turn, dict) else {}
            situation.steps += 1
            situation.asked |= set(keys_in(str(pending.get("query_purpose", ""))))
            situation.statements.add(str(pending.get("query", "")))
            _note_lookup(situation, pending)
        elif message.role == "user" and pending:
            _read_answer(situation, pending, message.content)
            pending = {}
    return situation


def _rows(text: str) -> float:
    if text == "unknown":
        return 0.0
    scale = _SCALES.get(text[-1], 1.0)
    return float(text.rstrip("KMB")) * scale


def _note_lookup(situation: Situation, turn: dict[str, Any]) -> None:
    refs = turn.get("lookup_schema")
    if isinstance(refs, list):
        situation.looked_up += [ref for ref in refs if isinstance(ref, str)]
        situation.lookups_left -= 1


def _read_folded(situation: Situation, opening: str) -> None:
    _, _, folded = opening.partition(FOLDED_HEADING)
    for line in folded.strip().splitlines():
        situation.steps += 1
        query = _FOLDED_QUERY.match(line)
        if query:
            keys = keys_in(query["purpose"])
            situation.asked |= set(keys)
            if query["came"].startswith("failed"):
                situation.failed |= set(keys)
            if query["cut"]:
                situation.cut_purposes.add(query["purpose"])
            continue
        lookup = re.match(r"step \d+ lookup_schema: (.*)$", line)
        if lookup:
            situation.looked_up += [ref.strip() for ref in lookup.group(1).split(",")]
            situation.lookups_left -= 1


def _read_answer(situation: Situation, turn: dict[str, Any], text: str) -> None:
    if "lookup_schema" in turn:
        for table in read_tables(text):
            situation.tables[table.ref] = table
        return
    keys = keys_in(str(turn.get("query_purpose", "")))
    if not keys:
        return
    if _ROW_COUNT.match(text):
        situation.results[keys[-1]] = [
            row
            for line in text.splitlines()
            if line.startswith("{") and isinstance(row := decode(line), dict)
        ]
    else:
        situation.failed.add(keys[-1])


def read_tables(text: str) -> list[Table]:
    """The tables of a lookup reply."""
    found: list[Table] = []
    for block in re.split(r"^(?=### )", text, flags=re.MULTILINE):
        lines = block.splitlines()
        head = _TABLE.match(lines[0]) if lines else None
        if head is None:
            continue
        samples = [
            row
            for line in lines
            if (match := _SAMPLE.match(line)) and isinstance(row := decode(match.group(1)), dict)
        ]
        columns = [
            Column(
                name=(name := json.loads(match["name"]) if match["name"].startswith('"') else match["name"]),
                type=match["type"].upper(),
                category=match["category"],
                samples=tuple(row[name] for row in samples if row.get(name) is not None),
            )
            for line in lines[1:]
            if (match := _COLUMN.match(line))
        ]
        rows = None if head["rows"] == "unknown" else int(head["rows"])
        found.append(Table(ref=head["ref"], rows=rows, columns=tuple(columns)))
    return found
