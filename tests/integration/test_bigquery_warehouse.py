"""What is sent to BigQuery, and what becomes of its answers: the client as it is, the emulator behind, errors as documented."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_agent.adapters.bigquery import MAXIMUM_BYTES_BILLED, open_warehouse
from assay_agent.ports import Completion, Inspectable, Message, QueryLimits, Warehouse, WarehouseSettings
from assay_agent.sql.query import run_query
from assay_core import clock
from assay_core.errors import AssayError, BudgetExhausted, ConfigError, QueryError, TransientError
from tests.bigquery_server import ACCOUNT, ENDLESS, BigQueryServer, bigquery_server, error

LIMITS = QueryLimits(rows=100, cell_chars=200, result_bytes=1 << 20, timeout_s=20)
GIB = 1024**3
TABLES = (
    "CREATE TABLE people (id INT64 NOT NULL, name STRING)",
    "INSERT INTO people VALUES (1, 'Ann'), (2, 'Bob')",
    "CREATE VIEW adults AS SELECT id FROM people",
)
INSERT = r"^POST \S+/jobs .*\"query\": \"SELECT (?!1\")(?!.*dryRun)"
REHEARSAL = r"^POST \S+/jobs .*dryRun"


@pytest.fixture
def server() -> Iterator[BigQueryServer]:
    with bigquery_server() as played:
        yield played


@pytest.fixture
def dataset(server: BigQueryServer) -> Iterator[str]:
    with server.dataset(*TABLES) as name:
        yield name


def settings(server: BigQueryServer, *datasets: str, **changed: Any) -> WarehouseSettings:
    given: dict[str, Any] = {
        "datasource_id": "d1",
        "provider": "bigquery",
        "datasets": datasets,
        "config": server.config(),
        "secret": server.key(),
    }
    return WarehouseSettings(**(given | changed))


@pytest.fixture
def warehouse(server: BigQueryServer, dataset: str) -> Iterator[Warehouse]:
    opened = open_warehouse(settings(server, dataset))
    server.requests.clear()
    yield opened
    opened.close()


def rehearsed(bytes_read: int, *, statement: str = "SELECT") -> dict[str, Any]:
    """The answer to a dry run."""
    return {
        "kind": "bigquery#job",
        "jobReference": {"projectId": "shop-1", "jobId": "j", "location": "US"},
        "configuration": {"dryRun": True, "query": {}},
        "status": {"state": "DONE"},
        "statistics": {"query": {"statementType": statement, "totalBytesProcessed": str(bytes_read)}},
    }


# ------------------------------------------------------------------------------------------------- what is sent


def test_a_query_is_rehearsed_and_then_limited_labelled_timed_and_placed(
    server: BigQueryServer, dataset: str
) -> None:
    labels = {"run": "R 1/Ä", "attempt": "2"}
    opened = open_warehouse(settings(server, dataset, labels=labels))
    server.requests.clear()
    opened.execute("SELECT id FROM people", limits=LIMITS)
    (rehearsal,) = server.jobs(dry_run=True)
    (job,) = server.jobs()
    assert rehearsal["query"]["query"] == job["query"]["query"] == "SELECT id FROM people\nLIMIT 101"
    assert job["query"]["maximumBytesBilled"] == str(MAXIMUM_BYTES_BILLED)
    assert job["query"]["useLegacySql"] is False
    assert job["query"]["defaultDataset"] == {"projectId": "shop-1", "datasetId": dataset}
    assert job["jobTimeoutMs"] == "20000"
    assert job["labels"] == {"assay": "query", "assay_run": "r-1--", "assay_attempt": "2"}
    inserted = [request for request in server.requests if request.job and not request.job.get("dryRun")]
    assert inserted[0].body["jobReference"]["location"] == "US"
    opened.close()


@pytest.mark.parametrize(
    ("configured", "left", "sent"),
    [
        (None, None, MAXIMUM_BYTES_BILLED),
        (5 * GIB, None, 5 * GIB),
        (5 * GIB, 2 * GIB, 2 * GIB),
        (5 * GIB, 900 * GIB, 5 * GIB),
    ],
)
def test_the_bytes_billed_are_limited_by_the_datasource_and_by_what_is_left(
    server: BigQueryServer, dataset: str, configured: int | None, left: int | None, sent: int
) -> None:
    config = server.config() | ({"maximum_bytes_billed": configured} if configured else {})
    opened = open_warehouse(settings(server, dataset, config=config))
    server.requests.clear()
    limits = QueryLimits(rows=5, cell_chars=9, result_bytes=999, timeout_s=9, scan_bytes=left)
    opened.execute("SELECT id FROM people", limits=limits)
    assert [job["query"]["maximumBytesBilled"] for job in server.jobs()] == [str(sent)]
    opened.close()


def test_a_table_is_sampled_without_a_query_and_a_view_with_one(
    server: BigQueryServer, warehouse: Warehouse
) -> None:
    warehouse.tables()
    server.requests.clear()
    assert warehouse.sample("people", limits=LIMITS).rows == ((1, "Ann"), (2, "Bob"))
    assert server.jobs() == []
    assert {row[0] for row in warehouse.sample("adults", limits=LIMITS).rows} == {1, 2}
    assert len(server.jobs()) == 1


def test_a_stopped_query_is_cancelled_at_bigquery(server: BigQueryServer, warehouse: Warehouse) -> None:
    with pytest.raises(QueryError, match="stopped after"):
        warehouse.execute(ENDLESS, limits=QueryLimits(rows=1, cell_chars=9, result_bytes=99, timeout_s=0.4))
    (job,) = server.running
    assert [request.path for request in server.requests if request.path.endswith("/cancel")] == [
        f"/bigquery/v2/projects/shop-1/jobs/{job}/cancel"
    ]


# --------------------------------------------------------------------------------------------- bytes and limits


def test_a_query_that_would_read_too_much_is_refused_before_it_runs(
    server: BigQueryServer, warehouse: Warehouse
) -> None:
    server.script(REHEARSAL, 200, rehearsed(200 * GIB))
    with pytest.raises(QueryError, match="would read 214,748,364,800 bytes where 107,374,182,400") as failed:
        warehouse.execute("SELECT id FROM people", limits=LIMITS)
    assert failed.value.kind == "scan_bytes"
    assert server.jobs() == []


def test_no_query_runs_when_less_is_left_than_any_costs(server: BigQueryServer, warehouse: Warehouse) -> None:
    server.script(REHEARSAL, 200, rehearsed(1))
    limits = QueryLimits(rows=5, cell_chars=9, result_bytes=999, timeout_s=9, scan_bytes=1_000_000)
    with pytest.raises(BudgetExhausted, match=r"1,000,000 bytes scanned are left.*--max-bytes-scanned"):
        warehouse.execute("SELECT id FROM people", limits=limits)
    assert server.jobs() == []


def test_what_bigquery_itself_refuses_to_bill_is_said_the_same_way(
    server: BigQueryServer, warehouse: Warehouse
) -> None:
    message = "Query exceeded limit for bytes billed: 20971520. 31457280 or higher required."
    server.script(INSERT, 400, error(400, "bytesBilledLimitExceeded", message))
    limits = QueryLimits(rows=5, cell_chars=9, result_bytes=999, timeout_s=9, scan_bytes=20 * 1024**2)
    with pytest.raises(QueryError, match="would read more bytes where 20,971,520 are allowed"):
        warehouse.execute("SELECT id FROM people", limits=limits)


def test_what_bigquery_billed_is_reported(server: BigQueryServer, warehouse: Warehouse) -> None:
    reference = {"projectId": "shop-1", "jobId": "j", "location": "US"}
    job = rehearsed(5) | {"configuration": {"query": {"query": "SELECT id FROM people"}}}
    job["statistics"]["query"]["totalBytesBilled"] = "10485760"
    server.script(INSERT, 200, job | {"jobReference": reference})
    rows = [{"f": [{"v": "7"}]}]
    schema = {"fields": [{"name": "id", "type": "INTEGER"}]}
    answer = {
        "jobReference": reference,
        "jobComplete": True,
        "schema": schema,
        "rows": rows,
        "totalRows": "1",
    }
    server.script(r"^GET \S+/queries/j ", 200, answer)
    result = warehouse.execute("SELECT id FROM people", limits=LIMITS)
    assert result.rows == ((7,),)
    assert result.bytes_scanned == 10_485_760


@pytest.mark.parametrize("kind", ["SCRIPT", "EXPORT_DATA", "CALL", ""])
def test_what_bigquery_does_not_call_a_select_never_runs(
    server: BigQueryServer, warehouse: Warehouse, kind: str
) -> None:
    server.script(REHEARSAL, 200, rehearsed(0, statement=kind))
    with pytest.raises(QueryError, match="only SELECT runs here") as failed:
        warehouse.execute("SELECT id FROM people", limits=LIMITS)
    assert failed.value.kind == "guard"
    assert server.jobs() == []


# ------------------------------------------------------------------------------------------------------- errors

DENIED = "Access Denied: Table shop-1:d.pay: User does not have permission to query table shop-1:d.pay, or perhaps it does not exist."
NO_JOBS = (
    "Access Denied: Project shop-1: User does not have bigquery.jobs.create permission in project shop-1."
)


@pytest.mark.parametrize(
    ("status", "reason", "message", "raised", "kind"),
    [
        (400, "invalidQuery", "Unrecognized name: nope at [1:8]", QueryError, "execution"),
        (400, "invalidQuery", "Duplicate column names in the result: a", QueryError, "execution"),
        (
            404,
            "notFound",
            "Not found: Table shop-1:d.x was not found in location US",
            QueryError,
            "unknown_table",
        ),
        (403, "accessDenied", DENIED, QueryError, "permission"),
        (403, "accessDenied", NO_JOBS, ConfigError, "grant it roles/bigquery.jobUser"),
        (
            403,
            "billingNotEnabled",
            "Billing has not been enabled for this project.",
            ConfigError,
            "Billing has not",
        ),
        (401, "authError", "Invalid Credentials", ConfigError, "warehouse-credentials"),
        (400, "resourcesExceeded", "Resources exceeded during query execution", QueryError, "resources"),
        (403, "responseTooLarge", "Response too large to return.", QueryError, "resources"),
        (400, "stopped", "Job execution was cancelled: Job timed out after 20s", QueryError, "timeout"),
        (
            403,
            "rateLimitExceeded",
            "Exceeded rate limits: too many concurrent queries",
            TransientError,
            "busy",
        ),
        (403, "quotaExceeded", "Quota exceeded: Your project exceeded quota", TransientError, "busy"),
        (429, "tooManyRequests", "Too many requests", TransientError, "busy"),
        (500, "internalError", "An internal error occurred", TransientError, "busy"),
        (
            503,
            "backendError",
            "Error encountered during execution. Retrying may solve it.",
            TransientError,
            "busy",
        ),
    ],
)
def test_each_error_goes_to_whoever_can_act_on_it(
    server: BigQueryServer,
    warehouse: Warehouse,
    status: int,
    reason: str,
    message: str,
    raised: type[AssayError],
    kind: str,
) -> None:
    server.script(REHEARSAL, status, error(status, reason, message))
    started = time.monotonic()
    with pytest.raises(AssayError) as failed:
        warehouse.execute("SELECT id FROM people", limits=LIMITS)
    assert type(failed.value) is raised
    assert time.monotonic() - started < 10
    text = str(failed.value)
    if isinstance(failed.value, QueryError):
        assert failed.value.kind == kind
    else:
        assert kind in text
        assert "\n" not in text
    assert "http" not in text
    assert "Job ID" not in text
    assert "PRIVATE KEY" not in text
    server.scripted.clear()
    assert warehouse.execute("SELECT 1", limits=LIMITS).rows == ((1,),)


def test_a_rate_limit_waits_as_long_as_it_says_and_the_query_runs(
    server: BigQueryServer, warehouse: Warehouse
) -> None:
    refused = error(429, "rateLimitExceeded", "Exceeded rate limits")
    server.script(REHEARSAL, 429, refused, times=1, headers={"Retry-After": "7"})
    waits: list[float] = []

    def complete(messages: tuple[Message, ...]) -> Completion:
        raise AssertionError("a rate limit is not the statement's fault")

    ran = run_query(
        warehouse=warehouse,
        sql="SELECT COUNT(*) AS n FROM people",
        limits=LIMITS,
        repairs=1,
        complete=complete,
        clock=clock.now,
        step=1,
        schema_hint=", ".join,
        sleep=waits.append,
    )
    assert waits == [7.0]
    assert ran.result is not None
    assert ran.result.rows == ((2,),)


def test_a_fault_while_a_query_runs_does_not_start_it_twice(
    server: BigQueryServer, warehouse: Warehouse
) -> None:
    server.script(r"^GET \S+/(jobs|queries)/", 503, error(503, "backendError", "try again"), times=2)
    assert warehouse.execute("SELECT id FROM people ORDER BY id", limits=LIMITS).rows == ((1,), (2,))
    assert len(server.jobs()) == 1
    assert server.scripted[0].times == 0


def test_a_credential_that_expires_in_a_run_is_a_human_s_to_renew(
    server: BigQueryServer, warehouse: Warehouse
) -> None:
    server.script(r"^POST /token ", 400, {"error": "invalid_grant", "error_description": "Token expired"})
    server.script(r"^POST \S+/jobs ", 401, error(401, "authError", "Request had invalid credentials"))
    with pytest.raises(
        ConfigError, match=f"the credential of {ACCOUNT} is refused: .*invalid_grant"
    ) as failed:
        warehouse.execute("SELECT id FROM people", limits=LIMITS)
    assert "\n" not in str(failed.value)
    assert "PRIVATE" not in str(failed.value)


# ------------------------------------------------------------------------------------------------------ opening


def test_a_dataset_that_is_not_there_and_one_that_is_not_shown_are_told_apart(
    server: BigQueryServer, dataset: str
) -> None:
    with pytest.raises(ConfigError, match="dataset nowhere does not exist in project shop-1"):
        open_warehouse(settings(server, "nowhere"))
    denied = f"Access Denied: Dataset shop-1:{dataset}: Permission bigquery.datasets.get denied"
    server.script(rf"^GET \S+/datasets/{dataset} ", 403, error(403, "accessDenied", denied))
    with pytest.raises(ConfigError, match=f"{ACCOUNT} may not read dataset {dataset}.*bigquery.dataViewer"):
        open_warehouse(settings(server, dataset))


def test_who_may_read_but_not_run_queries_is_told_so(server: BigQueryServer, dataset: str) -> None:
    server.script(REHEARSAL, 403, error(403, "accessDenied", NO_JOBS))
    with pytest.raises(ConfigError, match=r"may not run queries in project shop-1.*roles/bigquery\.jobUser"):
        open_warehouse(settings(server, dataset))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"secret": "not json"}, "warehouse-credentials is not usable; it must be the JSON key"),
        ({"secret": '{"type": "robot"}'}, "warehouse-credentials is not usable"),
        ({"secret": '{"type": "service_account", "private_key": "s3cr3t"}'}, "is damaged"),
        (
            {"config": {"project_id": "shop-1", "maximum_bytes_billed": "5 GB"}},
            "config.maximum_bytes_billed is '5 GB'",
        ),
        ({"config": {"project_id": "shop-1", "maximum_bytes_billed": 5}}, "10485760 at least"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_and_nothing_of_a_key_is_told(
    server: BigQueryServer, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as failed:
        open_warehouse(settings(server, "d", **changed))
    assert "s3cr3t" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert "private_key" not in repr(settings(server, "d"))


def test_a_token_that_is_not_given_is_a_refused_credential(server: BigQueryServer, dataset: str) -> None:
    server.script(r"^POST /token ", 401, {"error": "invalid_client", "error_description": "account disabled"})
    with pytest.raises(ConfigError, match=r"is refused: .*invalid_client"):
        open_warehouse(settings(server, dataset))


def test_a_server_that_is_away_is_transient_and_known_soon(server: BigQueryServer) -> None:
    started = time.monotonic()
    with pytest.raises(TransientError, match="BigQuery is not reachable") as failed:
        open_warehouse(settings(server, "d", config=server.config(api_endpoint="http://127.0.0.1:9")))
    assert failed.value.dependency == "warehouse"
    assert time.monotonic() - started < 10


def test_datasets_of_two_places_are_two_datasources(server: BigQueryServer, dataset: str) -> None:
    elsewhere = {"datasetReference": {"projectId": "shop-1", "datasetId": "eu"}, "location": "EU"}
    server.script(r"^GET \S+/datasets/eu ", 200, elsewhere)
    with pytest.raises(ConfigError, match="dataset eu is in EU and not in US"):
        open_warehouse(settings(server, dataset, "eu"))


def test_without_datasets_all_of_the_project_are_read(server: BigQueryServer, dataset: str) -> None:
    opened = open_warehouse(settings(server))
    assert dataset in opened.datasets
    opened.close()


def test_the_application_default_credential_serves_without_a_secret(
    server: BigQueryServer, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key.json"
    path.write_text(server.key())
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    opened = open_warehouse(settings(server, dataset, secret=None))
    assert opened.execute("SELECT 1", limits=LIMITS).rows == ((1,),)
    assert server.tokens >= 1
    opened.close()


# ---------------------------------------------------------------------------------------------------- catalogue


def test_nested_fields_descriptions_keys_and_partitions_are_described(
    server: BigQueryServer, warehouse: Warehouse, dataset: str
) -> None:
    item = {
        "name": "items",
        "type": "RECORD",
        "mode": "REPEATED",
        "fields": [
            {"name": "sku", "type": "STRING", "description": "stock keeping unit"},
            {"name": "price", "type": "NUMERIC", "precision": "12", "scale": "2"},
            {"name": "tags", "type": "STRING", "mode": "REPEATED", "description": "free words"},
        ],
    }
    table = {
        "tableReference": {"projectId": "shop-1", "datasetId": dataset, "tableId": "people"},
        "schema": {
            "fields": [
                {"name": "id", "type": "INTEGER", "mode": "REQUIRED", "description": "the key"},
                item,
                {"name": "day", "type": "DATE"},
                {"name": "place", "type": "GEOGRAPHY"},
                {"name": "valid", "type": "RANGE", "rangeElementType": {"type": "DATE"}},
                {"name": "huge", "type": "BIGNUMERIC"},
                {"name": "new", "type": "SOMETHING_NEW"},
            ]
        },
        "tableConstraints": {"primaryKey": {"columns": ["id"]}},
        "timePartitioning": {"type": "DAY", "field": "day"},
        "requirePartitionFilter": True,
    }
    server.script(rf"^GET \S+/datasets/{dataset}/tables/people ", 200, table)
    (described,) = warehouse.describe(["people"])
    told = {
        column.name: (column.type, column.kind, column.category, column.comment)
        for column in described.columns
    }
    assert told == {
        "id": ("INT64", "INT64", "primary_key", "the key"),
        "items": (
            "ARRAY<STRUCT<sku STRING, price NUMERIC(12, 2), tags ARRAY<STRING>>>",
            "RECORD",
            "dimension",
            "items[].sku: stock keeping unit; items[].tags[]: free words",
        ),
        "day": ("DATE", "DATE", "time", "partitions the table: a filter on it is required"),
        "place": ("GEOGRAPHY", "STRING", "dimension", ""),
        "valid": ("RANGE<DATE>", "STRING", "dimension", ""),
        "huge": ("BIGNUMERIC", "FLOAT64", "metric", ""),
        "new": ("SOMETHING_NEW", "STRING", "dimension", ""),
    }


def test_counts_that_may_not_be_asked_for_are_unknown(server: BigQueryServer, warehouse: Warehouse) -> None:
    server.script(r"^POST .*INFORMATION_SCHEMA\.PARTITIONS", 403, error(403, "accessDenied", DENIED))
    assert {table.ref.split(".")[1]: table.row_count for table in warehouse.tables()} == {
        "people": None,
        "adults": None,
    }


def test_rights_to_write_are_found_and_silence_is_no_proof(
    server: BigQueryServer, warehouse: Warehouse
) -> None:
    assert isinstance(warehouse, Inspectable)
    server.rights = ["bigquery.tables.updateData"]
    found = warehouse.grants()
    assert found is not None
    assert found.user == ACCOUNT
    assert [grant.names for grant in found.privileges] == [("bigquery.tables.updateData",)]
    server.rights = []
    proven = warehouse.grants()
    assert proven is not None
    assert proven.privileges == ()
    assert proven.proof == "IAM permissions to write tested on 1 of 1 tables"
    server.rights = None
    assert warehouse.grants() is None


def test_other_warehouses_do_not_load_the_client() -> None:
    code = (
        "import sys, assay_agent.cli, assay_agent.wiring; from assay_agent import plugins; plugins.load('warehouses', 'duckdb'); "
        "print([name for name in sys.modules if name.startswith('google.cloud.bigquery')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"
