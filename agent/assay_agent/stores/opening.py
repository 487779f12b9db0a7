"""Opens the stores a program works on: those of a cluster by their addresses, or embedded ones in a folder.

Called by the command line (embedded or not) and by the agent in a pod. Embedded: a MongoDB-protocol server as
a child process behind `wrapper`, and Qdrant's local mode, both under the run home (`.assay`). One
process owns a home and may write; `stores.json` says where others may read meanwhile. Owned stores end with
their owner, however it dies, and keep every write that was acknowledged.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import NoReturn, Self
from urllib.parse import urlsplit

from assay_agent.ports import VectorIndex
from assay_agent.stores.home import (
    HomeLock,
    HomeTaken,
    RunningStores,
    announce,
    await_announcement,
    prepare,
    running_stores,
)
from assay_agent.stores.server import EmbeddedServer
from assay_core.errors import ConfigError, TransientError
from assay_core.settings import StoreSettings
from assay_core.store.client import Store
from assay_core.vectors import names

_VECTORS = EntryPoint("qdrant", "assay_agent.adapters.qdrant:open_index", "assay.vector_indexes")
"""Found by name, like every adapter."""

OpenVectors = Callable[..., VectorIndex]


class OpenStores:
    """Stores that answer. `described` names them in one line, without a secret; `owned` says whether to write."""

    def __init__(
        self,
        *,
        store: Store,
        open_vectors: Callable[[], VectorIndex],
        described: str,
        owned: bool,
        closing: contextlib.ExitStack,
    ) -> None:
        self.store = store
        self.described = described
        self.owned = owned
        self._open_vectors = open_vectors
        self._vectors: VectorIndex | None = None
        self._closing = closing
        self._lock = threading.Lock()

    @property
    def vectors(self) -> VectorIndex:
        """The vector index, opened at its first use: whoever only reads documents never pays for it."""
        with self._lock:
            if self._vectors is None:
                self._vectors = self._open_vectors()
            return self._vectors

    def close(self) -> None:
        """Close what was opened and end what was started; asked twice, does nothing more."""
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Stores:
    """Stores that are starting: `start()` returns at once, `ready()` waits. As a context manager, both and
    the end.
    """

    def __init__(
        self,
        *,
        home: Path,
        settings: StoreSettings,
        embedder_dims: int | None = None,
        open_vectors: OpenVectors | None = None,
    ) -> None:
        self._home = home
        self._settings = settings
        self._dims = embedder_dims
        self._open_vectors = open_vectors
        self._closing = contextlib.ExitStack()
        self._server: EmbeddedServer | None = None
        self._index: VectorIndex | None = None
        self._opened: OpenStores | None = None

    def start(self) -> Self:
        """Take the home and start the server, if anything is embedded. Errors of the home are raised here."""
        settings = self._settings
        if settings.mongodb_uri and settings.qdrant_url:
            return self
        with _unless_it_fails(self._closing):
            prepare(self._home)
            self._closing.enter_context(HomeLock(self._home))
            if not settings.mongodb_uri:
                self._server = EmbeddedServer(self._home)
                self._closing.callback(self._server.stop)
                self._server.start()
        return self

    def ready(self, *, with_vectors: bool = True) -> OpenStores:
        """Wait until the stores answer; the vectors too, unless they are left to their first use."""
        with _unless_it_fails(self._closing):
            if with_vectors:
                self._vectors()
            if self._opened is None:
                self._opened = self._open()
            if with_vectors:
                _ = self._opened.vectors
        return self._opened

    def close(self) -> None:
        self._closing.close()

    def __enter__(self) -> OpenStores:
        return self.start().ready()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _vectors(self) -> VectorIndex:
        """Importing the client takes about as long as the server takes to start; both happen at once."""
        if self._index is None:
            settings = self._settings
            open_vectors = self._open_vectors or _VECTORS.load()
            index = open_vectors(settings.qdrant_url, self._home / "vectors", api_key=settings.qdrant_api_key)
            self._closing.callback(index.close)
            if self._dims is not None:
                index.ensure_collection(names.findings(self._dims), self._dims)
            self._index = index
        return self._index

    def _open(self) -> OpenStores:
        settings = self._settings
        uri = self._server.url() if self._server else settings.mongodb_uri
        assert uri is not None
        store = Store.connect(uri, settings.mongodb_db)
        self._closing.callback(store.close)
        self._index_documents(store)
        if self._server:
            self._server.when_ended(store.give_up)
            announce(self._home, uri, server_pid=self._server.pid)
            self._closing.callback(lambda: (self._home / "stores.json").unlink(missing_ok=True))
        return OpenStores(
            store=store,
            open_vectors=self._vectors,
            described=_described(self._home, settings),
            owned=True,
            closing=self._closing,
        )

    def _index_documents(self, store: Store) -> None:
        """A cluster's indexes are left alone when they differ; those of a home follow its settings."""
        retention_s = self._settings.discovery_checkpoint_retention
        try:
            store.ensure_indexes(checkpoint_retention_s=retention_s, rebuild=self._server is not None)
        except TransientError as error:
            if self._server is None:
                raise
            raise ConfigError(f"the embedded MongoDB server in {self._home} cannot write: {error}") from error


