"""What a model's reply asks for: one action, or a typed error that says what to nudge about.

Called by the explore phase once per reply. The parser is tolerant of form (reasoning blocks, fences, tool envelopes, legacy
keys) and strict about substance: a truncated reply, a refusal or prose never becomes an action.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay_agent.llm.objects import Found, decode, find_objects, split_reasoning
from assay_agent.ports import Completion
from assay_core.errors import ModelOutputError, ModelRefusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    sql: str
    purpose: str = ""
    rationale: str = ""
    datasource_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    refs: tuple[str, ...]
    rationale: str = ""
    datasource_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    text: str
    top_k: int | None = None
    rationale: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    summary: str = ""
    rationale: str = ""


Action = Query | Lookup | Search | Finish

_ACTION_KEYS = ("done", "query", "lookup_schema", "search_tables", "action")
_ENVELOPE_INPUTS = ("input", "arguments", "parameters", "args")
_ENVELOPE_NAMES = {
    "query": "query",
    "query_data": "query",
    "run_query": "query",
    "execute_query": "query",
    "lookup_schema": "lookup_schema",
    "search_tables": "search_tables",
    "complete": "done",
    "done": "done",
    "finish": "done",
}
_MAX_REFS = 200
_ENCODER = json.JSONEncoder(ensure_ascii=False)


def parse_action(completion: Completion) -> Action:
    """The action of a reply. Raises ModelRefusal, or ModelOutputError whose reason the nudge is written from.

    The finish reason is looked at before the text: a cut reply may still be valid JSON and mean something else.
    """
    if completion.finish == "refusal":
        raise ModelRefusal("the model declined to answer; the same conversation is not sent again")
    if completion.finish == "unknown":
        raise ModelRefusal("the model stopped for a reason that is not known; its reply is not used")
    if completion.finish == "length":
        raise ModelOutputError("the reply was cut off at its token limit", reason="truncated")
    text = completion.text if completion.text.strip() else completion.reasoning
    if not text.strip():
        raise ModelOutputError("the reply was empty", reason="empty")
    parts = split_reasoning(text)
    outside = _choose(find_objects(parts.answer))
    chosen = outside if isinstance(outside, dict) else _choose(find_objects(parts.reasoning))
    if isinstance(chosen, dict):
        return _read(chosen)
    if isinstance(outside, ModelOutputError):
        raise outside
    raise ModelOutputError("the reply holds no JSON object", reason="prose")


def _choose(found: Found) -> dict[str, Any] | ModelOutputError | None:
    """The last object with an action key; an error when objects were there but none can be used."""
    if found.truncated:
        return ModelOutputError("the JSON object is not closed", reason="truncated_object")
    opened = [_open_envelope(candidate) for candidate in found.objects]
    with_action = [candidate for candidate in opened if any(key in candidate for key in _ACTION_KEYS)]
    if with_action:
        return with_action[-1]
    if found.objects:
        keys = ", ".join(list(map(str, found.objects[-1]))[:6]) or "no keys"
        return ModelOutputError(f"the object ({keys}) names no action", reason="no_action")
    return None


def _open_envelope(candidate: dict[str, Any]) -> dict[str, Any]:
    """Unwrap `{"name": …, "input": …}` and its relatives; a key already set is never overridden."""
    body = candidate
    calls = body.get("tool_calls")
    if isinstance(calls, list) and calls and isinstance(calls[-1], dict):
        body = calls[-1]
    if isinstance(body.get("function"), dict):
        body = body["function"]
    name = body.get("name") or body.get("tool") or body.get("tool_name")
    key = _ENVELOPE_NAMES.get(name) if isinstance(name, str) else None
    if key is None or any(action in body for action in _ACTION_KEYS):
        return candidate
    arguments = next((body[field] for field in _ENVELOPE_INPUTS if field in body), None)
    if isinstance(arguments, str):
        parsed = decode(arguments)
        arguments = parsed if isinstance(parsed, dict) else {"text": arguments}
    fields: Mapping[str, Any] = arguments if isinstance(arguments, dict) else {}
    return {
        **_from_envelope(key, fields),
        **{k: v for k, v in candidate.items() if k in ("rationale", "thinking")},
    }


def _from_envelope(key: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    text = fields.get("text")
    common = {k: fields[k] for k in ("rationale", "thinking", "datasource_id") if k in fields}
    match key:
        case "query":
            sql = fields.get("query") or fields.get("sql") or text
            return {
                "query": sql,
                "query_purpose": fields.get("purpose") or fields.get("query_purpose", ""),
                **common,
            }
        case "lookup_schema":
            tables = fields.get("tables") or fields.get("lookup_schema") or fields.get("refs") or text
            return {"lookup_schema": tables, **common}
        case "search_tables":
            query = fields.get("query") or fields.get("search_tables") or text
            top_k = fields.get("top_k") or fields.get("search_top_k")
            return {"search_tables": query, "search_top_k": top_k, **common}
        case _:
            summary = fields.get("summary") or fields.get("reason") or text or ""
            return {"done": True, "summary": summary, **common}


def _read(fields: dict[str, Any]) -> Action:
    rationale = _text(next((fields[k] for k in ("rationale", "thinking", "reasoning") if fields.get(k)), ""))
    datasource = fields.get("datasource_id")
    datasource_id = datasource.strip() if isinstance(datasource, str) and datasource.strip() else None
    legacy = fields.get("action") if isinstance(fields.get("action"), str) else None
    if _is_true(fields.get("done")) or (legacy in ("complete", "done") and "query" not in fields):
        summary = fields.get("summary") or fields.get("reason") or fields.get("message") or ""
        return Finish(summary=_text(summary), rationale=rationale)
    if "query" in fields or legacy in ("query_data", "query"):
        sql = _sql(fields.get("query", fields.get("sql")))
        purpose = fields.get("query_purpose") or fields.get("purpose") or ""
        return Query(sql=sql, purpose=_text(purpose), rationale=rationale, datasource_id=datasource_id)
    if "lookup_schema" in fields or legacy == "lookup_schema":
        tables = fields.get("lookup_schema", fields.get("tables"))
        return Lookup(refs=_refs(tables), rationale=rationale, datasource_id=datasource_id)
    if "search_tables" in fields or legacy == "search_tables":
        return _search(fields, rationale)
    raise ModelOutputError("the object names no action that is offered here", reason="no_action")


def _search(fields: dict[str, Any], rationale: str) -> Search:
    wanted = fields.get("search_tables", fields.get("text"))
    top_k = fields.get("search_top_k")
    if isinstance(wanted, dict):
        top_k = wanted.get("top_k", top_k)
        wanted = wanted.get("query") or wanted.get("text")
    if isinstance(wanted, list):
        wanted = " ".join(item for item in wanted if isinstance(item, str))
    if not isinstance(wanted, str) or not wanted.strip():
        raise ModelOutputError("search_tables must be a text", reason="empty_payload")
    count = int(top_k) if isinstance(top_k, int | float | str) and str(top_k).strip().isdigit() else None
    return Search(text=wanted.strip(), top_k=count, rationale=rationale)


def _sql(value: Any) -> str:
    """A query is a text; some local models wrap it in one more object."""
    if isinstance(value, dict):
        value = next((value[k] for k in ("sql", "query", "text") if isinstance(value.get(k), str)), None)
    if not isinstance(value, str) or not value.strip():
        raise ModelOutputError("query must be a SQL text", reason="empty_payload")
    return value.strip()


def _refs(value: Any) -> tuple[str, ...]:
    if isinstance(value, dict):
        value = value.get("tables") or value.get("refs")
    if isinstance(value, str):
        value = [value]
    refs: list[str] = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            item = item.get("ref") or item.get("table") or item.get("name")  # noqa: PLW2901
        ref = _unquoted(item) if isinstance(item, str) else ""
        if ref and ref not in refs:
            refs.append(ref)
    if not refs:
        raise ModelOutputError("lookup_schema must be a list of table names", reason="empty_payload")
    return tuple(refs[:_MAX_REFS])


def _unquoted(ref: str) -> str:
    """Trim blanks and one layer of backticks or quotes around the whole reference."""
    ref = ref.strip()
    if len(ref) > 1 and ref[0] == ref[-1] and ref[0] in "`\"'" and ref[0] not in ref[1:-1]:
        ref = ref[1:-1].strip()
    return ref


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() == "true") or value == 1


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def action_json(action: Action) -> str:
    """The assistant turn as the conversation and a replay carry it: canonical JSON without empty fields."""
    match action:
        case Query():
            fields: dict[str, Any] = {
                "rationale": action.rationale,
                "query_purpose": action.purpose,
                "datasource_id": action.datasource_id,
                "query": action.sql,
            }
        case Lookup():
            fields = {
                "rationale": action.rationale,
                "datasource_id": action.datasource_id,
                "lookup_schema": list(action.refs),
            }
        case Search():
            fields = {
                "rationale": action.rationale,
                "search_tables": action.text,
                "search_top_k": action.top_k,
            }
        case Finish():
            fields = {"rationale": action.rationale, "done": True, "summary": action.summary}
    return _ENCODER.encode({key: value for key, value in fields.items() if value not in ("", None)})
