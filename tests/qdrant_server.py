"""A Qdrant server for tests: the REST calls Assay makes, over the client's local mode behind one lock.

No package ships the real server. This one is held to the contract suite of the vector index, which also runs against
a real server when `QDRANT_URL` names one. It serves the adapter's HTTP path in tests and pods in end-to-end tests:
`python -m tests.qdrant_server FOLDER PORT`.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ValidationError
from qdrant_client import QdrantClient, models

Answer = tuple[int, Any]


class Engine:
    """The calls themselves: a method per route, one at a time."""

    def __init__(self, folder: Path, *, key: str | None, busy_answers: int) -> None:
        self.client = QdrantClient(path=str(folder), force_disable_check_same_thread=True)
        self.key = key
        self.busy = busy_answers
        self.lock = threading.Lock()

    def answer(self, verb: str, path: str, key: str | None, body: dict[str, Any]) -> Answer:
        if self.key is not None and key != self.key:
            return 401, {"error": "Must provide an API key"}
        with self.lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            if self.busy:
                self.busy -= 1
                return 503, {"error": "busy"}
            for route, method in _ROUTES:
                found = re.fullmatch(route, f"{verb} {path}")
                if found:
                    return self._guarded(method, found.groups(), body)
        return 404, {"error": "no such call"}

    def _guarded(self, method: Callable[..., Any], names: tuple[str, ...], body: dict[str, Any]) -> Answer:
        try:
            return 200, method(self, *names, body)
        except ValidationError as error:
            return 422, {"error": str(error)}
        except ValueError as error:
            text = str(error)
            status = 404 if text.endswith("not found") else 409 if "already exists" in text else 400
            return status, {"error": text}

    def collections(self, _: Any) -> Any:
        return _plain(self.client.get_collections())

    def describe(self, name: str, _: Any) -> Any:
        return _plain(self.client.get_collection(name))

    def create(self, name: str, body: dict[str, Any]) -> Any:
        size = models.VectorParams.model_validate(body["vectors"])
        return self.client.create_collection(name, vectors_config=size)

    def drop(self, name: str, _: Any) -> Any:
        return self.client.delete_collection(name)

    def index_field(self, name: str, _: Any) -> Any:
        self.client.get_collection(name)
        return {"operation_id": 0, "status": "completed"}

    def upsert(self, name: str, body: dict[str, Any]) -> Any:
        batch = [models.PointStruct.model_validate(point) for point in body["points"]]
        return _plain(self.client.upsert(name, points=batch))

    def query(self, name: str, body: dict[str, Any]) -> Any:
        wanted, asked = models.QueryRequest.model_validate(body), body["query"]
        found = self.client.query_points(
            name,
            query=asked["nearest"] if isinstance(asked, dict) else asked,
            limit=wanted.limit or 10,
            query_filter=wanted.filter,
            score_threshold=wanted.score_threshold,
            with_payload=True,
        )
        return _plain(found)

    def count(self, name: str, _: Any) -> Any:
        return _plain(self.client.count(name))

    def delete(self, name: str, body: dict[str, Any]) -> Any:
        return _plain(self.client.delete(name, points_selector=models.PointIdsList.model_validate(body)))


_ROUTES: list[tuple[str, Callable[..., Any]]] = [
    (r"GET /collections", Engine.collections),
    (r"GET /collections/([^/]+)", Engine.describe),
    (r"PUT /collections/([^/]+)", Engine.create),
    (r"DELETE /collections/([^/]+)", Engine.drop),
    (r"PUT /collections/([^/]+)/index", Engine.index_field),
    (r"PUT /collections/([^/]+)/points", Engine.upsert),
    (r"POST /collections/([^/]+)/points/query", Engine.query),
    (r"POST /collections/([^/]+)/points/count", Engine.count),
    (r"POST /collections/([^/]+)/points/delete", Engine.delete),
]


def _plain(model: BaseModel) -> Any:
    return json.loads(model.model_dump_json())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: ClassVar[Engine]

    def handle_call(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        path = self.path.partition("?")[0]
        if path in ("/healthz", "/readyz", "/livez"):
            status, result = 200, "ok"
        else:
            status, result = self.engine.answer(self.command, path, self.headers.get("api-key"), body)
        told = {"time": 0.0, "status": "ok", "result": result} if status == 200 else {"status": result}
        payload = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_PUT = do_POST = do_DELETE = handle_call

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def serve(
    folder: Path, *, host: str = "127.0.0.1", port: int = 0, key: str | None = None, busy_answers: int = 0
) -> Iterator[str]:
    """A running server; yields its URL."""
    engine = Engine(folder, key=key, busy_answers=busy_answers)
    handler = type("BoundHandler", (Handler,), {"engine": engine})
    with ThreadingHTTPServer((host, port), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield f"http://{host}:{server.server_address[1]}"
        finally:
            server.shutdown()
            engine.client.close()


if __name__ == "__main__":
    with serve(Path(sys.argv[1]), host="0.0.0.0", port=int(sys.argv[2])):
        threading.Event().wait()