def open_stores(
    *,
    home: Path,
    settings: StoreSettings,
    embedder_dims: int | None = None,
    open_vectors: OpenVectors | None = None,
) -> OpenStores:
    """Open for writing, waiting until they answer. `home` is the run home (`.assay`); a home that another
    process owns is a `ConfigError` that names its pid. With `embedder_dims` the collection of findings is made.
    """
    stores = Stores(home=home, settings=settings, embedder_dims=embedder_dims, open_vectors=open_vectors)
    return stores.start().ready()


def open_for_reading(
    *,
    home: Path,
    settings: StoreSettings,
    embedder_dims: int | None = None,
    open_vectors: OpenVectors | None = None,
) -> OpenStores:
    """Attach to the stores of the process that owns `home`, or open them when nobody does.

    Attached, `owned` is False, the vectors cannot be used, and the caller writes nothing.
    """
    stores = Stores(home=home, settings=settings, embedder_dims=embedder_dims, open_vectors=open_vectors)
    if settings.mongodb_uri:  # documents need no home, and vectors may never be asked for
        return stores.ready(with_vectors=False)
    for last in (False, True):
        running = running_stores(home)
        if running is not None:
            with contextlib.suppress(TransientError):  # it ended between the look and the call
                return _attached(home, settings, running)
        try:
            return stores.start().ready(with_vectors=False)
        except HomeTaken:
            if last:
                raise
            await_announcement(home)
    raise AssertionError("the loop returns or raises")


def _attached(home: Path, settings: StoreSettings, running: RunningStores) -> OpenStores:
    store = Store.connect(running.url, settings.mongodb_db)
    closing = contextlib.ExitStack()
    closing.callback(store.close)
    return OpenStores(
        store=store,
        open_vectors=lambda: _no_vectors(running.pid),
        described=f"the stores of process {running.pid} in {home}",
        owned=False,
        closing=closing,
    )


def _no_vectors(pid: int) -> NoReturn:
    raise ConfigError(f"the vectors are in use by process {pid}")


def _described(home: Path, settings: StoreSettings) -> str:
    documents = f"MongoDB at {_place(settings.mongodb_uri)}" if settings.mongodb_uri else "embedded MongoDB"
    vectors = f"Qdrant at {_place(settings.qdrant_url)}" if settings.qdrant_url else "embedded vectors"
    where = "" if settings.mongodb_uri and settings.qdrant_url else f" in {home}"
    return f"{documents}, {vectors}{where}"


def _place(url: str) -> str:
    """Hosts of an address, without user and password."""
    netloc = urlsplit(url).netloc or url
    return netloc.rpartition("@")[2]


@contextlib.contextmanager
def _unless_it_fails(closing: contextlib.ExitStack) -> Iterator[None]:
    """Undo what was started so far when the block fails."""
    try:
        yield
    except BaseException:
        closing.close()
        raise
