"""What a model is asked about one table, and how its reply is read. Pure; used by `describer`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from assay_agent.llm.objects import find_objects, split_reasoning
from assay_agent.llm.replies import text_of, texts
from assay_agent.policy import IndexPolicy
from assay_agent.ports import Completion, Message
from assay_agent.prompts import render, template
from assay_core.errors import ModelOutputError, ModelRefusal
from assay_core.model.table import ColumnSchema, TableSchema


def description_messages(table: TableSchema, policy: IndexPolicy) -> tuple[Message, ...]:
    """The question about one table, its names, comments and cells cut to the policy's lengths."""
    columns = table.columns[: policy.asked_columns]
    more = len(table.columns) - len(columns)
    lines = [_column_line(column, policy.asked_cell_chars) for column in columns]
    if more:
        lines.append(f"… and {more} more columns")
    prompt = render(
        "table_description",
        TABLE=_one_line(table.ref, policy.asked_cell_chars),
        COMMENT=_one_line(table.comment, policy.asked_comment_chars) or "none",
        COLUMNS="\n".join(lines),
        ROWS=_rows(table.sample, [column.name for column in columns], policy) or "none were read",
    )
    return (Message("user", prompt),)


def asked_again(reply: str, reason: str) -> tuple[Message, ...]:
    """The turns that follow a reply that could not be read; an empty reply is not sent back."""
    again = Message("user", template("reparse").replace("{{REASON}}", reason))
    return (Message("assistant", reply), again) if reply.strip() else (again,)


def read_description(completion: Completion, policy: IndexPolicy) -> tuple[str, list[str]]:
    """Description and keywords, on one line each. Raises ModelRefusal or ModelOutputError."""
    if completion.finish in ("refusal", "unknown"):
        raise ModelRefusal("the model declined to describe the table")
    if completion.finish == "length":
        raise ModelOutputError("the description was cut off at its token limit", reason="truncated")
    text = completion.text if completion.text.strip() else completion.reasoning
    for found in reversed(find_objects(split_reasoning(text).answer).objects):
        description = " ".join(text_of(found.get("description")).split())
        if description:
            words = [_one_line(word, policy.keyword_chars) for word in texts(found.get("keywords"))]
            return description[: policy.description_chars], words[: policy.keywords]
    raise ModelOutputError("the answer holds no JSON object with a description", reason="malformed")


def _column_line(column: ColumnSchema, chars: int) -> str:
    comment = f", {_one_line(column.comment, chars)}" if column.comment else ""
    return f"- {_one_line(column.name, chars)}, {_one_line(column.type, chars)}, {column.category}{comment}"


def _rows(sample: Sequence[dict[str, Any]], columns: Sequence[str], policy: IndexPolicy) -> str:
    shown = [
        json.dumps(
            {name: _cell(row[name], policy.asked_cell_chars) for name in columns if name in row},
            ensure_ascii=False,
            default=str,
        )
        for row in sample[: policy.asked_rows]
    ]
    return "\n".join(shown)


def _cell(value: Any, chars: int) -> Any:
    """Numbers, truth and nothing as they are; everything else as text of limited length."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return _one_line(value if isinstance(value, str) else json.dumps(value, default=str), chars)


def _one_line(text: str, chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1] + "…"
