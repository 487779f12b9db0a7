"""The store: one MongoDB client, one database, and the named parts that read and write it.

Opened once per program by its wiring. Reads and writes are acknowledged by a majority and journalled; times
are UTC.
"""

from __future__ import annotations

import warnings
from datetime import UTC
from typing import Any, Self

from pymongo import MongoClient
from pymongo.database import Database

from assay_core.errors import ConfigError
from assay_core.store import indexes
from assay_core.store.checkpoints import Checkpoints
from assay_core.store.discoveries import Discoveries
from assay_core.store.feed import Feed
from assay_core.store.memory import Memory
from assay_core.store.packs import Packs
from assay_core.store.projects import FeedbackRows, Projects
from assay_core.store.runs import Outcomes, Runs
from assay_core.store.schema import SchemaCache
from assay_core.store.secrets import Secrets
from assay_core.store.translate import translated, translated_address

_SOCKET_S = 30.0
"""Seconds one command may take on the wire: a hung connection must end before a pod is called dead."""
_WIRE_MONGODB_8 = 25
"""From this wire version on one command may write to several collections."""


class Store:
    """All collections of Assay. Safe to share between threads; not across a fork."""

    def __init__(self, client: MongoClient[dict[str, Any]], database: str, *, wire_version: int) -> None:
        self.client = client
        self.database: Database[dict[str, Any]] = client[database]
        self.writes_across_collections = wire_version >= _WIRE_MONGODB_8
        self._lost: str | None = None
        self.runs = Runs(self.database)
        self.outcomes = Outcomes(self.database)
        self.checkpoints = Checkpoints(self.database)
        self.feed = Feed(self.database)
        self.discoveries = Discoveries(self.database)
        self.projects = Projects(self.database)
        self.feedback = FeedbackRows(self.database)
        self.memory = Memory(self.database)
        self.schema = SchemaCache(self.database)
        self.secrets = Secrets(self.database)
        self.packs = Packs(self.database)

    @classmethod
    def connect(cls, uri: str, database: str, *, timeout_s: float = 5) -> Self:
        """Open and prove the connection within `timeout_s`: `TransientError` if it is not there,
        `ConfigError` if the address or the credentials are wrong. The address is never shown.
        """
        client = _client(uri, timeout_s=timeout_s)
        try:
            with translated():
                hello = client.admin.command("hello")
                client.admin.command("ping")
                return cls(client, database, wire_version=int(hello.get("maxWireVersion", 0)))
        except BaseException:
            client.close()
            raise

    @classmethod
    def later(cls, uri: str, database: str, *, timeout_s: float = 5) -> Self:
        """As `connect`, for a program that works on while the server is away: nothing is asked of it yet."""
        return cls(_client(uri, timeout_s=timeout_s), database, wire_version=0)

    def ping(self) -> None:
        """`TransientError` when the server does not answer."""
        with translated():
            self.client.admin.command("ping")

    def ensure_indexes(self, *, checkpoint_retention_s: float, rebuild: bool = False) -> None:
        """Create every index; `rebuild` replaces one whose options changed (a new retention), else it stays."""
        indexes.ensure(self.database, checkpoint_retention_s=checkpoint_retention_s, rebuild=rebuild)

    def give_up(self, why: str) -> None:
        """The server will not come back, as whoever owns it knows: from now on every call fails at once, and none waits."""
        self._lost = why
        self.client.close()

    def lost(self) -> str | None:
        """Why the server will not come back; None while it answers, or may answer again."""
        return self._lost

    def close(self) -> None:
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _client(uri: str, *, timeout_s: float) -> MongoClient[dict[str, Any]]:
    """A client that has not spoken yet; a `ConfigError` when the address cannot be read."""
    milliseconds = int(timeout_s * 1000)
    # An option that is not valid would be left out with no more than a warning.
    with translated_address(), warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always", UserWarning)
        client: MongoClient[dict[str, Any]] = MongoClient(
            uri,
            appname="assay",
            tz_aware=True,
            tzinfo=UTC,
            w="majority",
            journal=True,
            retryWrites=True,
            uuidRepresentation="standard",
            serverSelectionTimeoutMS=milliseconds,
            connectTimeoutMS=milliseconds,
            socketTimeoutMS=int(max(_SOCKET_S, timeout_s) * 1000),
        )
    if complaints:
        client.close()
        raise ConfigError("MONGODB_URI has an option that is unknown or not valid")
    return client
