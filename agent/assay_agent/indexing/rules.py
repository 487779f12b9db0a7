"""One description per table by rules, without a model. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay_core.model.table import ColumnCategory, TableSchema

BY_RULES = "rules"
"""What `described_by` says of such a description."""
_DESCRIBED_COLUMNS = 40
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LABELS: Mapping[ColumnCategory, str] = {
    "primary_key": "Key",
    "time": "Time",
    "metric": "Measures",
    "dimension": "Attributes",
}


def describe_by_rules(table: TableSchema) -> str:
    """Name in words, columns by category, the comment if there is one. Says nothing that a new row would change."""
    by_category: dict[ColumnCategory, list[str]] = {}
    for column in table.columns[:_DESCRIBED_COLUMNS]:
        by_category.setdefault(column.category, []).append(in_words(column.name))
    parts = [f"{name_in_words(table.ref)}: {len(table.columns)} columns."]
    parts += [
        f"{label}: {', '.join(by_category[key])}." for key, label in _LABELS.items() if key in by_category
    ]
    if table.comment:
        parts.append(" ".join(table.comment.split()))
    return " ".join(parts)


def name_in_words(ref: str) -> str:
    """`sales.OrderItems` → `order items`."""
    return in_words(ref.rsplit(".", 1)[-1])


def in_words(name: str) -> str:
    """A name as it would be read: `customer_id` → `customer id`, `orderDate` → `order date`."""
    return " ".join(_HUMP.sub(" ", name.strip('"`').replace("_", " ").replace("-", " ")).lower().split())
