"""What psycopg raises, in our errors: by SQLSTATE, told apart by who acts next. For PostgreSQL and Redshift.

Invariant: no message carries a password; the server's echo of the statement is left out.
"""

from __future__ import annotations

import psycopg

from assay_agent.adapters.statements import tidy
from assay_core.errors import AssayError, ConfigError, QueryError, TransientError


def translated(error: psycopg.Error, *, text: str, shown: str) -> AssayError:
    """The error of ours. `text` is what the server says, `shown` is where and as whom it was asked."""
    state = error.sqlstate or ""
    if state == "57014":
        return QueryError(
            "the query was stopped by its timeout; read fewer rows or join less", kind="timeout"
        )
    if state in ("25006", "42501"):
        return QueryError(text, kind="permission" if state == "42501" else "guard")
    if state[:2] == "28" or state == "3D000" or (not state and _is_refused(text)):
        return ConfigError(f"{shown}: {one_line(text)}")
    if state[:2] in ("08", "57", "58") or state in ("53300", "40001", "40P01"):
        return TransientError(f"{shown}: {one_line(text)}", dependency="warehouse")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) and not state:
        return TransientError(f"{shown} is not reachable: {one_line(text)}", dependency="warehouse")
    return QueryError(text, kind="execution")


def message_of(error: psycopg.Error) -> str:
    """The server's words with its hint, without its echo of the statement."""
    diagnosis = error.diag
    if not diagnosis.message_primary:
        return tidy(str(error))
    lines = [diagnosis.message_primary]
    if diagnosis.message_hint:
        lines.append(f"Hint: {diagnosis.message_hint}")
    return tidy("\n".join(lines))


def one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _is_refused(text: str) -> bool:
    """Failures while connecting carry no state; these words mean that a setting is wrong, not that time will help."""
    lowered = text.lower()
    return any(
        words in lowered
        for words in (
            "password authentication failed",
            "no password supplied",
            "does not exist",
            "no pg_hba.conf entry",
            "could not translate host name",
            "failed to resolve host",
            "name or service not known",
            "invalid connection option",
            "invalid sslmode",
            "does not support ssl",
        )
    )
