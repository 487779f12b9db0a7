"""What PostgreSQL and Redshift share over psycopg: connection parameters from settings, timeouts, cancelling, labels.

Called by `postgres` and `redshift`. Invariant: a password stands in the parameters alone, never in what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from assay_agent.adapters.postgres_failures import message_of, translated
from assay_agent.ports import WarehouseSettings
from assay_core.errors import AssayError, ConfigError

CONNECT_TIMEOUT_S = 10
CONNECTIONS = 8
_GRACE_S = 5.0
"""How much longer than the server's own timeout our timer waits, so that the server speaks first."""
_NAMES = {"host": "host", "port": "port", "database": "dbname", "user": "user", "sslmode": "sslmode"}


def parameters_of(settings: WarehouseSettings, *, title: str, example: str) -> dict[str, Any]:
    """Connection parameters as libpq names them. Raises ConfigError; `title` and `example` say of what and how."""
    config = settings.config
    parameters: dict[str, Any] = {}
    if config.get("url"):
        try:
            url = sa.make_url(str(config["url"]))
        except ArgumentError:
            raise ConfigError(f"config.url is not a URL such as {example}") from None
        parameters = {"host": url.host, "port": url.port, "dbname": url.database, "user": url.username}
        parameters |= {key: value for key, value in url.query.items() if isinstance(value, str)}
    parameters |= {name: config[key] for key, name in _NAMES.items() if config.get(key) is not None}
    if settings.secret:
        parameters["password"] = settings.secret
    if not parameters.get("dbname"):
        raise ConfigError(f"a {title} source needs the name of a database")
    return {key: value for key, value in parameters.items() if value is not None}


def shown(parameters: Mapping[str, Any], *, port: int) -> str:
    """Where and as whom, without the password; `port` is the one meant where none is given."""
    address = f"{parameters.get('host', 'localhost')}:{parameters.get('port', port)}"
    return f"{parameters.get('user', '')}@{address}/{parameters['dbname']}"


class Session:
    """The part of a backend that is the same wherever psycopg is spoken."""

    def __init__(self, *, shown: str, schemas: tuple[str, ...]) -> None:
        self._shown = shown
        self.datasets = schemas

    def prepare(self, connection: sa.Connection, *, timeout_s: float) -> None:
        connection.exec_driver_sql(
            "SELECT set_config('statement_timeout', %s, true)", (str(int(timeout_s * 1000)),)
        )

    def cancel(self, connection: sa.Connection) -> None:
        native: Any = connection.connection.dbapi_connection
        if native is not None and not native.closed:
            native.cancel_safe(timeout=_GRACE_S)

    def close(self) -> None:
        """Nothing is open besides the pool."""

    def type_labels(self, description: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
        del rows
        return [str(getattr(entry, "type_display", entry[1])) for entry in description]

    def translate(self, error: BaseException) -> AssayError | None:
        if not isinstance(error, psycopg.Error):
            return None
        return translated(error, text=message_of(error), shown=self._shown)
