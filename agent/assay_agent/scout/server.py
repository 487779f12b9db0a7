"""The scout as an OpenAI-compatible HTTP server: `/v1/models` and `/v1/chat/completions`, streamed or not.

For pods and programs that only know that protocol. Requests are bounded in size and time; nothing is kept between them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

from assay_agent.ports import Message
from assay_agent.scout.model import MODEL, answer

_BODY_BYTES = 16 * 1024 * 1024
_SOCKET_S = 60.0
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "user"}


class _BadRequest(Exception):
    """What is wrong with a request, in a line."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _SOCKET_S
    protocol_version = "HTTP/1.1"
    server_version = "assay-scout"

    def do_GET(self) -> None:
        if self.path.rstrip("/") in ("/health", "/healthz"):
            self._json(200, {"status": "ok"})
        elif self.path.rstrip("/") == "/v1/models":
            self._json(
                200,
                {
                    "object": "list",
                    "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "assay"}],
                },
            )
        else:
            self._json(404, _error(f"no such path: {self.path[:100]}"))

    def do_POST(self) -> None:
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._json(404, _error(f"no such path: {self.path[:100]}"))
            return
        try:
            request = self._request()
            text = answer(_messages(request))
        except _BadRequest as error:
            self._json(400, _error(str(error)))
            return
        if request.get("stream"):
            self._stream(text)
        else:
            self._json(200, _completion(text))

    def _request(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _BODY_BYTES:
            raise _BadRequest(f"Content-Length must be a number up to {_BODY_BYTES}")
        try:
            request = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise _BadRequest("the body is not JSON") from error
        if not isinstance(request, dict):
            raise _BadRequest("the body must be a JSON object")
        return request

    def _json(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in _chunks(text):
            self.wfile.write(f"data: {chunk}\n\n".encode())
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """No access log: paths and bodies may hold data."""


def _messages(request: dict[str, Any]) -> list[Message]:
    given = request.get("messages")
    if not isinstance(given, list) or not given:
        raise _BadRequest("`messages` must be a list that is not empty")
    found: list[Message] = []
    for item in given:
        role = _ROLES.get(item.get("role", "")) if isinstance(item, dict) else None
        if role is None:
            raise _BadRequest("each message needs a role: system, user or assistant")
        found.append(Message(role, _text(item.get("content"))))  # type: ignore[arg-type]  # one of the three roles
    return found


def _text(content: Any) -> str:
    """A text, or the text parts of a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        part.get("text", "") for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None, "param": None}}


def _completion(text: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


def _chunks(text: str) -> Iterator[str]:
    head = {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": MODEL,
    }
    yield json.dumps(
        {
            **head,
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}],
        }
    )
    yield json.dumps({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield "[DONE]"


def make_server(host: str, port: int) -> ThreadingHTTPServer:
    """A server that listens and does not serve yet; port 0 takes a free one."""
    server = ThreadingHTTPServer((host, port), _Handler)
    server.daemon_threads = True
    return server


def serve(host: str, port: int) -> None:
    """Serve until interrupted."""
    with make_server(host, port) as server:
        server.serve_forever(poll_interval=0.5)
