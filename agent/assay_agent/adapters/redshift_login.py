"""As whom Redshift is connected to: a user's password, or one for an hour that AWS gives to an IAM identity.

Called by `redshift`. Invariant: neither password nor key of AWS stands in an error, a log or a `repr`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from assay_agent.adapters.postgres_failures import one_line
from assay_agent.ports import WarehouseSettings
from assay_core import clock
from assay_core.errors import AssayError, ConfigError, TransientError

CALL_TIMEOUT_S = 10
PASSWORD_S = 3600
"""Seconds a password of AWS is asked for; it gives no more. A session outlives it."""
_SPARE = timedelta(minutes=1)
_HOST = re.compile(r"^(?P<name>[^.]+)\.[^.]+\.(?P<region>[a-z0-9-]+)\.redshift(?P<serverless>-serverless)?\.")
_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_BUSY = frozenset({"Throttling", "ThrottlingException", "InternalFailure", "ServiceUnavailable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user and a password; `expires` is None for one that stays."""

    user: str
    password: str = field(repr=False)
    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Of which cluster or workgroup a password is asked, in which region, as which user of which database."""

    region: str
    database: str
    cluster: str = ""
    workgroup: str = ""
    user: str = ""


def is_iam(config: Mapping[str, Any]) -> bool:
    """Whether `config.iam` asks for a password of AWS; raises ConfigError for what is neither true nor false."""
    value = config.get("iam", False)
    if str(value).lower() not in ("true", "false"):
        raise ConfigError(f"config.iam is {str(value)[:40]!r}, must be true or false")
    return str(value).lower() == "true"


def place_of(settings: WarehouseSettings, target: Mapping[str, Any]) -> Place:
    """From `config`, and from the host for what is not there. Raises ConfigError naming what is missing."""
    config = settings.config
    host = _HOST.match(str(target.get("host", "")))
    name, region, serverless = host.group("name", "region", "serverless") if host else ("", "", None)
    workgroup = str(config.get("workgroup") or "")
    cluster = str(config.get("cluster_identifier") or "")
    if workgroup and cluster:
        raise ConfigError(
            f"config.cluster_identifier is {cluster!r} and config.workgroup is {workgroup!r}: set one of them"
        )
    if not workgroup and not cluster:
        workgroup, cluster = (name, "") if serverless else ("", name)
    place = Place(
        region=str(config.get("region") or region),
        database=str(target["dbname"]),
        cluster=cluster,
        workgroup=workgroup,
        user=str(target.get("user", "")),
    )
    missing = [
        setting
        for setting, value in (
            ("cluster_identifier (or config.workgroup)", cluster or workgroup),
            ("region", place.region),
            ("user", place.user or workgroup),
        )
        if not value
    ]
    if missing:
        raise ConfigError(f"config.iam is true, which needs config.{missing[0]}")
    return place


class Logins:
    """The login for the next connection, asked anew before it expires. Safe for several threads."""

    def __init__(self, ask: Callable[[], Login]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._last: Login | None = None

    def next(self) -> Login:
        with self._lock:
            last = self._last
            if last is None or (last.expires is not None and last.expires - _SPARE <= clock.now()):
                last = self._last = self._ask()
            return last


def logins_of(settings: WarehouseSettings, target: Mapping[str, Any]) -> Logins:
    """Raises ConfigError where a password, or what AWS must be told, is missing."""
    if not is_iam(settings.config):
        login = Login(user=str(target.get("user", "")), password=settings.secret or "")
        if not login.user:
            raise ConfigError(
                f"datasource {settings.datasource_id}: config.user is not set; Redshift needs one"
            )
        if not login.password:
            raise ConfigError(
                f"datasource {settings.datasource_id}: there is no password for {login.user}; give the secret "
                "warehouse-credentials, or set config.iam: true"
            )
        return Logins(lambda: login)
    place, keys = place_of(settings, target), _keys(settings.secret)
    client = _client(place, keys=keys, endpoint=settings.config.get("api_endpoint"))
    return Logins(lambda: _asked(client, place))


def _keys(secret: str | None) -> dict[str, str]:
    """Keys of AWS for the client; none, where there is no secret: it then finds its own identity."""
    if not secret:
        return {}
    try:
        found: Any = json.loads(secret)
    except ValueError:
        found = None
    keys = (
        {key: found[key] for key in _KEYS if isinstance(found.get(key), str)}
        if isinstance(found, dict)
        else {}
    )
    if not all(key in keys for key in _KEYS[:2]):
        raise ConfigError(
            "config.iam is true and the secret warehouse-credentials is no key of AWS: it must be JSON with "
            f"{', '.join(_KEYS[:2])} and optionally {_KEYS[2]}, or not be set"
        )
    return keys


def _client(place: Place, *, keys: Mapping[str, str], endpoint: Any) -> Any:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise ConfigError(
            f"config.iam is true, which needs a package that is not installed: {error.name}; install the extra "
            "redshift-iam, or log in with a password"
        ) from error
    try:
        return boto3.session.Session(**keys).client(
            "redshift-serverless" if place.workgroup else "redshift",
            region_name=place.region,
            endpoint_url=str(endpoint) if endpoint else None,
            config=Config(
                connect_timeout=CALL_TIMEOUT_S, read_timeout=CALL_TIMEOUT_S, retries={"total_max_attempts": 3}
            ),
        )
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(f"AWS in region {place.region} cannot be asked: {one_line(str(error))}") from error


def _asked(client: Any, place: Place) -> Login:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        if place.workgroup:
            answer = client.get_credentials(
                workgroupName=place.workgroup, dbName=place.database, durationSeconds=PASSWORD_S
            )
            return Login(
                user=answer["dbUser"], password=answer["dbPassword"], expires=answer.get("expiration")
            )
        answer = client.get_cluster_credentials(
            ClusterIdentifier=place.cluster,
            DbUser=place.user,
            DbName=place.database,
            DurationSeconds=PASSWORD_S,
            AutoCreate=False,
        )
        return Login(user=answer["DbUser"], password=answer["DbPassword"], expires=answer.get("Expiration"))
    except (BotoCoreError, ClientError) as error:
        raise _refused(error, place) from error


def _refused(error: Exception, place: Place) -> AssayError:
    from botocore.exceptions import ClientError, HTTPClientError
    from botocore.exceptions import ConnectionError as NotReached

    whom = (
        f"workgroup {place.workgroup}" if place.workgroup else f"user {place.user} of cluster {place.cluster}"
    )
    text = f"AWS gives no password for {whom} in {place.region}: {one_line(str(error))}"
    if isinstance(error, ClientError):
        answer = error.response
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        busy = answer.get("Error", {}).get("Code") in _BUSY or status >= 500
    else:
        busy = isinstance(error, (NotReached, HTTPClientError))
    return TransientError(text, dependency="warehouse") if busy else ConfigError(text)
