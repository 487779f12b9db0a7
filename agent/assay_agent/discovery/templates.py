"""Fill the pack's templates with what this run knows. Pure apart from reading the context.

Which variable holds what: PROFILE, PREVIOUS_CONTEXT in the base context; SCHEMA_INFO, ANALYSIS_AREAS in exploration; TOTAL_QUERIES,
QUERY_RESULTS in an area's prompt; DISCOVERY_DATE, INSIGHTS_* in recommendations; DATASET, DIALECT, LANGUAGE, FILTER* everywhere.
"""

from __future__ import annotations

import json
import re

from assay_agent.context import RunContext
from assay_agent.discovery.recall import Previous
from assay_agent.discovery.schema import Schema
from assay_agent.discovery.tenancy import tenant_texts
from assay_agent.indexing.scope import datasources_of
from assay_agent.prompts import fill
from assay_core.model.pack import Area

_THINKING_KEY = re.compile(r'(["\'`])thinking\1(\s*:)')


def base_context(ctx: RunContext, previous: Previous) -> str:
    """The part that stands in front of every prompt."""
    profile = (
        json.dumps(ctx.project.profile, ensure_ascii=False, indent=1)
        if ctx.project.profile
        else "Nothing yet."
    )
    values = {**_shared(ctx), "PROFILE": profile, "PREVIOUS_CONTEXT": previous.text}
    return _filled(ctx, ctx.templates.base_context, values, origin="base_context.md").strip()


def exploration_system(ctx: RunContext, previous: Previous, schema: Schema) -> str:
    """The system prompt of exploration; a pack that teaches the key `thinking` is rewritten to `rationale`."""
    areas = "\n".join(
        f"{number}. {area.name}: {area.description}" for number, area in enumerate(ctx.areas, start=1)
    )
    values = {**_shared(ctx), "SCHEMA_INFO": schema.catalog.text, "ANALYSIS_AREAS": areas}
    text = _filled(ctx, ctx.templates.exploration, values, origin="exploration.md")
    rewritten = _THINKING_KEY.sub(r"\1rationale\1\2", f"{base_context(ctx, previous)}\n\n{text}")
    return re.sub(r"\n{3,}", "\n\n", rewritten)


def area_prompt(ctx: RunContext, area: Area, *, entries: str, count: int) -> str:
    """An area's own text with its digests."""
    values = {**_shared(ctx), "TOTAL_QUERIES": str(count), "QUERY_RESULTS": entries}
    return _filled(ctx, area.prompt, values, origin=f"the prompt of area {area.id}")


def recommendations_prompt(ctx: RunContext, *, date: str, summary: str, insights: str) -> str:
    values = {**_shared(ctx), "DISCOVERY_DATE": date, "INSIGHTS_SUMMARY": summary, "INSIGHTS_DATA": insights}
    return _filled(ctx, ctx.templates.recommendations, values, origin="recommendations.md")


def _shared(ctx: RunContext) -> dict[str, str]:
    datasets = dict.fromkeys(name for warehouse in ctx.warehouses.values() for name in warehouse.datasets)
    tenant = tenant_texts(
        datasources_of(ctx.project),
        dialects={name: warehouse.dialect for name, warehouse in ctx.warehouses.items()},
        policy=ctx.policy.tenant,
    )
    return {
        "DATASET": ", ".join(datasets) or ctx.project.name or "the warehouse",
        "DIALECT": ", ".join(dict.fromkeys(warehouse.dialect for warehouse in ctx.warehouses.values())),
        "LANGUAGE": ctx.project.language,
        "FILTER": tenant.clause,
        "FILTER_CONTEXT": tenant.context,
        "FILTER_RULE": tenant.rule,
    }


def _filled(ctx: RunContext, text: str, values: dict[str, str], *, origin: str) -> str:
    return fill(text, values, origin=f"domain pack {ctx.project.domain}: {origin}")
