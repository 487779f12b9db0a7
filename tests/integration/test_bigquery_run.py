"""Whole runs over the BigQuery emulator, from the command line: by URL with the scout, and by a datasource of assay.yaml."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_agent.adapters.bigquery_failures import LEAST_BILLED
from assay_agent.settings import AgentSettings
from assay_agent.stores import open_for_reading
from tests.bigquery_server import ACCOUNT, BigQueryServer, bigquery_server
from tests.integration.test_cli import assay

TABLES = (
    "CREATE TABLE orders (order_id INT64 NOT NULL, customer_id INT64, amount NUMERIC, status STRING, ordered_at TIMESTAMP, "
    "items ARRAY<STRUCT<sku STRING, quantity INT64>>) OPTIONS(description = 'One row per order')",
    "INSERT INTO orders SELECT i, MOD(i, 10), CASE WHEN MOD(i, 5) = 0 THEN NULL ELSE CAST(i * 2 AS NUMERIC) END, "
    "CASE WHEN MOD(i, 4) = 0 THEN 'returned' ELSE 'sent' END, "
    "TIMESTAMP_ADD(TIMESTAMP '2025-01-01 00:00:00', INTERVAL i HOUR), [STRUCT('a' AS sku, i AS quantity)] "
    "FROM UNNEST(GENERATE_ARRAY(1, 1500)) AS i",
    "CREATE TABLE customers (customer_id INT64 NOT NULL, name STRING, country STRING)",
    "INSERT INTO customers SELECT i, CONCAT('c', i), CASE WHEN i < 4 THEN 'DE' ELSE 'FR' END "
    "FROM UNNEST(GENERATE_ARRAY(0, 9)) AS i",
)


@pytest.fixture(scope="module")
def server() -> Iterator[BigQueryServer]:
    with bigquery_server() as played:
        yield played


@pytest.fixture(scope="module")
def dataset(server: BigQueryServer) -> Iterator[str]:
    with server.dataset(*TABLES) as name:
        yield name


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("MONGODB_URI", "QDRANT_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_scout_explores_a_bigquery_url_and_finds_what_is_there(
    place: Path, server: BigQueryServer, dataset: str
) -> None:
    url = f"bigquery://shop-1/{dataset}?api_endpoint={server.url}"
    ran = assay("run", url, "--source-env", "KEY", "--max-steps", "25", "--out", "out", KEY=server.key())
    assert ran.returncode == 0, ran.stderr
    document = json.loads((place / "out" / "discovery.json").read_text(encoding="utf-8"))
    assert any(
        "20.0% of the rows in orders have no amount" in insight["name"] for insight in document["insights"]
    )
    assert document["summary"]["queries_executed"] >= 10
    assert " ✗ " not in ran.stderr
    assert json.loads(server.key())["private_key"][40:80] not in ran.stdout + ran.stderr + json.dumps(
        document
    )


def test_a_datasource_of_the_configuration_is_explored_within_its_bytes_and_its_jobs_say_for_whom(
    place: Path, server: BigQueryServer, dataset: str
) -> None:
    document = {
        "id": "shop",
        "llm": {"provider": "scout"},
        "datasources": [
            {
                "provider": "bigquery",
                "project_id": "shop-1",
                "location": "US",
                "datasets": [dataset],
                "config": {"api_endpoint": server.url},
            }
        ],
    }
    (place / "assay.yaml").write_text(json.dumps(document), encoding="utf-8")
    before = len(server.jobs())
    server.billed, budget = 10 * 1024**2, 50_000_000
    ran = assay(
        *(
            "run",
            "--config",
            "assay.yaml",
            "--max-steps",
            "20",
            "--max-bytes-scanned",
            str(budget),
            "--quiet",
        ),
        WAREHOUSE_CREDENTIALS=server.key(),
    )
    server.billed = 0
    assert ran.returncode == 0, ran.stderr
    listed = json.loads(assay("runs", "--json").stdout)
    assert [run["status"] for run in listed] == ["completed"]
    sent = [job for job in server.jobs()[before:] if job["labels"]["assay"] == "query"]
    # Exploring ends when it has used its share, three fifths, and each query may be billed what is left.
    assert [int(job["query"]["maximumBytesBilled"]) for job in sent] == [
        budget,
        budget - 10 * 1024**2,
        budget - 20 * 1024**2,
    ]
    assert {(job["labels"]["assay_run"], job["labels"]["assay_attempt"]) for job in sent} == {
        (listed[0]["id"], "1")
    }
    shown = assay(
        "test-connection", "warehouse", "--config", "assay.yaml", WAREHOUSE_CREDENTIALS=server.key()
    )
    assert "BigQuery 2 (project shop-1, US)" in shown.stdout


def test_the_run_s_bytes_are_those_of_its_own_questions_too(
    place: Path, server: BigQueryServer, dataset: str
) -> None:
    url = f"bigquery://shop-1/{dataset}?api_endpoint={server.url}"
    before = len(server.jobs())
    server.billed, server.billed_kinds = LEAST_BILLED, frozenset({"query", "catalogue"})
    try:
        ran = assay("run", url, "--source-env", "KEY", "--max-steps", "3", "--quiet", KEY=server.key())
    finally:
        server.billed, server.billed_kinds = 0, frozenset({"query"})
    assert ran.returncode == 0, ran.stderr
    sent = [job["labels"]["assay"] for job in server.jobs()[before:]]
    assert sent.count("catalogue") >= 2
    with open_for_reading(home=place / ".assay", settings=AgentSettings.load()) as stores:
        [run] = stores.store.runs.recent()
        assert run.bytes_scanned == len(sent) * LEAST_BILLED


def test_a_credential_that_could_write_is_refused_by_name(
    place: Path, server: BigQueryServer, dataset: str
) -> None:
    server.rights = ["bigquery.tables.updateData", "bigquery.tables.delete"]
    try:
        url = f"bigquery://shop-1/{dataset}?api_endpoint={server.url}"
        ran = assay("run", url, "--source-env", "KEY", "--quiet", KEY=server.key())
    finally:
        server.rights = []
    assert ran.returncode == 10
    assert f"the credential {ACCOUNT!r} could write: bigquery.tables.updateData" in ran.stderr
    assert f"allow_writable_credential: {ACCOUNT}" in ran.stderr


def test_a_machine_s_own_account_serves_without_a_key_and_is_named(
    place: Path, server: BigQueryServer, dataset: str
) -> None:
    """As in a cluster with workload identity: the metadata server gives the token, and says whose it is."""
    flavor = {"Metadata-Flavor": "Google"}
    account = {
        "email": ACCOUNT,
        "scopes": ["https://www.googleapis.com/auth/bigquery"],
        "aliases": ["default"],
    }
    token = {"access_token": "t", "expires_in": 3600, "token_type": "Bearer"}
    server.script(r"^GET /computeMetadata/\S+/token ", 200, token, headers=flavor)
    server.script(
        r"^GET /computeMetadata/v1/instance/service-accounts/default/ ", 200, account, headers=flavor
    )
    server.script(r"^GET (/|/computeMetadata/\S*) ", 200, "shop-1", headers=flavor)
    server.rights = ["bigquery.tables.updateData"]
    host = server.url.removeprefix("http://")
    try:
        url = f"bigquery://shop-1/{dataset}?api_endpoint={server.url}"
        away = {"GOOGLE_APPLICATION_CREDENTIALS": "", "CLOUDSDK_CONFIG": str(place)}
        ran = assay("run", url, "--quiet", GCE_METADATA_HOST=host, GCE_METADATA_IP=host, **away)
    finally:
        server.rights = []
        server.scripted.clear()
    assert ran.returncode == 10
    assert f"the credential {ACCOUNT!r} could write" in ran.stderr
