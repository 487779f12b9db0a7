"""What prompts say of the tenant filters of a project's datasources. Pure.

The engine filters by itself, whatever a statement says (`sql/tenant.py`); these texts keep a model from asking for what it
would not get. A value stands in them as data: a literal of the dialect, on one line, cut to a length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay_agent.policy import TenantPolicy
from assay_agent.sql.tenant import condition
from assay_core.model.project import Datasource


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantTexts:
    """The values of `{{FILTER}}`, `{{FILTER_CONTEXT}}` and `{{FILTER_RULE}}`."""

    clause: str
    context: str
    rule: str


UNFILTERED = TenantTexts(clause="", context="", rule="No filter is needed.")
_RULE = (
    "The engine adds this condition to every such table of every statement; you need not write it, and nothing lifts it. "
    "Do not compare this tenant with others or ask for totals over all of them: their rows do not exist here."
)

_WITH_WILDCARDS = frozenset({"bigquery"})
_WILDCARDS = " Only where a name stands for several tables (`events_*`) must the statement that reads it say so in its own WHERE."


def tenant_texts(
    sources: Sequence[Datasource], *, dialects: Mapping[str, str], policy: TenantPolicy
) -> TenantTexts:
    """The texts for the datasources of a run; each clause names its datasource where there are several."""
    filtered = [source for source in sources if source.filter_field and source.filter_value]
    if not filtered:
        return UNFILTERED
    several = len(sources) > 1
    clauses = [
        (f"{source.id}: " if several else "")
        + f"WHERE {_shown(source, dialects.get(source.id, ''), policy=policy)}"
        for source in filtered
    ]
    return TenantTexts(
        clause="; ".join(clauses),
        context="\n".join(_context(source, dialects, several=several, policy=policy) for source in filtered),
        rule=_RULE
        + (_WILDCARDS if _WITH_WILDCARDS & {dialects.get(source.id) for source in filtered} else ""),
    )


def _context(source: Datasource, dialects: Mapping[str, str], *, several: bool, policy: TenantPolicy) -> str:
    where = f"Datasource {source.id}" if several else "This warehouse"
    shown = _shown(source, dialects.get(source.id, ""), policy=policy)
    text = f"{where} holds the rows of many tenants, and you see one of them: those where {shown}."
    other = sorted(f"{table} ({column})" for table, column in source.tenant_columns.items())
    if other:
        text += f" The column has another name in {_listed(other, policy)}."
    if source.shared_tables:
        text += f" Shared by all tenants: {_listed(sorted(source.shared_tables), policy)}."
    return f"{text} Row counts are not told, and a table without such a column is not listed."


def _shown(source: Datasource, dialect: str, *, policy: TenantPolicy) -> str:
    value = source.filter_value or ""
    if len(value) > policy.value_chars:
        value = f"{value[: policy.value_chars]}…"
    return condition(source.filter_field or "", value, dialect=dialect)


def _listed(names: Sequence[str], policy: TenantPolicy) -> str:
    shown = [" ".join(name.split()) for name in names[: policy.tables_named]]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")
