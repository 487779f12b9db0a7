"""The one place where a pymongo exception becomes an error of this project.

Every module of the store does its I/O inside `translated()`. What the server refuses for the sake of a
duplicate key passes as `DuplicateKey`, which only `fence` and the named transitions catch. No message carries
an address's password.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bson.errors import BSONError
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ClientBulkWriteException,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    DuplicateKeyError,
    ExecutionTimeout,
    InvalidName,
    InvalidURI,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)

from assay_core.errors import AssayError, ConfigError, TransientError

DUPLICATE = 11000
BAD_ADDRESS = "MONGODB_URI is not a valid MongoDB address (mongodb://host:port or mongodb+srv://…)"
_DENIED = {13, 18, 8000, 33, 335}
_DISK = {14031}
_INSIDE = {1, 8}
_PASSING = {
    6, 7, 24, 43, 46, 50, 64, 75, 89, 91, 100, 112, 133, 134, 189, 237, 262, 290, 317, 358, 9001,
    10058, 10107, 11600, 11602, 13435, 13436,
}  # fmt: skip
"""Server codes that time heals: a step-down, a shut-down, a timeout, a lost cursor, a write conflict."""


class DuplicateKey(AssayError):
    """A unique key is taken. Internal to the store: the caller decides what that means."""


@contextmanager
def translated() -> Iterator[None]:
    """Run MongoDB calls; whatever pymongo raises leaves as one of our errors."""
    try:
        yield
    except PyMongoError as error:
        hide_cause = isinstance(error, (InvalidURI, ConfigurationError))
        raise _meaning(error) from (None if hide_cause else error)
    except BSONError as error:
        raise ConfigError(f"a document cannot be stored: {_short(error)}") from error


@contextmanager
def translated_address() -> Iterator[None]:
    """As `translated`, while an address is parsed: there the driver also raises plain `ValueError`."""
    try:
        with translated():
            yield
    except (ValueError, TypeError):
        raise ConfigError(BAD_ADDRESS) from None


def _meaning(error: PyMongoError) -> AssayError:
    if isinstance(error, (BulkWriteError, ClientBulkWriteException)):
        return _bulk_meaning(error)
    if isinstance(error, DuplicateKeyError):
        return DuplicateKey("a unique key is taken")
    if isinstance(error, DocumentTooLarge):
        return ConfigError("a document is larger than MongoDB holds (16 MB)")
    if isinstance(error, (InvalidURI, ConfigurationError)):
        # The text may quote the address, and with it the password.
        return ConfigError(
            "MONGODB_URI is not a valid MongoDB address (mongodb://host:port or mongodb+srv://…)"
        )
    if isinstance(error, InvalidName):
        return ConfigError(f"MONGODB_DB is not a valid database name: {_short(error)}")
    if isinstance(error, (ExecutionTimeout, WTimeoutError)):
        return TransientError("MongoDB did not answer in time", dependency="mongodb")
    if isinstance(error, (AutoReconnect, ConnectionFailure)):
        return TransientError(f"MongoDB is not reachable: {_short(error)}", dependency="mongodb")
    if isinstance(error, OperationFailure):
        return _refusal(error.code, _short(error))
    return TransientError(f"MongoDB failed: {_short(error)}", dependency="mongodb")


def _bulk_meaning(error: BulkWriteError | ClientBulkWriteException) -> AssayError:
    rows: list[Any]
    concerns: list[Any]
    if isinstance(error, ClientBulkWriteException):
        if isinstance(error.error, PyMongoError):
            return _meaning(error.error)
        rows, concerns = list(error.write_errors or ()), list(error.write_concern_errors or ())
    else:
        details = error.details or {}
        rows, concerns = details.get("writeErrors", []), details.get("writeConcernErrors", [])
    if rows and all(row.get("code") == DUPLICATE for row in rows):
        return DuplicateKey("a unique key is taken")
    first: Any = next((row for row in [*rows, *concerns] if row.get("code") != DUPLICATE), {})
    return _refusal(first.get("code"), str(first.get("errmsg", "a write failed"))[:200])


def _refusal(code: int | None, text: str) -> AssayError:
    if code == DUPLICATE:
        return DuplicateKey("a unique key is taken")
    if code in _DENIED:
        return ConfigError(
            "MongoDB refused the credentials of MONGODB_URI, or they lack a right that is needed"
        )
    if code in _DISK:
        return ConfigError("the disk of MongoDB is full")
    if code in _INSIDE:
        return TransientError("MongoDB failed inside; is its disk full?", dependency="mongodb")
    if code in _PASSING:
        return TransientError(f"MongoDB is not ready: {text}", dependency="mongodb")
    return ConfigError(f"MongoDB refused a command (code {code}): {text}")


def _short(error: Exception) -> str:
    """The first line, without the topology dump that pymongo appends."""
    return (
        str(error).split(", full error:")[0].split(", Timeout:")[0].splitlines()[0][:200]
        if str(error)
        else ""
    )
