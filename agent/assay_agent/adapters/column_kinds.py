"""From a warehouse's type label and a column's name to our normalised kind and category. Pure, for every SQL adapter."""

from __future__ import annotations

import re
from functools import lru_cache

from assay_core.model.table import ColumnCategory

_RULES: tuple[tuple[str, str], ...] = (
    (r"\[\]|^(list|array|struct|map|record|row|union|variant|json|jsonb|hstore|super|_\w+)\b", "RECORD"),
    (r"^(timestamp|datetime|timestamptz|timestamp_\w+)", "TIMESTAMP"),
    (r"^date\b", "DATE"),
    (r"^(bool|boolean|bit\(1\))", "BOOL"),
    (r"^(blob|bytea|binary|varbinary|varbyte|bytes|image)", "BYTES"),
    (
        r"^(tiny|small|medium|big|huge|u(tiny|small|big|huge)?)?int(eger)?\d*\b|^int\d|^(small|big)?serial|^long\b",
        "INT64",
    ),
    (r"^(float|double|real|(big)?(decimal|numeric)|number|money|dec)\w*", "FLOAT64"),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in _RULES)
_CODE_NAME = re.compile(
    r"(?i:(^|_)(id|key|uuid|guid|code|zip|zipcode|postal|phone|year|month|day|hour|minute|quarter|week|flag|status|type)$)"
    r"|(?i:^(is|has)_)|(?<=[a-z])I[dD]$|(?i:^(flight|number|no)$)|(?i:_(no|number|nr)$)"
)
_TIME_NAME = re.compile(r"(?i)(^|_)(date|time|timestamp|datetime|created|updated|modified)$|_(at|on|ts)$")


@lru_cache(maxsize=1_024)
def kind_of(label: str) -> str:
    """STRING INT64 FLOAT64 BOOL TIMESTAMP DATE BYTES or RECORD; what is not known is a STRING."""
    text = label.strip()
    return next((kind for pattern, kind in _COMPILED if pattern.search(text)), "STRING")


def category_of(name: str, *, kind: str, primary_key: bool) -> ColumnCategory:
    """What a column is for. A declared key wins; numbers that name something (codes, years) are dimensions."""
    if primary_key:
        return "primary_key"
    if kind in ("TIMESTAMP", "DATE"):
        return "time"
    if kind == "STRING" and _TIME_NAME.search(name):
        return "time"
    if kind in ("INT64", "FLOAT64") and not _CODE_NAME.search(name):
        return "metric"
    return "dimension"
