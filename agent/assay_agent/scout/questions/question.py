"""What a question is, and the bounds that the statements and the writer of findings share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay_agent.scout.keys import told

GROUPS_SHOWN = 100
"""More than a dimension has values: the last row is the lowest group, not merely the last one shown."""
ROWS_SHOWN = 20
Results = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Smaller `priority` is asked first; `key` is unique and stable."""

    key: str
    priority: float
    purpose: str
    sql: str

    @property
    def told(self) -> str:
        """The purpose with its key, as it goes into `query_purpose`."""
        return told(self.purpose, self.key)


def minimum_rows(rows: int) -> int:
    """Rows a group needs to be spoken of: enough for its mean to be steady."""
    for size, least in ((100_000, 1_000), (10_000, 100), (1_000, 30), (200, 10)):
        if rows >= size:
            return least
    return 3
