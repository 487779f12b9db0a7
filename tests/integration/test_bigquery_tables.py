"""Tables of other projects, tables cut by day, and what BigQuery bills for questions of our own; on the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from assay_agent.adapters.bigquery import BigQueryWarehouse, open_warehouse
from assay_agent.adapters.bigquery_failures import LEAST_BILLED
from assay_agent.budgets import Budget, BytesMeter, Ledger
from assay_agent.ports import QueryLimits, WarehouseSettings
from assay_agent.sql.confined import ConfinedWarehouse, TenantSettings
from assay_agent.sql.dialects import quote_ref
from assay_agent.sql.guard import check
from assay_core.errors import BudgetExhausted, ConfigError, QueryError
from tests.bigquery_server import BigQueryServer, bigquery_server

LIMITS = QueryLimits(rows=100, cell_chars=200, result_bytes=1 << 20, timeout_s=20)
OTHER = "other-2"
DAYS = ("20260101", "20260102", "20260104")
EVENTS = tuple(
    statement
    for day in DAYS
    for statement in (
        f"CREATE TABLE events_{day} (account STRING, n INT64)",
        f"INSERT INTO events_{day} VALUES ('acme', {int(day[-2:])}), ('bolt', 100)",
    )
)


@pytest.fixture(scope="module")
def server() -> Iterator[BigQueryServer]:
    with bigquery_server() as played:
        yield played


@pytest.fixture(scope="module")
def dataset(server: BigQueryServer) -> Iterator[str]:
    more = (
        "CREATE TABLE orders (account STRING, amount NUMERIC)",
        "INSERT INTO orders VALUES ('acme', 1), ('bolt', 2)",
        "CREATE TABLE events_20250101_old (account STRING)",
        "CREATE VIEW seen AS SELECT account FROM orders",
    )
    with server.dataset(*EVENTS, *more) as name:
        yield name


@pytest.fixture(scope="module")
def shared(server: BigQueryServer) -> Iterator[str]:
    """A dataset of another project, with a table of a name that our own has too."""
    rates = (
        "CREATE TABLE rates (day DATE, rate NUMERIC)",
        "INSERT INTO rates VALUES (DATE '2026-01-01', 1.5)",
        "CREATE TABLE orders (account STRING, amount NUMERIC)",
        "INSERT INTO orders VALUES ('acme', 70), ('bolt', 80)",
    )
    with server.dataset(*rates, *EVENTS, name=f"s_{uuid4().hex[:12]}", project=OTHER) as name:
        yield name


def opened(server: BigQueryServer, *datasets: str, **changed: Any) -> BigQueryWarehouse:
    given: dict[str, Any] = {
        "datasource_id": "d1",
        "provider": "bigquery",
        "datasets": datasets,
        "config": server.config(),
        "secret": server.key(),
    }
    warehouse = open_warehouse(WarehouseSettings(**(given | changed)))
    assert isinstance(warehouse, BigQueryWarehouse)
    return warehouse


# ------------------------------------------------------------------------------------------------- cut by day


def test_tables_cut_by_day_are_listed_as_one_with_their_rows(server: BigQueryServer, dataset: str) -> None:
    warehouse = opened(server, dataset)
    listed = {table.ref: (table.column_count, table.row_count) for table in warehouse.tables()}
    assert listed == {
        f"{dataset}.events_*": (3, 6),
        f"{dataset}.events_20250101_old": (1, 0),
        f"{dataset}.orders": (2, 2),
        f"{dataset}.seen": (1, None),
    }
    (described,) = warehouse.describe([f"{dataset}.events_*"])
    assert [column.name for column in described.columns] == ["account", "n", "_TABLE_SUFFIX"]
    assert described.comment.startswith("3 tables, 20260101 to 20260104, 1 day missing.")
    assert "It also catches 1 other tables." in described.comment
    warehouse.close()


def test_one_day_s_table_is_described_as_all_and_sampled_without_a_query(
    server: BigQueryServer, dataset: str
) -> None:
    warehouse = opened(server, dataset)
    warehouse.tables()
    server.requests.clear()
    (described,) = warehouse.describe([f"shop-1.{dataset}.events_20260102"])
    assert described.ref == f"{dataset}.events_*"
    assert warehouse.sample(described.ref, limits=LIMITS).rows == (("acme", 4), ("bolt", 100))
    assert server.jobs() == []
    with pytest.raises(QueryError, match="no such table"):
        warehouse.describe([f"{dataset}.events_20260103"])
    warehouse.close()


def test_a_statement_reads_the_days_it_names(server: BigQueryServer, dataset: str) -> None:
    warehouse = opened(server, dataset)
    name = quote_ref(f"{dataset}.events_*", dialect="bigquery")
    sql = f"SELECT COUNT(DISTINCT _TABLE_SUFFIX) AS days, SUM(n) AS n FROM {name} WHERE _TABLE_SUFFIX >= '20260102'"
    rows = warehouse.execute(check(sql, dialect="bigquery").sql, limits=LIMITS).rows
    assert [tuple(map(int, row)) for row in rows] == [(2, 206)]
    warehouse.close()


# ------------------------------------------------------------------------------------------------- other projects


def test_a_dataset_of_another_project_is_listed_and_read_by_its_full_name(
    server: BigQueryServer, dataset: str, shared: str
) -> None:
    warehouse = opened(server, dataset, f"{OTHER}.{shared}")
    refs = [table.ref for table in warehouse.tables()]
    assert f"{OTHER}.{shared}.rates" in refs
    assert f"{OTHER}.{shared}.events_*" in refs
    assert f"{dataset}.orders" in refs
    described = warehouse.describe([f"`{OTHER}.{shared}.rates`", f"shop-1.{dataset}.orders"])
    assert [table.ref for table in described] == [f"{OTHER}.{shared}.rates", f"{dataset}.orders"]
    assert [column.name for column in described[0].columns] == ["day", "rate"]
    ref = f"{OTHER}.{shared}.rates"
    assert len(warehouse.sample(ref, limits=LIMITS).rows) == 1
    sql = check(f"SELECT COUNT(*) AS n FROM {quote_ref(ref, dialect='bigquery')}", dialect="bigquery")
    assert sql.tables == (ref,)
    assert warehouse.execute(sql.sql, limits=LIMITS).rows == ((1,),)
    assert {job["query"]["defaultDataset"]["projectId"] for job in server.jobs()[-1:]} == {"shop-1"}
    warehouse.close()


def test_a_table_of_another_project_is_not_taken_for_one_of_the_same_name(
    server: BigQueryServer, dataset: str
) -> None:
    warehouse = opened(server, dataset)
    with pytest.raises(QueryError, match="no such table"):
        warehouse.describe([f"{OTHER}.{dataset}.orders"])
    warehouse.close()


def test_a_dataset_that_another_project_does_not_have_is_named_with_it(server: BigQueryServer) -> None:
    with pytest.raises(ConfigError, match="dataset nowhere does not exist in project other-2"):
        opened(server, f"{OTHER}.nowhere")
    with pytest.raises(ConfigError, match=r"'a\.b\.c' is no dataset"):
        opened(server, "a.b.c")


# ------------------------------------------------------------------------------------------------------- tenants


def confined(warehouse: BigQueryWarehouse, **changed: Any) -> ConfinedWarehouse:
    given = {"column": "account", "value": "acme", "catalog": "shop-1", **changed}
    return ConfinedWarehouse(warehouse, TenantSettings(**given))


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT SUM(amount) FROM `{own}.orders`", 1),
        ("SELECT SUM(amount) FROM `shop-1.{own}.orders`", 1),
        ("SELECT SUM(amount) FROM `other-2.{other}.orders`", 70),
        ("SELECT SUM(a.amount + b.amount) FROM {own}.orders a, `other-2`.{other}.orders b", 71),
        ("SELECT SUM(n) FROM `{own}.events_*` WHERE account = 'acme' AND _TABLE_SUFFIX > '20260101'", 6),
        ("SELECT SUM(n) FROM `{own}.events_202601*` WHERE account = 'acme'", 7),
        ("SELECT SUM(n) FROM `other-2.{other}.events_*` AS e WHERE e.account = 'acme'", 7),
        ("SELECT SUM(n) FROM `{own}.events_20260102`", 2),
        ("SELECT SUM(n) FROM `other-2.{other}.events_20260104`", 4),
    ],
)
def test_one_tenant_s_rows_are_read_of_every_such_table(
    server: BigQueryServer, dataset: str, shared: str, sql: str, answer: int
) -> None:
    warehouse = opened(server, dataset, f"{OTHER}.{shared}")
    rows = confined(warehouse).execute(sql.format(own=dataset, other=shared), limits=LIMITS).rows
    assert [int(value) for (value,) in rows] == [answer]
    warehouse.close()


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT SUM(n) FROM `{own}.events_*`", "stands for several tables"),
        ("SELECT SUM(n) FROM `{own}.events_*` WHERE account = 'acme' OR n > 0", "stands for several tables"),
        ("SELECT COUNT(*) FROM `third-3.{own}.orders`", "no such table in this datasource"),
        ("SELECT COUNT(*) FROM `other-2.{own}.orders`", "no such table in this datasource"),
        ("SELECT COUNT(*) FROM `other-2.{other}.rates`", "does not say whose its rows are"),
        ("SELECT COUNT(*) FROM {other}.orders", "no such table in this datasource"),
    ],
)
def test_what_is_not_the_tenant_s_is_refused(
    server: BigQueryServer, dataset: str, shared: str, sql: str, why: str
) -> None:
    warehouse = opened(server, dataset, f"{OTHER}.{shared}")
    with pytest.raises(QueryError, match=why) as failed:
        confined(warehouse).execute(sql.format(own=dataset, other=shared), limits=LIMITS)
    assert failed.value.kind == "tenant"
    warehouse.close()


def test_tables_cut_by_day_are_sampled_for_one_tenant(server: BigQueryServer, shared: str) -> None:
    warehouse = opened(server, f"{OTHER}.{shared}")
    shown = confined(warehouse)
    ref = f"{OTHER}.{shared}.events_*"
    assert ref in [table.ref for table in shown.tables()]
    rows = shown.sample(ref, limits=LIMITS).rows
    assert sorted(row[:2] for row in rows) == [("acme", 1), ("acme", 2), ("acme", 4)]
    warehouse.close()


def test_a_name_that_catches_a_table_with_another_tenant_column_is_refused(
    server: BigQueryServer, dataset: str
) -> None:
    warehouse = opened(server, dataset)
    shown = confined(warehouse, shared=frozenset({"events_20250101_old"}))
    with pytest.raises(QueryError, match="no such table"):
        shown.execute(f"SELECT SUM(n) FROM `{dataset}.events_*` WHERE account = 'acme'", limits=LIMITS)
    warehouse.close()


# --------------------------------------------------------------------------------------------------------- bytes


@pytest.fixture
def billing(server: BigQueryServer) -> Iterator[BigQueryServer]:
    server.billed, server.billed_kinds = LEAST_BILLED, frozenset({"query", "catalogue"})
    yield server
    server.billed, server.billed_kinds = 0, frozenset({"query"})


def test_the_catalogue_s_own_queries_are_billed_to_the_run(billing: BigQueryServer, dataset: str) -> None:
    ledger = Ledger()
    warehouse = opened(billing, dataset, meter=BytesMeter(ledger=ledger))
    billing.requests.clear()
    warehouse.tables()
    asked = [job for job in billing.jobs() if job["labels"]["assay"] == "catalogue"]
    assert len(asked) == 2
    assert ledger.spent[Budget.BYTES] == 2 * LEAST_BILLED
    warehouse.describe([f"{dataset}.orders"])
    warehouse.sample(f"{dataset}.orders", limits=LIMITS)
    assert ledger.spent[Budget.BYTES] == 2 * LEAST_BILLED
    warehouse.sample(f"{dataset}.seen", limits=LIMITS)
    assert ledger.spent[Budget.BYTES] == 3 * LEAST_BILLED
    result = warehouse.execute("SELECT 1 AS n", limits=LIMITS)
    assert (result.bytes_scanned, ledger.spent[Budget.BYTES]) == (LEAST_BILLED, 3 * LEAST_BILLED)
    warehouse.close()


def test_a_tenant_s_samples_are_billed_to_the_run(billing: BigQueryServer, dataset: str) -> None:
    ledger = Ledger()
    meter = BytesMeter(ledger=ledger)
    warehouse = opened(billing, dataset, meter=meter)
    settings = TenantSettings(column="account", value="acme", catalog="shop-1")
    shown = ConfinedWarehouse(warehouse, settings, meter=meter)
    shown.tables()
    before = ledger.spent[Budget.BYTES]
    shown.sample(f"{dataset}.orders", limits=LIMITS)
    assert ledger.spent[Budget.BYTES] == before + LEAST_BILLED
    warehouse.close()


def test_the_catalogue_may_be_billed_no_more_than_is_left(billing: BigQueryServer, dataset: str) -> None:
    ledger = Ledger(limits={Budget.BYTES: 3 * LEAST_BILLED - 1})
    warehouse = opened(billing, dataset, meter=BytesMeter(ledger=ledger))
    billing.requests.clear()
    warehouse.tables()
    sent = [int(job["query"]["maximumBytesBilled"]) for job in billing.jobs()]
    assert sent == [3 * LEAST_BILLED - 1, 2 * LEAST_BILLED - 1]
    billing.requests.clear()
    with pytest.raises(BudgetExhausted, match="--max-bytes-scanned"):
        warehouse.tables()
    assert billing.jobs() == []
    warehouse.close()
