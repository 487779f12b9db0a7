"""Row filters of figures: `column op literal AND …`, and which rows they leave. Pure.

Operators: = != <> < <= > >=, IS NULL, IS NOT NULL. Text literals stand in single quotes (doubled inside), numbers bare; a column
with blanks or operators in its name stands in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TERM = re.compile(
    r"""^\s*(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<name>[^"'=!<>]+?))\s*
    (?:(?P<null>IS\s+(?:NOT\s+)?NULL)|(?P<op>==?|!=|<>|<=|>=|<|>)\s*(?:'(?P<text>(?:[^']|'')*)'|(?P<bare>[^'"]+?)))\s*$""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_AND = re.compile(r"""\s+AND\s+(?=(?:[^'"]|'(?:[^']|'')*'|"(?:[^"]|"")*")*$)""", re.IGNORECASE)
_MAX_CHARS = 2_000


class FilterError(ValueError):
    """The filter cannot be read or names a column that is not there."""


@dataclass(frozen=True, slots=True)
class Term:
    column: str
    op: str
    literal: Any


def parse_filter(text: str) -> tuple[Term, ...]:
    """The terms of a filter, all of which a row must meet."""
    if len(text) > _MAX_CHARS:
        raise FilterError(f"row filter is longer than {_MAX_CHARS} characters")
    terms: list[Term] = []
    for part in _AND.split(text.strip()):
        match = _TERM.match(part)
        if not match:
            raise FilterError(f"row filter not understood: {part[:80]}")
        column = (match["quoted"] or "").replace('""', '"') or (match["name"] or "").strip()
        if match["null"]:
            terms.append(Term(column, "not null" if "not" in match["null"].lower() else "null", None))
            continue
        literal: Any = (
            (match["text"] or "").replace("''", "'") if match["text"] is not None else _bare(match["bare"])
        )
        terms.append(Term(column, {"==": "=", "<>": "!="}.get(match["op"], match["op"]), literal))
    return tuple(terms)


def _bare(text: str) -> Any:
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered == "null":
        return None
    number = as_number(text)
    return text.strip() if number is None else number


def matching(rows: Sequence[Mapping[str, Any]], text: str | None) -> list[Mapping[str, Any]]:
    """Rows that meet the filter; all of them without one."""
    if not text or not text.strip():
        return list(rows)
    terms = parse_filter(text)
    if rows:
        for term in terms:
            column_of(rows[0], term.column)
    return [row for row in rows if all(_meets(row[column_of(row, term.column)], term) for term in terms)]


def column_of(row: Mapping[str, Any], name: str) -> str:
    """The row's own spelling of a column: exact first, then without regard to case."""
    if name in row:
        return name
    folded = [key for key in row if key.lower() == name.lower()]
    if len(folded) == 1:
        return folded[0]
    raise FilterError(f"column {name[:80]} is not in the result; it has {', '.join(list(row)[:20])}")


def _meets(value: Any, term: Term) -> bool:
    if term.op == "null":
        return value is None
    if term.op == "not null":
        return value is not None
    if term.literal is None:
        return (value is None) == (term.op == "=")
    if value is None:
        return term.op == "!="
    left, right = _comparable(value, term.literal)
    match term.op:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


def _comparable(value: Any, literal: Any) -> tuple[Any, Any]:
    """Numbers as numbers where both are, else both as text; a date literal matches the start of a timestamp."""
    if isinstance(value, bool) or isinstance(literal, bool):
        return str(value).lower(), str(literal).lower()
    left, right = as_number(value), as_number(literal)
    if left is not None and right is not None:
        return left, right
    text, wanted = as_text(value), as_text(literal)
    if re.fullmatch(r"\d{4}-\d\d(-\d\d)?", wanted) and re.match(r"\d{4}-\d\d-\d\d[T ]", text):
        text = text[: len(wanted)]
    return text, wanted


def as_number(value: Any) -> float | int | None:
    """A number, or a text that is one and nothing else; booleans are not numbers."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\s*", value):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 2**53 and "." not in value else number
    return None


def as_text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
