"""The vector index on Qdrant: a server by its REST URL, or the client's local mode in a folder of one owner.

Implements the `VectorIndex` port; the only importer of the SDK in the agent. A collection that does not exist
holds nothing: searching it finds nothing, dropping it is no error. Server calls are tried three times; local
calls go one at a time, because the local mode is not safe between threads.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from assay_agent.ports import Hit, Point
from assay_core.errors import AssayError, ConfigError, TransientError
from assay_core.log import hide

Answer = TypeVar("Answer")

_TIMEOUT_S = 30
_TRIES = 3
_PAUSE_S = 0.5
_BATCH_BYTES = 4_000_000
"""Servers are often set to refuse requests above 5 MB or so."""
_BATCH_POINTS = 256
_BYTES_PER_NUMBER = 22
"""Characters of one vector component in JSON, at most."""
_INDEXED = ("project_id", "tenant", "discovery_id", "type", "datasource")


class _NoCollection(AssayError):
    """The named collection does not exist; never leaves this module."""


class QdrantIndex:
    """One client. Safe to call from several threads."""

    def __init__(self, client: QdrantClient, *, local: bool) -> None:
        self._client = client
        self._local = local
        self._lock = threading.Lock()

    def ensure_collection(self, name: str, dimensions: int) -> None:
        """Create it; one of another size is a `ConfigError`."""
        found = self._dimensions(name)
        if found is None:
            size = models.VectorParams(size=dimensions, distance=models.Distance.COSINE)
            try:
                self._call(lambda: self._client.create_collection(name, vectors_config=size))
            except ConfigError:
                # Somebody else may have created it meanwhile.
                found = self._dimensions(name)
                if found is None:
                    raise
            else:
                self._index_payload(name)
                return
        if found != dimensions:
            raise ConfigError(
                f"vector collection {name} holds vectors of {found} dimensions, not {dimensions}: "
                "the embedding model changed; index again or drop the collection"
            )

    def collections(self) -> list[str]:
        found = self._call(self._client.get_collections)
        return sorted(item.name for item in found.collections)

    def upsert(self, name: str, points: Sequence[Point]) -> None:
        try:
            for batch in _batches(points):
                self._upsert(name, batch)
        except _NoCollection:
            raise ConfigError(f"vector collection {name} does not exist") from None

    def search(
        self,
        name: str,
        vector: Sequence[float],
        *,
        top_k: int,
        equals: Mapping[str, Any] | None = None,
        excluding: Mapping[str, Sequence[Any]] | None = None,
        min_score: float | None = None,
    ) -> list[Hit]:
        """Best first, equal scores by id."""
        wanted = _filter(equals or {}, excluding or {})
        try:
            found = self._call(
                lambda: self._client.query_points(
                    name,
                    query=[float(number) for number in vector],
                    limit=top_k,
                    query_filter=wanted,
                    score_threshold=min_score,
                    with_payload=True,
                )
            )
        except _NoCollection:
            return []
        hits = [Hit(id=str(p.id), score=float(p.score), payload=p.payload or {}) for p in found.points]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    def count(self, name: str) -> int:
        try:
            return int(self._call(lambda: self._client.count(name, exact=True)).count)
        except _NoCollection:
            return 0

    def delete(self, name: str, ids: Sequence[str]) -> None:
        if not ids:
            return
        selector = models.PointIdsList(points=list(ids))
        try:
            self._call(lambda: self._client.delete(name, points_selector=selector, wait=True))
        except _NoCollection:
            return

    def drop(self, name: str) -> None:
        try:
            self._call(lambda: self._client.delete_collection(name))
        except _NoCollection:
            return

    def close(self) -> None:
        with self._lock:
            self._client.close()

    # ---------------------------------------------------------------------------------------------- inside

    def _dimensions(self, name: str) -> int | None:
        try:
            found = self._call(lambda: self._client.get_collection(name))
        except _NoCollection:
            return None
        vectors = found.config.params.vectors
        if not isinstance(vectors, models.VectorParams):
            raise ConfigError(f"vector collection {name} was not made by Assay: it has named vectors")
        return int(vectors.size)

    def _upsert(self, name: str, batch: list[models.PointStruct]) -> None:
        self._call(lambda: self._client.upsert(name, points=batch, wait=True))

    def _index_payload(self, name: str) -> None:
        """Fields that searches filter by; the local mode needs no index."""
        if not self._local:
            for field in _INDEXED:
                self._index_field(name, field)

    def _index_field(self, name: str, field: str) -> None:
        kind = models.PayloadSchemaType.KEYWORD
        self._call(
            lambda: self._client.create_payload_index(name, field_name=field, field_schema=kind, wait=True)
        )

    def _call(self, do: Callable[[], Answer]) -> Answer:
        if self._local:
            with self._lock:
                return _local_call(do)
        tries = 1
        while True:
            try:
                return _server_call(do)
            except TransientError:
                if tries == _TRIES:
                    raise
                time.sleep(_PAUSE_S * 2**tries)
                tries += 1


def open_index(
    url: str | None = None, path: Path | None = None, *, api_key: str | None = None
) -> QdrantIndex:
    """The server at `url`, proven to answer, or the local mode in the folder `path`."""
    if url:
        hide(api_key)
        with warnings.catch_warnings():
            # Inside a cluster the key travels over plain HTTP; that is the operator's choice.
            warnings.simplefilter("ignore", UserWarning)
            client = QdrantClient(url=url, api_key=api_key, timeout=_TIMEOUT_S, check_compatibility=False)
        index = QdrantIndex(client, local=False)
        index.collections()
        return index
    if path is None:
        raise ConfigError("QDRANT_URL is not set and no folder for vectors was given")
    return QdrantIndex(_open_local(path), local=True)


def _open_local(path: Path) -> QdrantClient:
    try:
        path.mkdir(parents=True, exist_ok=True)
        return QdrantClient(path=str(path), force_disable_check_same_thread=True)
    except RuntimeError:
        raise ConfigError(f"the vectors in {path} are in use by another process") from None
    except OSError as error:
        raise ConfigError(f"the folder {path} cannot be written: {error.strerror or error}") from None
    except (sqlite3.Error, ValueError) as error:
        raise ConfigError(f"the vectors in {path} cannot be read: {str(error)[:200]}") from None


def _local_call(do: Callable[[], Answer]) -> Answer:
    """The local mode has one exception for everything; its text says which."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # advice about size
            return do()
    except ValueError as error:
        text = str(error)
        if text.startswith("Collection ") and text.endswith(" not found"):
            raise _NoCollection(text) from None
        raise ConfigError(f"the vector index refused a request: {text[:200]}") from error
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"the vectors cannot be read or written: {error}") from error


