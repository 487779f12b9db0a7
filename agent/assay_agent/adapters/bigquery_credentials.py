"""As whom BigQuery is asked, and for which project: a key given as a secret, else what the machine is signed in as.

Called by `bigquery`. Invariant: no part of a key stands in an error but the account's name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import google.auth
from google.auth.credentials import Credentials
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
from google.oauth2 import credentials as user_credentials
from google.oauth2 import service_account

from assay_agent.ports import WarehouseSettings
from assay_core.errors import ConfigError

SCOPES = ("https://www.googleapis.com/auth/bigquery",)
_KINDS = "the JSON key of a service account (type service_account) or of a user (type authorized_user)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A credential and the project that it is used for."""

    credentials: Credentials
    project: str

    @property
    def user(self) -> str:
        """The account's address where there is one; that of a machine is known once it has signed in."""
        return str(getattr(self.credentials, "service_account_email", None) or "application-default")


def identity_of(settings: WarehouseSettings) -> Identity:
    """Raises ConfigError where the key, the sign-in or the project is missing or unusable."""
    if settings.secret:
        credentials, found = _from_key(settings.secret)
    else:
        try:
            credentials, found = google.auth.default(scopes=SCOPES)
        except DefaultCredentialsError as error:
            raise ConfigError(
                f"datasource {settings.datasource_id}: there is no Google credential; give the secret "
                f"warehouse-credentials ({_KINDS}), or set GOOGLE_APPLICATION_CREDENTIALS"
            ) from error
    project = settings.config.get("project_id") or found
    if not project:
        raise ConfigError(f"datasource {settings.datasource_id}: project_id is not set; BigQuery needs one")
    return Identity(credentials=credentials, project=str(project))


def _from_key(secret: str) -> tuple[Credentials, str | None]:
    try:
        info: Any = json.loads(secret)
    except ValueError:
        info = None
    kind = info.get("type") if isinstance(info, dict) else None
    try:
        if kind == "service_account":
            made = service_account.Credentials.from_service_account_info(info, scopes=SCOPES)  # type: ignore[no-untyped-call]  # google-auth is partly untyped
            return made, info.get("project_id")
        if kind == "authorized_user":
            return user_credentials.Credentials.from_authorized_user_info(info, scopes=SCOPES), None  # type: ignore[no-untyped-call]  # google-auth is partly untyped
    except (ValueError, GoogleAuthError):  # its text may hold a part of the key
        raise ConfigError(f"the secret warehouse-credentials is damaged; it must be {_KINDS}") from None
    raise ConfigError(f"the secret warehouse-credentials is not usable; it must be {_KINDS}")
