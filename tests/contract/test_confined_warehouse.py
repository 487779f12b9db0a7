"""A datasource with a filter, opened as a run opens it: lists, samples, describes and queries one tenant only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assay_agent.adapters.environment_secrets import open_provider
from assay_agent.ports import Completion, Message, QueryLimits, Warehouse
from assay_agent.sql.query import QueryRun, run_query
from assay_agent.wiring import open_warehouses
from assay_core import clock
from assay_core.errors import ConfigError, QueryError
from assay_core.model.project import Project
from tests.bigquery_server import bigquery_server
from tests.contract.warehouses import PROVIDERS, standard
from tests.integration import redshift
from tests.integration.postgres import PASSWORD, postgres_server

LIMITS = QueryLimits(rows=100, cell_chars=200, result_bytes=1_000_000, timeout_s=20.0)
STATEMENTS = (
    "CREATE TABLE orders (tenant VARCHAR(9), id INTEGER, amount INTEGER)",
    "INSERT INTO orders VALUES ('acme', 1, 10), ('acme', 2, 20), ('globex', 1, 500), ('globex', 3, 600)",
    "CREATE TABLE visits (account INTEGER, id INTEGER)",
    "INSERT INTO visits VALUES (1, 7), (2, 8)",
    "CREATE TABLE plans (id INTEGER, name VARCHAR(9))",
    "INSERT INTO plans VALUES (1, 'free')",
    "CREATE TABLE ledger (id INTEGER, secret VARCHAR(9))",
    "INSERT INTO ledger VALUES (1, 'theirs')",
    "CREATE VIEW large AS SELECT tenant, id FROM orders WHERE amount > 15",
)
FILTER = {"filter_field": "Tenant", "filter_value": "acme", "shared_tables": ["plans"]}


def _project(**datasource: Any) -> Project:
    return Project.model_validate({"id": "p", "datasources": [{"id": "default", **datasource}]})


@pytest.fixture(params=PROVIDERS)
def source(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    provider: str = request.param
    path = tmp_path / f"w.{provider}"
    if provider == "bigquery":
        with bigquery_server() as played, played.dataset(*map(standard, STATEMENTS)) as name:
            monkeypatch.setenv("WAREHOUSE_CREDENTIALS", played.key())
            yield {"provider": provider, "config": played.config(), "datasets": [name]}
        return
    if provider in ("postgres", "redshift"):
        server = postgres_server()
        monkeypatch.setenv("WAREHOUSE_CREDENTIALS", PASSWORD)
        plain = provider == "postgres"
        with server.database() if plain else redshift.redshift_database(server) as name:
            with server.connect(name) as session:
                for statement in STATEMENTS:
                    session.execute(statement)
                session.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
            config = server.config if plain else partial(redshift.config, server)
            yield {"provider": provider, "config": config(name, user="reader")}
        return
    connection: Any = duckdb.connect(str(path)) if provider == "duckdb" else sqlite3.connect(path)
    for statement in STATEMENTS:
        connection.execute(statement)
    connection.commit()
    connection.close()
    yield {"provider": provider, "config": {"path": str(path)}}


@pytest.fixture
def warehouse(source: dict[str, Any]) -> Iterator[Warehouse]:
    opened = open_warehouses(_project(**source, **FILTER), open_provider())["default"]
    yield opened
    opened.close()


def _run(warehouse: Warehouse, sql: str, *answers: str) -> QueryRun:
    replies = iter(answers)

    def complete(messages: tuple[Message, ...]) -> Completion:
        del messages
        return Completion(text=next(replies))

    return run_query(
        warehouse=warehouse,
        sql=sql,
        limits=LIMITS,
        repairs=len(answers),
        complete=complete,
        clock=clock.now,
        step=1,
        schema_hint=", ".join,
    )


def test_tables_without_the_tenant_do_not_exist_and_nobody_elses_rows_are_counted(
    warehouse: Warehouse,
) -> None:
    listed = {table.ref.split(".")[1]: table.row_count for table in warehouse.tables()}
    assert set(listed) == {"orders", "plans", "large"}
    assert listed["orders"] is None
    assert listed["large"] is None
    described = warehouse.describe(["orders", "plans"])
    assert next(table.row_count for table in described) is None
    with pytest.raises(QueryError, match="no such table") as missing:
        warehouse.describe(["ledger"])
    assert missing.value.kind == "unknown_table"
    with pytest.raises(QueryError, match="no such table"):
        warehouse.sample("ledger", limits=LIMITS)


def test_a_sample_shows_rows_of_the_tenant_only(warehouse: Warehouse) -> None:
    assert {row[0] for row in warehouse.sample("orders", limits=LIMITS).rows} == {"acme"}
    assert [tuple(row) for row in warehouse.sample("large", limits=LIMITS).rows] == [("acme", 2)]
    assert [tuple(row) for row in warehouse.sample("plans", limits=LIMITS).rows] == [(1, "free")]


def test_a_query_sees_the_tenant_only_and_the_record_says_what_ran(warehouse: Warehouse) -> None:
    ran = _run(warehouse, "SELECT count(*) AS n, sum(amount) AS total FROM orders")
    assert ran.result is not None
    assert [int(value) for value in ran.result.rows[0]] == [2, 30]
    assert "'acme'" in ran.executed_sql
    raw = warehouse.execute("SELECT count(*) FROM orders", limits=LIMITS)
    assert raw.rows[0][0] == 2


def test_a_refusal_goes_back_to_the_model_and_its_repair_is_confined_too(warehouse: Warehouse) -> None:
    ran = _run(warehouse, "SELECT * FROM ledger", "```sql\nSELECT max(amount) AS most FROM orders\n```")
    assert ran.result is not None
    assert ran.result.rows[0][0] == 20
    assert "does not say whose its rows are" in ran.fix_history[0].error_in
    failed = _run(warehouse, "SELECT secret FROM ledger")
    assert failed.result is None
    assert "ledger" in str(failed.error)


def test_another_column_may_hold_the_tenant_of_a_table(source: dict[str, Any]) -> None:
    settings = FILTER | {"filter_value": "1", "tenant_columns": {"visits": "account"}}
    opened = open_warehouses(_project(**source, **settings), open_provider())["default"]
    try:
        assert [row[0] for row in opened.execute("SELECT id FROM visits", limits=LIMITS).rows] == [7]
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"filter_field": "tenant"}, "filter_value is not set"),
        ({"filter_value": "acme"}, "filter_field is not set"),
        ({"shared_tables": ["plans"]}, "need filter_field and filter_value"),
        ({"filter_field": "tenant", "filter_value": "a\x07"}, "control characters"),
    ],
)
def test_half_a_filter_is_the_settings_fault(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    path = tmp_path / "w.duckdb"
    duckdb.connect(str(path)).close()
    with pytest.raises(ConfigError, match=words):
        open_warehouses(_project(provider="duckdb", config={"path": str(path)}, **settings), open_provider())


def test_a_tenant_column_that_is_not_there_is_the_settings_fault(source: dict[str, Any]) -> None:
    settings = FILTER | {"tenant_columns": {"orders": "account"}}
    opened = open_warehouses(_project(**source, **settings), open_provider())["default"]
    try:
        with pytest.raises(ConfigError, match="tenant_columns names 'account'"):
            opened.tables()
    finally:
        opened.close()
