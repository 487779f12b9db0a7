"""The engine's side of the conversation: results, lookups, search hits, nudges, and the line a step folds to.

Pure renderers used by the explore phase live and by a replay, so that a rebuilt message is equal to the original byte by
byte. Rows are dicts of JSON-safe values. Cells are quoted as JSON and capped, since they are data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from assay_agent.policy import ExplorationPolicy
from assay_agent.ports import Hit
from assay_agent.prompts import render, template
from assay_core.model.step import ExplorationStep, StepAction
from assay_core.model.table import TableSchema

_REASONS = {
    "truncated": "it was cut off at its length limit. Think less and answer shorter.",
    "truncated_object": "its JSON object is not closed.",
    "empty": "it was empty.",
    "prose": "it holds no JSON object. Prose cannot be acted on.",
    "no_action": "its JSON object has none of the keys query, lookup_schema, search_tables or done.",
    "empty_payload": "the action's own value is missing or of the wrong kind.",
    "datasource": "it does not name a known datasource_id.",
}


def action_format(datasources: Sequence[str]) -> str:
    """The format of an action, from the one source that the opening and the nudges share."""
    if len(datasources) > 1:
        return render("action_format_multi", DATASOURCE=datasources[0], DATASOURCES=", ".join(datasources))
    return template("action_format")


def nudge(reason: str, *, datasources: Sequence[str]) -> str:
    """Ask for the action again and say what was wrong with the last reply."""
    return render("nudge", REASON=_REASONS.get(reason, reason), ACTION_FORMAT=action_format(datasources))


def too_early(*, step: int, min_steps: int, max_steps: int) -> str:
    """The nudge of a refused `done`; a replay derives it again from the same three numbers."""
    remaining = max_steps - step
    return (
        f"Not yet: this exploration runs for at least {min_steps} steps, {step} are used and {remaining} remain. "
        "Look at a table, a period or a relation that no query has covered so far."
    )


def result_message(step: ExplorationStep, *, policy: ExplorationPolicy) -> str:
    """What a query returned: counts, time, the first rows as JSON, and every caveat.

    Depends only on what a checkpoint keeps (counts, columns, at most 50 rows), so a replay gives the same bytes.
    """
    if step.error is not None:
        text = f"Step {step.step}: the query failed.\nError: {_cap(step.error, 1_500)}\nTry a different approach."
        return text if not step.fix_attempts else f"{text} ({step.fix_attempts} repairs were tried.)"
    repaired = f", repaired {step.fix_attempts} times" if step.fix_attempts else ""
    head = f"Step {step.step}: ok, {step.row_count} rows in {step.execution_time_ms} ms{repaired}."
    if step.query_executed:
        head += f"\nThe statement that ran: {_cap(step.query_executed, 1_500)}"
    if not step.row_count:
        return f"{head}\nNo rows. Columns: {', '.join(column.name for column in step.columns)}"
    lines, shown = _rows(step.query_result, policy=policy)
    notes = "".join(f"\nNote: {caveat.text}" for caveat in step.caveats)
    return f"{head}\n" + "\n".join(lines) + f"\nShowing {shown} of {step.row_count}.{notes}"


def _rows(rows: Sequence[Mapping[str, Any]], *, policy: ExplorationPolicy) -> tuple[list[str], int]:
    lines: list[str] = []
    room = policy.result_message_chars
    for line in _rows_json(rows[: policy.result_rows_shown], cell_chars=policy.result_cell_chars):
        if lines and room < len(line):
            break
        lines.append(_cap(line, policy.result_message_chars))
        room -= len(line)
    return lines, len(lines)


def row_json(row: Mapping[str, Any], *, cell_chars: int) -> str:
    """A row as one line of JSON, long texts cut with their full length named."""
    return _ENCODER.encode(_capped(row, cell_chars))


def _rows_json(rows: Sequence[Mapping[str, Any]], *, cell_chars: int) -> list[str]:
    """What `row_json` gives for each row, from one call of the encoder: a call costs more than a row."""
    if not rows:
        return []
    text = _ROWS_ENCODER.encode([_capped(row, cell_chars) for row in rows])
    between = f"}}{_COMMA}{{"
    return [f"{{{cells.replace(_COMMA, ', ')}}}" for cells in text[2:-2].split(between)]


def _capped(row: Mapping[str, Any], chars: int) -> Mapping[str, Any]:
    """The row without long or nested cells; most have none."""
    for value in row.values():
        kind = type(value)
        if kind is list or kind is dict or (kind is str and len(value) > chars):
            return {name: _cap_cell(value, chars) for name, value in row.items()}
    return row


def _json_default(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_json_default, allow_nan=False)
"""Made once: `json.dumps` with these settings would make one for every row."""
_COMMA = "\x1f"
"""Instead of a comma where rows are told apart afterwards: within a text JSON escapes it, and no cell holds a row."""
_ROWS_ENCODER = json.JSONEncoder(
    ensure_ascii=False, default=_json_default, allow_nan=False, separators=(_COMMA, ": ")
)


def _cap_cell(value: Any, chars: int) -> Any:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False, default=_json_default)
    return _cap(value, chars) if isinstance(value, str) else value


def _cap(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[:chars]}… (truncated, {len(text)} characters)"


def table_block(table: TableSchema, *, policy: ExplorationPolicy) -> str:
    """One table of a lookup reply: header, columns, sample rows.

    ```
    ### main.flights — 336776 rows, 19 columns
    year BIGINT NULL [dimension]
    Sample: {"year": 2013, …}
    ```
    """
    rows = "unknown" if table.row_count is None else f"{table.row_count}"
    lines = [f"### {table.ref} — {rows} rows, {len(table.columns)} columns"]
    if table.comment:
        lines.append(f"Comment: {_cap(json.dumps(table.comment, ensure_ascii=False), 200)}")
    for column in table.columns[: policy.lookup_columns]:
        null = "NULL" if column.nullable else "NOT NULL"
        lines.append(f"{_column_name(column.name)} {_one_line(column.type, 60)} {null} [{column.category}]")
    hidden = len(table.columns) - policy.lookup_columns
    if hidden > 0:
        names = ", ".join(
            _column_name(column.name) for column in table.columns[policy.lookup_columns :][:100]
        )
        lines.append(f"… and {hidden} more columns: {_cap(names, 1_500)}")
    for row in table.sample[: policy.lookup_sample_rows]:
        lines.append(f"Sample: {_cap(row_json(row, cell_chars=policy.lookup_cell_chars), 1_500)}")
    return "\n".join(lines)


def _column_name(name: str) -> str:
    """A name as it is when plain, JSON-quoted when it holds anything else (blanks, quotes, emoji …)."""
    return name if name.isidentifier() and name.isascii() else json.dumps(name, ensure_ascii=False)


def _one_line(text: str, chars: int) -> str:
    return _cap(" ".join(text.split()), chars)


def lookup_message(
    tables: Sequence[TableSchema],
    *,
    known: Sequence[str],
    missing: Sequence[str],
    dropped: Sequence[str],
    calls_left: int,
    policy: ExplorationPolicy,
) -> str:
    """Reply to a lookup: tables, those already shown, those not found, those beyond the limit, and what is left."""
    blocks = [table_block(table, policy=policy) for table in tables]
    if known:
        blocks.append(f"Already shown above: {', '.join(known)}")
    if missing:
        blocks.append(
            f"Not found (search_tables may help): {', '.join(_one_line(ref, 100) for ref in missing[:20])}"
        )
    if dropped:
        blocks.append(
            f"Left out, {policy.lookup_tables_per_call} tables at a time: {', '.join(dropped[:20])}"
        )
    blocks.append(f"Lookups left: {calls_left}.")
    return "\n\n".join(blocks)


def search_message(hits: Sequence[Hit], *, calls_left: int) -> str:
    """Numbered hits with reference, rows, score and description."""
    lines = [
        f"{number}. {hit.payload['table']} | {hit.payload.get('row_count', 'unknown')} rows | {hit.score:.2f} | "
        f"{_one_line(str(hit.payload.get('description', '')), 200)}"
        for number, hit in enumerate(hits, start=1)
    ]
    found = "\n".join(lines) if lines else "No table matches."
    return f"{found}\n\nLook a table up before you query it. Searches left: {calls_left}."


def brief(step: ExplorationStep, *, detail: str = "") -> str:
    """The line a step folds to: number, action, purpose, and what came of it."""
    if step.action is StepAction.QUERY_DATA:
        came = f"failed: {_one_line(step.error, 60)}" if step.error is not None else f"{step.row_count} rows"
        about = step.query_purpose or _one_line(step.query, 80)
        return f"step {step.step} query: {_one_line(about, 120)} → {came}"
    return f"step {step.step} {step.action}: {_one_line(detail or step.query_purpose, 120)}"
