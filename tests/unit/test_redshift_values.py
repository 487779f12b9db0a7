"""Types of Redshift's own, as its protocol writes them: PostgreSQL has none to try them on."""

from __future__ import annotations

from typing import Any

import pytest

from assay_agent.adapters.column_kinds import kind_of
from assay_agent.adapters.redshift_values import LOADERS, label_of

SUPER, VARBYTE = 4000, 6551


@pytest.mark.parametrize(
    ("oid", "written", "value"),
    [
        (SUPER, b'{"a": [1, null, "x"]}', {"a": [1, None, "x"]}),
        (SUPER, b'"text"', "text"),
        (SUPER, b"null", None),
        (SUPER, b"1.5", 1.5),
        (SUPER, b"{broken", "{broken"),
        (VARBYTE, b"00ff", b"\x00\xff"),
        (VARBYTE, b"", b""),
        (VARBYTE, b"xyz", "xyz"),
    ],
)
def test_a_value_is_read_or_stays_text(oid: int, written: bytes, value: Any) -> None:
    found = LOADERS[oid](oid).load(written)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("oid", "label", "kind"),
    [
        (SUPER, "super", "RECORD"),
        (VARBYTE, "varbyte", "BYTES"),
        (3000, "geometry", "STRING"),
        (1190, "interval day to second", "STRING"),
        (23, "int4", "INT64"),
    ],
)
def test_a_type_is_called_as_redshift_calls_it(oid: int, label: str, kind: str) -> None:
    assert label_of(oid, otherwise="int4") == label
    assert kind_of(label) == kind
