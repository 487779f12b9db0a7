"""A digest as the analysis prompt shows it, and the parts an insight is built from. Pure.

Every number goes into an insight as a figure that the engine computes again; `Draft` hands out figure ids.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay_agent.evidence.filters import as_number, as_text
from assay_agent.scout.keys import keys_in, parts_of
from assay_agent.scout.roles import humanised


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One step: its family, the parts of its key, and its rows (head and tail where there are many)."""

    step: int
    family: str
    parts: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    row_count: int

    @property
    def table(self) -> str:
        return self.parts[0]

    @property
    def whole(self) -> bool:
        """Whether every row is here."""
        return len(self.rows) == self.row_count


def exhibit_of(entry: dict[str, Any]) -> Exhibit | None:
    """The exhibit of a digest whose purpose ends in a key of ours."""
    keys = keys_in(str(entry.get("purpose", "")))
    if not keys or len(key := parts_of(keys[-1])) < 2:
        return None
    rows = entry.get("rows") or [*entry.get("head", []), *entry.get("tail", [])]
    return Exhibit(
        step=int(entry["step"]),
        family=key[0],
        parts=key[1:],
        rows=tuple(row for row in rows if isinstance(row, dict)),
        row_count=int(entry.get("row_count", len(rows))),
    )


def number(row: dict[str, Any], column: str) -> float:
    """A cell as a number, NaN where it is none."""
    value = as_number(row.get(column))
    return float("nan") if value is None else float(value)


def where(column: str, value: Any) -> str:
    """A row filter that keeps the row with this value."""
    name = _quoted(column)
    if value is None:
        return f"{name} IS NULL"
    if isinstance(value, bool) or as_number(value) is None or isinstance(value, str):
        text = as_text(value).replace("'", "''")
        return f"{name} = '{text}'"
    return f"{name} = {json.dumps(value)}"


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


@dataclass(slots=True)
class Draft:
    """An insight in the making. `effect` (0 to 1) is how large the finding is; it decides rank and severity."""

    exhibit: Exhibit
    effect: float
    sample: float
    figures: list[dict[str, Any]] = field(default_factory=list)

    def cell(
        self,
        column: str,
        row: str | None = None,
        *,
        unit: str = "plain",
        value: Any = None,
        decimals: int | None = None,
    ) -> str:
        """A reference to one cell."""
        return self._add(kind="cell", column=column, row=row, unit=unit, value=value, decimals=decimals)

    def label(self, column: str, value: Any) -> str:
        """A reference to the cell that names a group."""
        return self._add(
            kind="cell", column=column, row=where(column, value), unit="plain", value=None, decimals=None
        )

    def share(self, column: str, row: str | None = None) -> str:
        return self._add(kind="cell", column=column, row=row, unit="percent", value=None, decimals=None)

    def rows(self, column: str) -> str:
        """A reference to the number of rows that have a value in the column."""
        return self._add(kind="count", column=column, row=None, unit="count", value=None, decimals=None)

    def difference(self, column: str, row: str, other_row: str, *, decimals: int | None = None) -> str:
        return self._add(
            kind="diff",
            column=column,
            row=row,
            other=f"{_quoted(column)} where {other_row}",
            unit="plain",
            value=None,
            decimals=decimals,
        )

    def ratio(self, column: str, row: str, other_row: str, *, unit: str = "multiple") -> str:
        return self._add(
            kind="ratio",
            column=column,
            row=row,
            other=f"{_quoted(column)} where {other_row}",
            unit=unit,
            value=None,
            decimals=None,
        )

    def _add(self, **fields: Any) -> str:
        given = {key: value for key, value in fields.items() if value is not None}
        for figure in self.figures:
            if {key: value for key, value in figure.items() if key not in ("id", "step")} == given:
                return "{{" + str(figure["id"]) + "}}"
        identifier = f"f{len(self.figures) + 1}"
        self.figures.append({"id": identifier, "step": self.exhibit.step, **given})
        return "{{" + identifier + "}}"

    def insight(
        self,
        *,
        name: str,
        takeaway: str,
        details: Sequence[str] = (),
        affected: float = 0,
        segment: str = "",
        indicators: Sequence[str] = (),
        metrics: dict[str, Any] | None = None,
        echoes: Sequence[tuple[str, ...]] = (),
    ) -> dict[str, Any]:
        """The insight with its rank beside it; `echoes` name what a weaker finding would only say again."""
        weighed = self.effect * weight(self.sample)
        body = f"**{takeaway}**"
        if details:
            body += "\n\n" + "\n".join(f"- {line}" for line in details)
        return {
            "name": name,
            "description": body,
            "severity": severity(weighed),
            "affected_count": 0 if math.isnan(affected) else int(affected),
            "risk_score": round(min(max(weighed, 0.0), 1.0), 3),
            "confidence": confidence(self.sample),
            "metrics": metrics or {},
            "indicators": list(indicators),
            "target_segment": segment,
            "source_steps": [self.exhibit.step],
            "figures": self.figures,
            "echoes": list(echoes),
        }


def severity(effect: float) -> str:
    for least, word in ((0.75, "critical"), (0.45, "high"), (0.2, "medium")):
        if effect >= least:
            return word
    return "low"


def weight(sample: float) -> float:
    """What rests on few records counts for less."""
    return 0.6 if sample < 30 else 0.8 if sample < 100 else 1.0


def confidence(sample: float) -> float:
    """By the number of records behind the finding."""
    for least, value in ((10_000, 0.95), (1_000, 0.9), (100, 0.75), (30, 0.6)):
        if sample >= least:
            return value
    return 0.4


def said(name: str) -> str:
    """A column in prose: the number of a thing is spoken of as the thing."""
    return humanised(re.sub(r"(?<=\w\w)_id$", "", name, flags=re.IGNORECASE))


def sentence(text: str) -> str:
    """The text with a capital first letter; the rest stays, since names may carry capitals of their own."""
    return text[:1].upper() + text[1:]


def mean_of(measure: str) -> str:
    """`mean price`; a column that calls itself a mean is not called so twice."""
    name = said(measure)
    return name if name.split()[0].lower() in ("mean", "avg", "average") else f"mean {name}"


def table_name(ref: str) -> str:
    return humanised(ref.rsplit(".", 1)[-1])


def with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
