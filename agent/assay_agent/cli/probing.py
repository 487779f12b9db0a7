"""`assay test-connection` and `assay estimate`: look before anything is spent."""

from __future__ import annotations

import argparse
import json
import time

from assay_agent.cli.configuration import Chosen, SecretsWithPassword, choose_project, read_config
from assay_agent.cli.terminal import console
from assay_agent.evidence.catalog import render_rows
from assay_agent.policy import Policy
from assay_agent.ports import CompletionRequest, Message
from assay_agent.settings import AgentSettings
from assay_agent.stores import open_for_reading
from assay_agent.wiring import (
    findings_dimensions,
    open_embedder,
    open_models,
    open_secrets,
    open_warehouses,
    policy_of,
)
from assay_core.errors import ConfigError
from assay_core.model.written import project_of

_TOKENS_PER_TURN = 350
"""Tokens a turn leaves in the conversation on average: the model's own and the engine's answer."""
_AREAS = 5


def test_connection(arguments: argparse.Namespace) -> int:
    """`assay test-connection PART`: one line on what answered, or why not."""
    started = time.monotonic()
    settings = AgentSettings.load()
    probe = {"warehouse": _warehouse, "llm": _llm, "embedding": _embedding, "stores": _stores}[arguments.part]
    said = probe(arguments, settings)
    console().print(f"ok: {said} ({time.monotonic() - started:.1f} s)", markup=False)
    return 0


def _choose(arguments: argparse.Namespace) -> Chosen:
    return choose_project(arguments, report=lambda line: console(stderr=True).print(line, markup=False))


def _warehouse(arguments: argparse.Namespace, settings: AgentSettings) -> str:
    chosen = _choose(arguments)
    secrets = SecretsWithPassword(others=open_secrets(settings), password=chosen.password)
    warehouses = open_warehouses(chosen.project, secrets, middleware=settings.middleware_names())
    try:
        return "; ".join(f"{name}: {w.check()}, {len(w.tables())} tables" for name, w in warehouses.items())
    finally:
        for warehouse in warehouses.values():
            warehouse.close()


def _llm(arguments: argparse.Namespace, settings: AgentSettings) -> str:
    document = read_config(arguments.config) if arguments.config else {}
    project = project_of({"id": "test-connection", **document})
    model = open_models(project, open_secrets(settings), settings)
    message = Message("user", "Answer with the one word: ready")
    reply = model.complete(CompletionRequest(layer="exploration", messages=(message,), max_output_tokens=64))
    return f"{model.provider}/{model.model} answered {' '.join(reply.text.split())[:60]!r}"


def _embedding(arguments: argparse.Namespace, settings: AgentSettings) -> str:
    if arguments.config:
        project = project_of({"id": "test-connection", **read_config(arguments.config)})
        embedder = open_embedder(settings, project, open_secrets(settings))
    else:
        embedder = open_embedder(settings)
    vector = embedder.embed(["ready"])[0]
    if len(vector) != embedder.dimensions:
        raise ConfigError(f"{embedder.model} gave {len(vector)} dimensions instead of {embedder.dimensions}")
    return f"{embedder.model}, {embedder.dimensions} dimensions"


def _stores(arguments: argparse.Namespace, settings: AgentSettings) -> str:
    dimensions = findings_dimensions(settings)
    with open_for_reading(home=arguments.home, settings=settings, embedder_dims=dimensions) as stores:
        stores.store.ping()
        if stores.owned:
            stores.vectors.collections()
        return stores.described


def estimate(arguments: argparse.Namespace) -> int:
    """`assay estimate SOURCE`: tables, rows, expected queries, tokens, money. Runs catalogue queries only."""
    if not 1 <= arguments.max_steps <= 10_000:
        raise ConfigError(f"--max-steps must be from 1 to 10000, not {arguments.max_steps}")
    settings = AgentSettings.load()
    chosen = _choose(arguments)
    secrets = SecretsWithPassword(others=open_secrets(settings), password=chosen.password)
    warehouses = open_warehouses(chosen.project, secrets)
    try:
        tables = [table for warehouse in warehouses.values() for table in warehouse.tables()]
    finally:
        for warehouse in warehouses.values():
            warehouse.close()
    model = open_models(chosen.project, secrets, settings)
    tokens_in, tokens_out = expected_tokens(len(tables), arguments.max_steps, policy_of(settings))
    figures = {
        "tables": len(tables),
        "rows": sum(table.row_count or 0 for table in tables),
        "rows_unknown_tables": sum(table.row_count is None for table in tables),
        "max_queries": arguments.max_steps,
        "model": f"{model.provider}/{model.model}",
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "cost_usd": 0.0 if model.provider in ("scout", "scripted") else None,
    }
    if arguments.json:
        print(json.dumps(figures, indent=1))
        return 0
    out = console()
    out.print(f"tables    {figures['tables']}", markup=False)
    unknown = (
        f" (and {figures['rows_unknown_tables']} tables of unknown size)"
        if figures["rows_unknown_tables"]
        else ""
    )
    out.print(
        f"rows      about {render_rows(sum(table.row_count or 0 for table in tables))}{unknown}", markup=False
    )
    out.print(f"queries   at most {arguments.max_steps}", markup=False)
    out.print(f"model     {figures['model']}", markup=False)
    out.print(f"tokens    about {tokens_in:,} in, {tokens_out:,} out", markup=False)
    cost = (
        "0.00 USD, the model runs here"
        if figures["cost_usd"] == 0.0
        else "unknown, the price of this model is not known"
    )
    out.print(f"money     {cost}", markup=False)
    return 0


def expected_tokens(tables: int, steps: int, policy: Policy) -> tuple[int, int]:
    """Input and output tokens of a run that uses all its steps, estimated high. Pure."""
    catalog = min(tables * 30, policy.exploration.catalog_tokens)
    turns = sum(
        min(_TOKENS_PER_TURN * step, policy.exploration.conversation_tokens) + catalog + 1_000
        for step in range(steps)
    )
    analysis = _AREAS * min(steps * 600 + 2_000, policy.analysis.area_tokens)
    return turns + analysis + 10_000, steps * 150 + _AREAS * 2_000 + 2_000
