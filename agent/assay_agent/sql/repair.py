"""The repair of a failing statement: what the model is asked, and how its reply is read. Pure; used by `query`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from assay_agent.ports import Message
from assay_agent.prompts import render
from assay_agent.sql.dialects import dialect_of

MAX_EARLIER = 3
"""Earlier failed tries shown, newest last."""
ERROR_CHARS = 1_500
SQL_CHARS = 20_000
_FENCE = re.compile(r"```[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_LONE_END = re.compile(r"\A.*?</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_QUERY_WORD = re.compile(r"(?i)\b(select|with|from)\b")
_QUERY_START = re.compile(r"(?i)\A(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(select|with|from|values)\b", re.DOTALL)
_LANGUAGES = ("sql", "duckdb", "sqlite", "postgres", "postgresql", "bigquery", "googlesql", "redshift")
_JSON_KEYS = ("fixed_sql", "query", "sql")


def fix_messages(
    *,
    dialect: str,
    sql: str,
    error: str,
    tables: str,
    rationale: str,
    earlier: Sequence[tuple[str, str]] = (),
) -> tuple[Message, ...]:
    """The question to the model. `tables` describes what exists; `earlier` are (statement, error) of tries before."""
    language = dialect_of(dialect)
    prompt = render(
        "sql_fix",
        DIALECT=language.title,
        PURPOSE=rationale.strip() or "not stated",
        SQL=sql.strip()[:SQL_CHARS],
        ERROR=error.strip()[:ERROR_CHARS],
        TABLES=tables.strip() or "(not known)",
        HINTS="\n".join(f"- {hint}" for hint in language.hints),
        EARLIER=_earlier(earlier),
    )
    return (Message("user", prompt),)


def _earlier(tries: Sequence[tuple[str, str]]) -> str:
    if not tries:
        return ""
    lines = [
        f"- `{' '.join(sql.split())[:300]}` failed with: {' '.join(error.split())[:200]}"
        for sql, error in tries[-MAX_EARLIER:]
    ]
    return "Already tried, do not repeat:\n" + "\n".join(lines) + "\n\n"


def extract_sql(reply: str) -> str | None:
    """The statement in a reply: the last `sql` fence, else a fence that holds a query or JSON, else the bare text."""
    text = _LONE_END.sub("", _THOUGHT.sub("", reply)).strip()
    fences = [(language.lower(), body.strip()) for language, body in _FENCE.findall(text)]
    named = [body for language, body in fences if language in _LANGUAGES]
    if filled := [body for body in named if body]:
        return str(filled[-1])
    for _, body in reversed(fences):
        if found := _from_json(body):
            return found
        if _QUERY_WORD.search(body) and _QUERY_START.match(body):
            return str(body)
    if found := _from_json(text):
        return found
    return text if _QUERY_START.match(text) else None


def _from_json(text: str) -> str | None:
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        value = json.loads(text[start : end + 1], strict=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    found = next(
        (value[key] for key in _JSON_KEYS if isinstance(value.get(key), str) and value[key].strip()), None
    )
    return str(found).strip() if found else None
