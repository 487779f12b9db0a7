"""BigQuery as a warehouse: every query rehearsed for what it is and what it reads, then billed no more than it may be.

Found by the entry point `bigquery`. `settings.config`: `project_id`, and optionally `location`, `maximum_bytes_billed` (per
query) and `api_endpoint`; `settings.datasets` (`dataset`, or `project.dataset` where another project shows its rows), by default
all of the project. The credential is `settings.secret` (the JSON key of a service account, or of an authorized user), else the
application default. Invariant: it stands in no error, log or `repr`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from google.api_core.client_options import ClientOptions
from google.cloud import bigquery

from assay_agent.adapters.bigquery_catalog import Metadata
from assay_agent.adapters.bigquery_credentials import Identity, identity_of
from assay_agent.adapters.bigquery_failures import LEAST_BILLED
from assay_agent.adapters.bigquery_jobs import CALL_TIMEOUT_S, ONCE, PAGE_ROWS, Jobs
from assay_agent.adapters.bigquery_names import known_as, ref_of
from assay_agent.adapters.bigquery_values import label_of, read_row, readers
from assay_agent.adapters.catalog import Catalog
from assay_agent.adapters.cells import fetch
from assay_agent.ports import Grants, QueryLimits, QueryResult, TableRef, Warehouse, WarehouseSettings
from assay_agent.sql.dialects import sample_statement
from assay_agent.sql.limits import limited, metered
from assay_core.errors import ConfigError
from assay_core.model.table import TableSchema

MAXIMUM_BYTES_BILLED = 100 * 1024**3
"""Bytes one query may be billed where neither the datasource nor a budget says less: about half a dollar."""


def open_warehouse(settings: WarehouseSettings) -> Warehouse:
    """Sign in and ask for each dataset. Raises ConfigError for what is wrong, TransientError when nobody answers."""
    identity = identity_of(settings)
    endpoint = settings.config.get("api_endpoint")
    client = bigquery.Client(
        project=identity.project,
        credentials=identity.credentials,
        client_options=ClientOptions(api_endpoint=str(endpoint)) if endpoint else None,
    )
    warehouse = BigQueryWarehouse(settings, client=client, identity=identity)
    try:
        warehouse.check()
    except BaseException:
        warehouse.close()
        raise
    return warehouse


class BigQueryWarehouse:
    """A read-only warehouse over some datasets of one project and location; see `ports.Warehouse` for the contract."""

    def __init__(self, settings: WarehouseSettings, *, client: bigquery.Client, identity: Identity) -> None:
        self._datasource_id = settings.datasource_id
        self._datasets = settings.datasets
        self._location = settings.config.get("location")
        self._most = _bytes_setting(settings.config)
        self._meter = settings.meter
        self._jobs = Jobs(client, identity=identity, labels=settings.labels, meter=settings.meter)
        self._metadata = Metadata(self._jobs, identity=identity)
        self._catalog = Catalog(
            datasource_id=settings.datasource_id,
            list_tables=lambda: self._metadata.tables(self._datasets),
            read_columns=self._metadata.columns,
            ref_of=ref_of,
            listed_as=self._metadata.listed_as,
        )

    @property
    def datasource_id(self) -> str:
        return self._datasource_id

    @property
    def dialect(self) -> str:
        return "bigquery"

    @property
    def datasets(self) -> tuple[str, ...]:
        return self._datasets

    def check(self) -> str:
        """Every dataset is asked for, then whether queries may be run at all."""
        project = self._jobs.client.project
        self._datasets = (
            tuple(dict.fromkeys(known_as(dataset, home=project) for dataset in self._datasets))
            or self._metadata.datasets()
        )
        for dataset in self._datasets:
            place = self._metadata.location(dataset)
            self._location = self._location or place
            if place.lower() != str(self._location).lower():
                raise ConfigError(
                    f"dataset {dataset} is in {place} and not in {self._location}: a datasource has one location; "
                    "set location, or make the dataset a datasource of its own"
                )
        self._jobs.location = self._location
        self._jobs.dataset = self._metadata.dataset(self._datasets[0])
        self._jobs.rehearse("SELECT 1")
        return f"BigQuery 2 (project {project}, {self._location})"

    def grants(self) -> Grants | None:
        self._catalog.tables()
        return self._metadata.grants()

    def tables(self) -> Sequence[TableRef]:
        return self._catalog.tables()

    def describe(self, refs: Sequence[str]) -> Sequence[TableSchema]:
        return self._catalog.describe(refs)

    def sample(self, ref: str, *, limits: QueryLimits) -> QueryResult:
        """A table's rows are read as they are stored, which costs nothing; a query is billed for all of it, LIMIT or not."""
        key, table = self._catalog.find(ref)
        named = (table.schema, table.name)
        if named not in self._metadata.stored:
            statement = sample_statement(key, limits.rows, dialect=self.dialect)
            result = self.execute(statement, limits=metered(limits, self._meter))
            if self._meter is not None:
                self._meter.bill(result.bytes_scanned)
            return result
        started = time.monotonic()
        with self._jobs.asking():
            rows = self._jobs.client.list_rows(
                self._metadata.reference(named),
                max_results=limits.rows,
                page_size=PAGE_ROWS,
                retry=ONCE,
                timeout=min(limits.timeout_s, CALL_TIMEOUT_S),
            )
            return _result(rows, limits, started=started)

    def execute(self, sql: str, *, limits: QueryLimits) -> QueryResult:
        started = time.monotonic()
        statement = limited(sql, dialect=self.dialect, rows=limits.rows + 1)
        allowed = self._most if limits.scan_bytes is None else min(self._most, limits.scan_bytes)
        with self._jobs.query(
            statement, allowed_bytes=allowed, timeout_s=limits.timeout_s, rows=limits.rows + 1
        ) as (job, rows):
            return _result(rows, limits, started=started, billed=job.total_bytes_billed or 0)

    def close(self) -> None:
        self._jobs.close()


def _result(rows: Any, limits: QueryLimits, *, started: float, billed: int = 0) -> QueryResult:
    converting = readers(rows.schema)
    cells = (read_row(row.values(), converting) for row in rows)
    kept = fetch(lambda count: list(islice(cells, count)), limits)
    return kept.result(
        [field.name for field in rows.schema],
        [label_of(field) for field in rows.schema],
        started=started,
        bytes_scanned=billed,
    )


def _bytes_setting(config: Mapping[str, Any]) -> int:
    value = config.get("maximum_bytes_billed", MAXIMUM_BYTES_BILLED)
    if not str(value).isdigit() or int(value) < LEAST_BILLED:
        raise ConfigError(
            f"config.maximum_bytes_billed is {str(value)[:40]!r}, must be whole bytes and {LEAST_BILLED} at least"
        )
    return int(value)