def _server_call(do: Callable[[], Answer]) -> Answer:
    try:
        return do()
    except UnexpectedResponse as error:
        raise _refusal(error) from error
    except (ResponseHandlingException, httpx.TransportError) as error:
        raise TransientError(f"Qdrant is not reachable: {str(error)[:200]}", dependency="vectors") from error
    except ApiException as error:
        raise TransientError(f"Qdrant failed: {str(error)[:200]}", dependency="vectors") from error


def _refusal(error: UnexpectedResponse) -> AssayError:
    status = error.status_code or 0
    text = error.content.decode("utf-8", "replace")[:200]
    if status == 404:
        return _NoCollection(text)
    if status in (401, 403):
        return ConfigError("Qdrant refused QDRANT_API_KEY")
    if status in (408, 429) or status >= 500 or status == 0:
        return TransientError(f"Qdrant answered {status}: {text}", dependency="vectors")
    return ConfigError(f"Qdrant refused a request ({status}): {text}")


def _filter(equals: Mapping[str, Any], excluding: Mapping[str, Sequence[Any]]) -> models.Filter | None:
    must = [
        models.FieldCondition(key=key, match=models.MatchValue(value=value)) for key, value in equals.items()
    ]
    must_not = [
        models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
        for key, values in excluding.items()
        if values
    ]
    if not must and not must_not:
        return None
    return models.Filter(must=list(must) or None, must_not=list(must_not) or None)


def _batches(points: Sequence[Point]) -> Iterator[list[models.PointStruct]]:
    """Points in order, each batch below the request limit; one point larger than it goes alone."""
    batch: list[models.PointStruct] = []
    size = 0
    for point in points:
        payload = dict(point.payload)
        length = len(json.dumps(payload)) + len(point.vector) * _BYTES_PER_NUMBER + 100
        if batch and (size + length > _BATCH_BYTES or len(batch) >= _BATCH_POINTS):
            yield batch
            batch, size = [], 0
        batch.append(
            models.PointStruct(id=point.id, vector=[float(n) for n in point.vector], payload=payload)
        )
        size += length
    if batch:
        yield batch
