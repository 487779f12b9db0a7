"""One text of a query for several dialects: `@name(arguments)` stands for what each dialect writes its own way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_CALL = re.compile(r"@(\w+)\(((?:[^()@]|\((?:[^()@]|\([^()@]*\))*\))*)\)")

Write = Callable[..., str]


def written(template: str, dialect: str) -> str:
    """The template in a dialect; inner macros first."""
    table = MACROS[dialect]
    text = template
    while True:
        text, count = _CALL.subn(lambda found: table[found[1]](*_arguments(found[2])), text)
        if not count:
            return text


def _arguments(text: str) -> list[str]:
    parts: list[str] = [""]
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _standard(*, text_type: str, months: Write, days: Write) -> dict[str, Write]:
    return {
        "date": lambda day: f"DATE '{day}'",
        "year": lambda column: f"extract(year FROM {column})",
        "month": lambda column: f"extract(month FROM {column})",
        "months": months,
        "days": days,
        "text": lambda value: f"CAST({value} AS {text_type})",
        "ratio": lambda a, b: f"({a}) * 1.0 / nullif({b}, 0)",
        "join": lambda *parts: " || ".join(parts),
        "spread": lambda column: f"stddev_samp({column})",
        "between": lambda a, b: f"{a} - {b}",
        "union": lambda: "UNION",
        "except": lambda: "EXCEPT",
        "intersect": lambda: "INTERSECT",
    }


MACROS: Mapping[str, Mapping[str, Write]] = {
    "duckdb": _standard(
        text_type="VARCHAR",
        months=lambda day, n: f"{day} + INTERVAL {n} MONTH",
        days=lambda day, n: f"{day} + INTERVAL {n} DAY",
    )
    | {"between": lambda a, b: f"date_diff('day', {b}, {a})"},
    "postgres": _standard(
        text_type="text",
        months=lambda day, n: f"{day} + interval '{n} months'",
        days=lambda day, n: f"{day} + {n}",
    ),
    "sqlite": _standard(
        text_type="TEXT",
        months=lambda day, n: f"date({day}, '+{n} months')",
        days=lambda day, n: f"date({day}, '+{n} days')",
    )
    | {
        "date": lambda day: f"'{day}'",
        "year": lambda column: f"CAST(strftime('%Y', {column}) AS INTEGER)",
        "month": lambda column: f"CAST(strftime('%m', {column}) AS INTEGER)",
        "spread": lambda column: f"sqrt(abs(avg({column} * {column}) - avg({column}) * avg({column})))",
        "between": lambda a, b: f"CAST(julianday({a}) - julianday({b}) AS INTEGER)",
    },
    "bigquery": _standard(
        text_type="STRING",
        months=lambda day, n: f"DATE_ADD({day}, INTERVAL {n} MONTH)",
        days=lambda day, n: f"DATE_ADD({day}, INTERVAL {n} DAY)",
    )
    | {
        "ratio": lambda a, b: f"SAFE_DIVIDE({a}, {b})",
        "between": lambda a, b: f"DATE_DIFF({a}, {b}, DAY)",
        "join": lambda *parts: f"CONCAT({', '.join(parts)})",
        "union": lambda: "UNION DISTINCT",
        "except": lambda: "EXCEPT DISTINCT",
        "intersect": lambda: "INTERSECT DISTINCT",
    },
    "redshift": _standard(
        text_type="VARCHAR",
        months=lambda day, n: f"DATEADD(month, {n}, {day})",
        days=lambda day, n: f"DATEADD(day, {n}, {day})",
    )
    | {"between": lambda a, b: f"DATEDIFF(day, {b}, {a})"},
}
