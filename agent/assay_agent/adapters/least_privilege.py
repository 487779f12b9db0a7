"""From what a source says about a credential to whether a run may use it. Pure; called by `wiring` when a source is opened.

A credential that could write is refused, whatever the session does about it: a session's read-only mode is a promise of
ours, a missing grant is one of the source's. Invariant: what was found is recorded whether or not it was accepted.
"""

from __future__ import annotations

from datetime import datetime

from assay_agent.ports import Grants
from assay_core.errors import ConfigError
from assay_core.model.run import CredentialRecord

SHOWN = 5
"""Reasons named in an error; the record holds more."""
RECORDED = 50
"""Reasons kept in the run document."""
WRITING_ROLES = frozenset(
    {
        "pg_write_all_data",
        "pg_read_server_files",
        "pg_write_server_files",
        "pg_execute_server_program",
        "pg_signal_backend",
        "pg_checkpoint",
        "pg_maintain",
        "pg_create_subscription",
        "pg_database_owner",
        "rds_superuser",
        "cloudsqlsuperuser",
        "azure_pg_admin",
        "sys:superuser",
        "sys:dba",
        "sys:operator",
        "sys:secadmin",
    }
)
"""Roles that let their members change data, reach the server's files or programs, or disturb other sessions."""
WRITING_ATTRIBUTES = frozenset({"superuser", "createdb", "createrole", "replication", "bypassrls"})
"""Attributes of a role that reach beyond reading what it was granted."""
READING = frozenset(
    {
        "select",
        "usage",
        "connect",
        "execute",
        "temporary",
        "temp",
        "references",
        "access catalog",
        "access system table",
        "explain masking",
        "explain rls",
    }
)
"""Privileges that change nothing that others see."""


def reasons(grants: Grants) -> tuple[str, ...]:
    """Why the credential could do more than read: in words, the gravest first. Empty when it could not."""
    found = [
        f"it is {attribute}" for attribute in grants.attributes if attribute.lower() in WRITING_ATTRIBUTES
    ]
    found += [f"it is a member of {role}" for role in grants.roles if role.lower() in WRITING_ROLES]
    for grant in grants.privileges:
        writing = [name for name in grant.names if name.lower() not in READING]
        if writing:
            found.append(f"{', '.join(writing)} on {grant.on}")
    return tuple(dict.fromkeys(found))


def judge(
    grants: Grants | None, *, datasource_id: str, allowed: str | None, checked_at: datetime
) -> CredentialRecord:
    """The record of a credential that may be used; raises ConfigError, one line, for one that may not.

    `allowed` is the datasource's `allow_writable_credential`: it names the user, so that a change of user is noticed.
    `grants` is None for a source that cannot say: that is recorded as not proven.
    """
    if grants is None:
        return CredentialRecord(datasource_id=datasource_id, checked_at=checked_at)
    found = reasons(grants)
    if found and allowed != grants.user:
        raise ConfigError(_refusal(grants.user, found, datasource_id=datasource_id, allowed=allowed))
    return CredentialRecord(
        datasource_id=datasource_id,
        user=grants.user,
        read_only=not found,
        reasons=list(found[:RECORDED]),
        allowed_by_name=bool(found),
        proof=grants.proof,
        checked_at=checked_at,
    )


def _refusal(user: str, found: tuple[str, ...], *, datasource_id: str, allowed: str | None) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    other = f" (it allows {allowed!r}, not this one)" if allowed else ""
    return (
        f"datasource {datasource_id}: the credential {user!r} could write: {'; '.join(found[:SHOWN])}{more}. "
        f"Use one that may only read, or set allow_writable_credential: {user}{other}"
    )
