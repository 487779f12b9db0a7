"""Running a statement at BigQuery: rehearsed first, billed to a limit, labelled, stopped in time. Called by `bigquery`.

Invariants: nothing a model wrote runs that BigQuery itself does not call a SELECT; no exception of the client leaves here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from google.api_core.exceptions import GoogleAPICallError
from google.api_core.retry import Retry
from google.cloud import bigquery
from google.cloud.bigquery.retry import DEFAULT_RETRY

from assay_agent.adapters.bigquery_credentials import Identity
from assay_agent.adapters.bigquery_failures import (
    FOREIGN,
    LEAST_BILLED,
    reason_of,
    too_many_bytes,
    translated,
)
from assay_agent.adapters.statements import Running, too_slow
from assay_agent.ports import Meter
from assay_core.errors import ConfigError, QueryError, TransientError

CALL_TIMEOUT_S = 60.0
"""Seconds one HTTP call may take; a running query is asked after with several."""
CATALOG_TIMEOUT_S = 120.0
CATALOG_BYTES = 1024**3
"""Bytes one catalogue query may be billed; the usual is the least there is."""
CANCEL_TIMEOUT_S = 10.0
GRACE_S = 15.0
"""How much longer than the statement's time we wait for BigQuery to say that it was stopped."""
PAGE_ROWS = 2_000
ONCE = Retry(predicate=lambda _: False)
"""The client's own tries would hide errors for ten minutes; whoever runs a query tries again."""
POLLING = DEFAULT_RETRY.with_timeout(60.0)
"""Asking after a running query, and for metadata, is tried again: giving a query up would bill it twice."""
_NOT_IN_LABELS = re.compile(r"[^a-z0-9_-]")


class Jobs:
    """The jobs of one warehouse. `location` and `dataset` (for unqualified names) are set once they are known."""

    def __init__(
        self,
        client: bigquery.Client,
        *,
        identity: Identity,
        labels: Mapping[str, str],
        meter: Meter | None = None,
    ) -> None:
        self.client = client
        self._meter = meter
        self.location: str | None = None
        self.dataset: bigquery.DatasetReference | None = None
        self._identity = identity
        self._labels = {f"assay_{_label(key)}": _label(value) for key, value in labels.items()}
        self._running = Running()

    def rehearse(self, statement: str) -> int:
        """Bytes that the statement would read, from a dry run. Raises QueryError for one that is no SELECT."""
        config = self._config("query", default_dataset=self.dataset, dry_run=True)
        with self.asking():
            job = self.client.query(
                statement,
                job_config=config,
                location=self.location,
                retry=ONCE,
                job_retry=None,
                timeout=CALL_TIMEOUT_S,
            )
            if job.statement_type != "SELECT":
                kind = job.statement_type or "something else"
                raise QueryError(f"only SELECT runs here, and BigQuery calls this {kind}", kind="guard")
            return int(job.total_bytes_processed or 0)

    @contextmanager
    def query(
        self, statement: str, *, allowed_bytes: int, timeout_s: float, rows: int
    ) -> Iterator[tuple[bigquery.QueryJob, Any]]:
        """The job and at most `rows` of its rows. Raises before anything is billed when it would read too much."""
        needed = self.rehearse(statement)
        if needed and max(needed, LEAST_BILLED) > allowed_bytes:
            raise too_many_bytes(needed, allowed_bytes)
        config = self._config(
            "query", default_dataset=self.dataset, maximum_bytes_billed=max(allowed_bytes, 1)
        )
        with self._ran(statement, config=config, timeout_s=timeout_s, rows=rows) as ran:
            yield ran

    def catalogue(self, sql: str, *parameters: Any) -> list[Sequence[Any]]:
        """All rows of a query of our own on INFORMATION_SCHEMA, which the run pays for like any other."""
        left = self._meter.left() if self._meter is not None else None
        allowed = CATALOG_BYTES if left is None else min(CATALOG_BYTES, left)
        if allowed < LEAST_BILLED:
            raise too_many_bytes(None, allowed)
        config = self._config("catalogue", maximum_bytes_billed=allowed, query_parameters=list(parameters))
        with self._ran(sql, config=config, timeout_s=CATALOG_TIMEOUT_S) as (job, rows):
            found = [row.values() for row in rows]
        if self._meter is not None:
            self._meter.bill(job.total_bytes_billed or 0)
        return found

    @contextmanager
    def asking(self) -> Iterator[None]:
        """What the client raises becomes an error of ours."""
        if self._running.closed:
            raise ConfigError("the warehouse is closed")
        try:
            yield
        except FOREIGN as error:
            if self._running.closed:
                raise TransientError(
                    "the warehouse was closed while it answered", dependency="warehouse"
                ) from error
            raise translated(error, project=self.client.project, user=self._identity.user) from error

    def close(self) -> None:
        """Cancel what runs; a second call does nothing."""
        if not self._running.closed:
            self._running.close()
            self.client.close()  # type: ignore[no-untyped-call]  # the client is partly untyped

    def _config(self, purpose: str, **settings: Any) -> bigquery.QueryJobConfig:
        return bigquery.QueryJobConfig(
            labels={"assay": purpose} | self._labels, use_legacy_sql=False, **settings
        )

    @contextmanager
    def _ran(
        self, sql: str, *, config: bigquery.QueryJobConfig, timeout_s: float, rows: int | None = None
    ) -> Iterator[tuple[bigquery.QueryJob, Any]]:
        """The job and its rows, cancelled after `timeout_s`."""
        started = time.monotonic()
        job_id = f"assay_{uuid4().hex}"
        config.job_timeout_ms = int(timeout_s * 1000)
        with (
            self.asking(),
            self._running.statement(lambda: self._cancel(job_id), timeout_s=timeout_s) as running,
        ):
            try:
                job = self.client.query(
                    sql,
                    job_config=config,
                    job_id=job_id,
                    location=self.location,
                    retry=ONCE,
                    job_retry=None,
                    timeout=CALL_TIMEOUT_S,
                )
                yield (
                    job,
                    job.result(
                        page_size=PAGE_ROWS,
                        max_results=rows,
                        retry=POLLING,
                        timeout=max(timeout_s - (time.monotonic() - started), 0) + GRACE_S,
                        job_retry=None,
                    ),
                )
            except FOREIGN as error:
                if running.timed_out:
                    raise too_slow(timeout_s) from error
                if isinstance(error, GoogleAPICallError) and reason_of(error) == "bytesBilledLimitExceeded":
                    raise too_many_bytes(None, config.maximum_bytes_billed or 0) from error
                raise

    def _cancel(self, job_id: str) -> None:
        with suppress(*FOREIGN):
            self.client.cancel_job(job_id, location=self.location, retry=ONCE, timeout=CANCEL_TIMEOUT_S)


def _label(text: str) -> str:
    """Labels are lower-case letters, digits, `_` and `-`, 63 at most."""
    return _NOT_IN_LABELS.sub("-", text.lower())[:63]
