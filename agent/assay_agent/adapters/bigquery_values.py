"""BigQuery's types as labels, and its cells as values that can be stored. Pure; called by `bigquery`.

A nested field keeps its place in the label (`ARRAY<STRUCT<sku STRING, quantity INT64>>`); what its owner wrote about it is
told by its path (`items[].sku`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from google.cloud.bigquery import SchemaField

LABEL_CHARS = 1_000
"""Characters of one type's label: a record may have thousands of fields."""
_STANDARD = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}


def label_of(field: SchemaField) -> str:
    """The type as standard SQL writes it, with its parts, lengths and precision."""
    label = _label(field)
    return label if len(label) <= LABEL_CHARS else label[: LABEL_CHARS - 1] + "…"


def _label(field: SchemaField) -> str:
    name = _STANDARD.get(field.field_type, field.field_type)
    if name == "STRUCT":
        name += f"<{', '.join(f'{part.name} {_label(part)}' for part in field.fields)}>"
    elif name == "RANGE" and field.range_element_type is not None:
        name += f"<{field.range_element_type.element_type}>"
    elif sizes := [size for size in (field.max_length, field.precision, field.scale) if size is not None]:
        name += f"({', '.join(map(str, sizes))})"
    return f"ARRAY<{name}>" if field.mode == "REPEATED" else name


def comment_of(field: SchemaField) -> str:
    """The column's description, then those of the fields within it by their paths."""
    told = [field.description, *(f"{path}: {text}" for path, text in _described(field, _path(field)))]
    return "; ".join(text for text in told if text)


def _described(field: SchemaField, path: str) -> Iterator[tuple[str, str]]:
    for part in field.fields:
        inner = f"{path}.{_path(part)}"
        if part.description:
            yield inner, part.description
        yield from _described(part, inner)


def _path(field: SchemaField) -> str:
    return f"{field.name}[]" if field.mode == "REPEATED" else field.name


Reader = Callable[[Any], Any]


def readers(schema: Sequence[SchemaField]) -> list[tuple[int, Reader]]:
    """For each column whose cells must be converted, its position and how: those that hold intervals at any depth."""
    found = [(place, _reader(field)) for place, field in enumerate(schema)]
    return [(place, reader) for place, reader in found if reader is not None]


def read_row(values: Sequence[Any], converting: Sequence[tuple[int, Reader]]) -> Sequence[Any]:
    if not converting:
        return values
    row = list(values)
    for place, reader in converting:
        row[place] = None if row[place] is None else reader(row[place])
    return row


def _reader(field: SchemaField) -> Reader | None:
    one = _span if field.field_type == "INTERVAL" else _record(field)
    if one is None or field.mode != "REPEATED":
        return one
    return lambda values: [None if value is None else one(value) for value in values]


def _record(field: SchemaField) -> Reader | None:
    inner = {part.name: reader for part in field.fields if (reader := _reader(part)) is not None}
    if not inner:
        return None
    return lambda record: {
        name: inner[name](value) if name in inner and value is not None else value
        for name, value in record.items()
    }


def _span(value: Any) -> timedelta | str:
    """A span of days and less; one with months has no fixed length and stays BigQuery's text, `1-2 3 4:5:6`."""
    if not value.years and not value.months:
        return timedelta(
            days=value.days,
            hours=value.hours,
            minutes=value.minutes,
            seconds=value.seconds,
            microseconds=value.microseconds,
        )
    seconds = value.seconds + value.microseconds / 1e6
    return f"{value.years}-{value.months} {value.days} {value.hours}:{value.minutes}:{seconds:g}"
