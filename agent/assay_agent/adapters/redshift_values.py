"""Types that Redshift has of its own: how they are called and how their values become Python's. Called by `redshift`."""

from __future__ import annotations

from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.json import JsonLoader

from assay_agent.adapters import postgres_values
from assay_agent.adapters.postgres_values import OrText

_SUPER = 4000
_VARBYTE = 6551
_LABELS = {
    1188: "interval year to month",
    1190: "interval day to second",
    2935: "hllsketch",
    3000: "geometry",
    3001: "geography",
    3999: "geometry",
    _SUPER: "super",
    _VARBYTE: "varbyte",
}
"""By oid."""


def label_of(oid: int, *, otherwise: str) -> str:
    """The name of a type of Redshift's own, else what the driver calls it."""
    return _LABELS.get(oid, otherwise)


class _Super(OrText):
    inner = JsonLoader


class _Hex(Loader):
    def load(self, data: Buffer) -> bytes:
        return bytes.fromhex(bytes(data).decode())


class _VarByte(OrText):
    inner = _Hex


LOADERS: dict[str | int, type[Loader]] = {**postgres_values.LOADERS, _SUPER: _Super, _VARBYTE: _VarByte}
