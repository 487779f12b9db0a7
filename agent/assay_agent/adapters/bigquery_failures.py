"""What went wrong at BigQuery, in our errors: by status and reason, told apart by who acts next. Called by `bigquery`.

Reasons: https://cloud.google.com/bigquery/docs/error-messages. Invariant: no message carries a credential.
"""

from __future__ import annotations

import re
from concurrent.futures import TimeoutError as PollTimeout

from google.api_core.exceptions import Forbidden, GoogleAPICallError, NotFound, RetryError, Unauthorized
from google.auth.exceptions import GoogleAuthError, TransportError
from requests.exceptions import RequestException

from assay_agent.adapters.statements import tidy
from assay_core.errors import AssayError, BudgetExhausted, ConfigError, QueryError, TransientError

FOREIGN = (
    GoogleAPICallError,
    RetryError,
    GoogleAuthError,
    RequestException,
    PollTimeout,
    ValueError,
    OSError,
)
"""Everything the client raises: of the service, of the credential, of the line, and of a value it cannot read."""
LEAST_BILLED = 10 * 1024 * 1024
"""Bytes that a query which reads anything is billed at least."""
_BUSY = frozenset(
    {"rateLimitExceeded", "quotaExceeded", "jobRateLimitExceeded", "backendError", "internalError"}
)
_TOO_LARGE = frozenset({"resourcesExceeded", "responseTooLarge"})
_STOPPED = frozenset({"stopped", "timeout", "jobTimeout"})
_ACCOUNT = frozenset({"billingNotEnabled", "accessNotConfigured", "authError", "required"})
_PROLOGUE = re.compile(r"^(?:\d{3} )?(?:(?:GET|POST) \S+: )?")
_EPILOGUE = re.compile(r"(?:; reason: \w+, |\n+(?:Location|Job ID): ).*", re.DOTALL)


def translated(error: BaseException, *, project: str, user: str) -> AssayError:
    """The error of ours. `project` and `user` say where and as whom was asked."""
    text = message_of(error)
    line = " ".join(text.split())[:300]
    if isinstance(error, TransportError):
        return TransientError(f"Google's sign-in is not reachable: {line}", dependency="warehouse")
    if isinstance(error, GoogleAuthError):
        return refused(user, line)
    if isinstance(error, (RetryError, PollTimeout, RequestException)):
        return TransientError(f"BigQuery is not reachable: {line}", dependency="warehouse")
    if not isinstance(error, GoogleAPICallError):
        return QueryError(f"a value of the result cannot be read: {line}", kind="execution")
    reason = reason_of(error)
    if reason in _BUSY or (error.code or 0) >= 500 or error.code == 429:
        return TransientError(
            f"BigQuery is busy ({reason or error.code}): {line}",
            dependency="warehouse",
            retry_after_s=_retry_after(error),
        )
    if isinstance(error, Unauthorized):
        return refused(user, line)
    if reason in _ACCOUNT or "bigquery.jobs.create" in text:
        return ConfigError(
            f"{user} may not run queries in project {project}: {line}; grant it roles/bigquery.jobUser there"
        )
    if reason in _STOPPED:
        return QueryError(
            "the query was stopped by its timeout; read fewer rows or join less", kind="timeout"
        )
    if reason in _TOO_LARGE:
        return QueryError(
            f"the query needs more than BigQuery gives it; aggregate earlier ({text})", kind="resources"
        )
    if isinstance(error, Forbidden):
        return QueryError(text, kind="permission")
    if isinstance(error, NotFound):
        return QueryError(text, kind="unknown_table")
    return QueryError(text, kind="execution")


def refused(user: str, why: str) -> ConfigError:
    return ConfigError(
        f"the credential of {user} is refused: {why}; give the secret warehouse-credentials (a service account's JSON key)"
    )


def dataset_error(error: GoogleAPICallError, *, project: str, dataset: str, user: str) -> ConfigError | None:
    """Whether a dataset is not there, or is not shown: BigQuery tells them apart when the dataset itself is asked for."""
    if isinstance(error, NotFound):
        return ConfigError(
            f"dataset {dataset} does not exist in project {project}; datasets and project_id must name one that does"
        )
    if isinstance(error, Forbidden) and reason_of(error) not in _BUSY | _ACCOUNT:
        return ConfigError(
            f"{user} may not read dataset {dataset} of project {project}; grant it roles/bigquery.dataViewer there"
        )
    return None


def too_many_bytes(needed: int | None, allowed: int) -> AssayError:
    """A statement that would read more than it may: cheaper ones may follow, unless too little is left for any."""
    if allowed < LEAST_BILLED:
        return BudgetExhausted(
            f"{allowed:,} bytes scanned are left and a query is billed {LEAST_BILLED:,} at least; "
            "raise --max-bytes-scanned and resume"
        )
    would = "more" if needed is None else f"{needed:,}"
    return QueryError(
        f"the query would read {would} bytes where {allowed:,} are allowed: select fewer columns, filter on the column "
        "that partitions the table (LIMIT does not read less)",
        kind="scan_bytes",
    )


def reason_of(error: GoogleAPICallError) -> str:
    """BigQuery's word for what happened; empty when it gave none."""
    found = [entry.get("reason") for entry in error.errors or () if isinstance(entry, dict)]
    return str(next((reason for reason in found if reason), ""))


def message_of(error: BaseException) -> str:
    """What was said, without the address of the call, the job's number and the doubled reason."""
    text = (
        str(error.message)
        if isinstance(error, GoogleAPICallError)
        else str(error.args[0] if error.args else error)
    )
    return tidy(_EPILOGUE.sub("", _PROLOGUE.sub("", text)).strip()) or type(error).__name__


def _retry_after(error: GoogleAPICallError) -> float | None:
    """Seconds, where the answer says so."""
    headers = getattr(error.response, "headers", None) or {}
    value = str(headers.get("Retry-After", ""))
    return float(value) if value.isdigit() else None
