"""An OpenAI-compatible model server that answers by script, over real HTTP on loopback: every way in which a provider can fail.

The script is a list of `Said` in the order of the requests, the last one repeated; or a function of the request. What was asked is kept.
"""

from __future__ import annotations

import gc
import inspect
import json
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from assay_agent.adapters.hashing import HashEmbedder

DIMENSIONS = 64
"""Of the vectors that the server gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One answer. `raw` replaces the whole body; `cut` sends only that many bytes of it and closes; `stall_s` waits first."""

    text: str | None = ""
    status: int = 200
    error: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    finish: str | None = "stop"
    usage: tuple[int, int] | None = (100, 10)
    extra: Mapping[str, Any] = field(default_factory=dict)
    choices: bool = True
    raw: bytes | None = None
    cut: int | None = None
    stall_s: float = 0.0

    def body(self, model: str) -> bytes:
        if self.raw is not None:
            return self.raw
        if self.error is not None:
            fault = {"message": self.error, "type": "invalid_request_error", "param": None, "code": None}
            return json.dumps({"error": fault}).encode()
        message = {"role": "assistant", "content": self.text, **self.extra}
        document: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}]
            if self.choices
            else [],
        }
        if self.usage is not None:
            tokens_in, tokens_out = self.usage
            document["usage"] = {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
            }
        return json.dumps(document).encode()


Script = Sequence[Said] | Callable[[dict[str, Any]], Said]


@dataclass(slots=True)
class OpenAiServer:
    """`url` is the base URL of a project's connection, `requests` the bodies that came, `keys` the bearer tokens.

    Those of embeddings are apart, in `embedding_keys`.
    """

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    embedding_keys: list[str] = field(default_factory=list)


@contextmanager
def serving(script: Script) -> Iterator[OpenAiServer]:
    """A server with this script, until the block ends."""
    lock = threading.Lock()
    rest = list(script) if isinstance(script, Sequence) else []

    def next_said(request: dict[str, Any]) -> Said:
        if callable(script):
            return script(request)
        with lock:
            return rest.pop(0) if len(rest) > 1 else rest[0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers.get("Authorization", "").removeprefix("Bearer ")
            if self.path.endswith("/embeddings"):
                with lock:
                    server.embedding_keys.append(key)
                self._embed(request)
                return
            with lock:
                server.requests.append(request)
                server.keys.append(key)
            said = next_said(request)
            time.sleep(said.stall_s)
            body = said.body(str(request.get("model", "")))
            self.send_response(said.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body if said.cut is None else body[: said.cut])
            if said.cut is not None:
                self.close_connection = True

        def _embed(self, request: dict[str, Any]) -> None:
            texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
            vectors = HashEmbedder(DIMENSIONS).embed(texts)
            # Twice as long as they should be, and in another order: both are allowed.
            data = [
                {"object": "embedding", "index": index, "embedding": [2 * value for value in vector]}
                for index, vector in enumerate(vectors)
            ]
            body = json.dumps(
                {
                    "object": "list",
                    "model": request["model"],
                    "data": data[::-1],
                    "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)},
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server = OpenAiServer(url=f"http://127.0.0.1:{http.server_address[1]}/v1")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        _hang_up()
        http.shutdown()
        http.server_close()
        thread.join(5)


def _hang_up() -> None:
    """Close the connections that litellm keeps for later: nobody will answer there any more."""
    sdk = sys.modules.get("litellm")
    cache = getattr(getattr(sdk, "in_memory_llm_clients_cache", None), "cache_dict", {})
    for client in list(cache.values()):
        close = getattr(client, "close", None)
        if close is not None and not inspect.iscoroutinefunction(close):
            close()
    cache.clear()
    # Some clients are in no cache; their sockets are closed as they are collected, which is not this test's doing.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
