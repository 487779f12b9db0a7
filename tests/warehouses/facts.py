"""A fact that was planted in a sample warehouse: the query that shows it, and the sentence it makes true.

`docs/packs/<pack>.md` is written from these, a scripted model asks and says them, and the numbers are compared everywhere.
"""

from __future__ import annotations

import atexit
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Literal

import duckdb

from assay_agent.adapters.samples import SAMPLES, load_sample

Unit = Literal["count", "percent", "plain"]
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """`sql` gives one row; `sentence` names its columns in braces; `areas` are those that would report it.

    `scout` is a pattern of the name of the scout's insight that shows it, None where it takes a query of the field; `scout_shows` are
    the columns whose numbers that insight computes too.
    """

    id: str
    areas: tuple[str, ...]
    purpose: str
    sql: str
    sentence: str
    units: Mapping[str, Unit] = field(default_factory=dict)
    trap: str = ""
    scout: str | None = None
    scout_shows: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Columns that the sentence names, in order."""
        return list(dict.fromkeys(_PLACE.findall(self.sentence)))

    def unit(self, column: str) -> Unit:
        return self.units.get(column) or ("percent" if column.startswith(("share", "rate")) else "count")

    def told(self, row: Mapping[str, Any]) -> str:
        """The sentence with the numbers of a row, printed as figures are."""
        return _PLACE.sub(
            lambda match: printed(row[match.group(1)], self.unit(match.group(1))), self.sentence
        )

    def drafted(self, step: int) -> dict[str, Any]:
        """The sentence as a model writes it: figures instead of numbers."""
        names = {column: f"f{number}" for number, column in enumerate(self.columns, start=1)}
        return {
            "name": _PLACE.sub(lambda match: f"{{{{{names[match.group(1)]}}}}}", self.sentence),
            "description": "**As planted.**",
            "severity": "high",
            "source_steps": [step],
            "figures": [
                {
                    "id": name,
                    "step": step,
                    "kind": "cell",
                    "column": column,
                    "unit": self.unit(column),
                    "decimals": {"count": 0, "percent": 1, "plain": 2}[self.unit(column)],
                }
                for column, name in names.items()
            ],
        }


def printed(value: Any, unit: Unit) -> str:
    match unit:
        case "percent":
            return f"{float(value) * 100:,.1f}%"
        case "plain":
            return f"{float(value):,.2f}"
        case "count":
            return f"{int(value):,}"


@cache
def warehouse(pack: str) -> Path:
    """The sample of a pack, made once per process."""
    folder = Path(mkdtemp(prefix="assay-samples-"))
    atexit.register(rmtree, folder, ignore_errors=True)
    return load_sample(pack, folder)


@cache
def asked(pack: str, sql: str) -> dict[str, Any]:
    """The one row of a query."""
    with duckdb.connect(str(warehouse(pack)), read_only=True) as connection:
        cursor = connection.execute(sql)
        names = [item[0] for item in cursor.description or ()]
        rows = cursor.fetchall()
    assert len(rows) == 1, f"a fact is one row, not {len(rows)}"
    return dict(zip(names, rows[0], strict=True))


def page(pack: str, facts: Sequence[Fact]) -> str:
    """The documentation of a pack's sample."""
    sample = SAMPLES[pack]
    with duckdb.connect(str(warehouse(pack)), read_only=True) as connection:
        tables = connection.execute(
            "SELECT table_name, estimated_size, column_count FROM duckdb_tables() ORDER BY 2 DESC, 1"
        ).fetchall()
    lines = [
        f"# The sample of pack {pack}",
        "",
        f"{sample.name}. Every row is invented, by a seeded script: "
        f"`agent/assay_agent/adapters/samples/{pack.replace('-', '_')}.py`.",
        f"`assay demo --pack {pack}` makes and explores it. Written from `tests/warehouses` by `ASSAY_GOLDEN=write make test`; a test computes every number again.",
        "",
        "| Table | Rows | Columns |",
        "|---|--:|--:|",
        *(f"| {name} | {rows:,} | {columns} |" for name, rows, columns in tables),
        "",
        "## What was planted",
    ]
    for number, fact in enumerate(facts, start=1):
        found = "yes" if fact.scout else "no, it takes the query"
        lines += [
            "",
            f"### {number}. {fact.id.replace('_', ' ').capitalize()}",
            "",
            fact.told(asked(pack, fact.sql)),
            "",
            *([f"The trap: {fact.trap}", ""] if fact.trap else []),
            f"Areas: {', '.join(fact.areas)}. Found by the scout with generic means: {found}.",
            "",
            "```sql",
            fact.sql.strip(),
            "```",
        ]
    return "\n".join(lines) + "\n"
