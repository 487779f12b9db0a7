"""Secrets in Google's Secret Manager, read over its REST API; implements the `SecretProvider` port.

The newest version of `NAMESPACE__PROJECT__KEY` is the secret. Who asks is whom the machine is signed in as (application default
credentials). What each status means: https://cloud.google.com/apis/design/errors. Nothing is written there.
"""

from __future__ import annotations

import base64
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

from assay_agent.adapters.cloud_secrets import Patience, in_one_line, patiently, seconds_of, text_of
from assay_agent.adapters.secret_names import checked
from assay_agent.ports import SecretSettings
from assay_core.errors import AssayError, ConfigError, TransientError
from assay_core.log import hide

ENDPOINT = "https://secretmanager.googleapis.com"
SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_PART = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
"""Google takes letters, digits, `-` and `_`; with single `_` inside, `__` is where a part ends."""
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


class GcpSecrets:
    """Secrets of one namespace in one Google project. Safe to call from several threads."""

    def __init__(
        self,
        *,
        namespace: str,
        google_project: str = "",
        endpoint: str = "",
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._namespace = namespace
        self._endpoint = _address(endpoint or ENDPOINT)
        self._patience = patience or Patience()
        self._sleep, self._spread = sleep, spread
        self._lock = threading.Lock()
        self._credentials, found = _signed_in()
        self._google_project = google_project or found or ""
        if not self._google_project:
            raise ConfigError("SECRET_GCP_PROJECT_ID is not set, and the credential names no Google project")

    def get(self, *, project_id: str, key: str) -> str | None:
        """The secret, made known to the log as one to hide; None when there is none."""
        name = name_of(self._namespace, project_id, checked(key))
        place = f"/v1/projects/{quote(self._google_project, safe='')}/secrets/{name}/versions/latest:access"
        headers = self._headers(self._endpoint + place)
        value = patiently(
            lambda: self._asked(self._endpoint + place, headers, name),
            patience=self._patience,
            sleep=self._sleep,
            spread=self._spread,
        )
        hide(value)
        return value

    def _headers(self, address: str) -> dict[str, str]:
        """A token for the call. Google's client tries again by itself where it gets none."""
        import requests
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        headers: dict[str, str] = {}
        with self._lock, requests.Session() as session:
            timely = partial(Request(session), timeout=self._patience.read_s)
            try:
                self._credentials.before_request(timely, "GET", address, headers)
            except GoogleAuthError as error:
                raise self._not_signed_in(error) from error
        return headers

    def _asked(self, address: str, headers: Mapping[str, str], name: str) -> str | None:
        import requests

        timeout = (self._patience.connect_s, self._patience.read_s)
        try:
            answer = requests.get(address, headers=headers, timeout=timeout, allow_redirects=False)
        except requests.RequestException as error:
            raise TransientError(
                f"Google's Secret Manager is not reachable: {type(error).__name__}", dependency="secrets"
            ) from error
        try:
            body = answer.json()
        except requests.JSONDecodeError:
            body = None
        if answer.status_code == 200:
            return _value(body, name)
        fault = body.get("error") if isinstance(body, dict) else None
        said = fault if isinstance(fault, dict) else {}
        if answer.status_code == 404 and said.get("status") == "NOT_FOUND":
            return None
        where = f"the secret {name} of the Google project {self._google_project}"
        raise failure(
            answer.status_code,
            said,
            where=where,
            user=self._user,
            after_s=seconds_of(answer.headers.get("Retry-After")),
        )

    def _not_signed_in(self, error: Any) -> AssayError:
        from google.auth.exceptions import TransportError

        why = type(error).__name__
        if (
            error.retryable
            or isinstance(error, TransportError)
            or isinstance(error.__cause__, TransportError)
        ):
            return TransientError(f"Google's sign-in is not reachable: {why}", dependency="secrets")
        return ConfigError(
            f"Google does not sign {self._user} in: {in_one_line(next(iter(error.args), why))}"
        )

    @property
    def _user(self) -> str:
        """The account's address where there is one; that of a machine is known once it has signed in."""
        return str(getattr(self._credentials, "service_account_email", None) or "application-default")


def name_of(namespace: str, project_id: str, key: str) -> str:
    """`NAMESPACE__PROJECT__KEY`, which no other three parts give; raises ConfigError for what Google takes in no name."""
    for said, part in (("SECRET_NAMESPACE", namespace), ("the project's id", project_id)):
        if not _PART.fullmatch(part):
            raise ConfigError(
                f"{said} {part!r} cannot be part of a secret's name at Google: letters, digits, - and single _ can"
            )
    return f"{namespace}__{project_id}__{key}"


def failure(
    status: int, said: Mapping[str, Any], *, where: str, user: str, after_s: float | None = None
) -> AssayError:
    """What an answer other than a value means, by who acts next. `said` is the `error` of its body. Pure."""
    why = in_one_line(said.get("message") or f"status {status}")
    if status in (408, 429) or status >= 500:
        return TransientError(
            f"Google's Secret Manager is busy: {why}", dependency="secrets", retry_after_s=after_s
        )
    if status == 401:
        return ConfigError(f"Google does not take the credential of {user}: {why}")
    if status == 403:
        return ConfigError(
            f"{user} may not read {where}: {why}; grant it roles/secretmanager.secretAccessor there"
        )
    if said.get("status") == "FAILED_PRECONDITION":
        return ConfigError(f"{where} cannot be read: {why}; is its newest version enabled?")
    return ConfigError(
        f"{where} cannot be read: {why}; are SECRET_GCP_PROJECT_ID and SECRET_GCP_ENDPOINT right?"
    )


def _value(body: Any, name: str) -> str | None:
    try:
        raw = base64.b64decode(body["payload"].get("data", ""), validate=True)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise TransientError(
            f"Google's Secret Manager gave no readable answer for the secret {name}", dependency="secrets"
        ) from None
    return text_of(raw, name=name)


def _address(endpoint: str) -> str:
    """Without an end slash; plain HTTP only on this machine, since the answer is the secret."""
    parts = urlsplit(endpoint)
    private = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _HERE)
    if not parts.hostname or not private:
        raise ConfigError("SECRET_GCP_ENDPOINT must be an address that begins with https://")
    return endpoint.rstrip("/")


def _signed_in() -> tuple[Any, str | None]:
    """The machine's credential, and the Google project that it names."""
    try:
        import google.auth
        import google.auth.transport.requests
        from google.auth.exceptions import GoogleAuthError
    except ImportError as error:
        raise ConfigError(
            "SECRET_PROVIDER gcp needs the packages google-auth and requests: install assay[gcp-secrets]"
        ) from error
    try:
        return google.auth.default(scopes=SCOPES)
    except GoogleAuthError as error:  # its text may hold a part of a key
        raise ConfigError(
            "SECRET_PROVIDER gcp finds no Google credential that it can use: set GOOGLE_APPLICATION_CREDENTIALS, sign in by "
            "`gcloud auth application-default login`, or run as a service account"
        ) from error


def open_provider(settings: SecretSettings) -> GcpSecrets:
    """Entry point."""
    return GcpSecrets(
        namespace=settings.namespace,
        google_project=settings.config.get("gcp_project_id", ""),
        endpoint=settings.config.get("gcp_endpoint", ""),
    )
