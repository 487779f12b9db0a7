"""What the operator serves: `/metrics` for Prometheus, `/healthz` and `/readyz` for the kubelet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from assay_operator.health import Health


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        """Probes come every few seconds."""


def serve(health: Health, port: int, *, host: str = "0.0.0.0") -> WSGIServer:
    """Serve from a thread of its own until `shutdown`; port 0 takes a free one."""
    metrics = make_wsgi_app()

    def answer(environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        match environment.get("PATH_INFO"):
            case "/metrics":
                return list(metrics(environment, start))
            case "/healthz":
                problem = health.problem()
            case "/readyz":
                problem = health.problem() or (None if health.ready else "the watches have not begun")
            case _:
                start("404 Not Found", [("Content-Type", "text/plain")])
                return [b"there are /metrics, /healthz and /readyz\n"]
        start("503 Service Unavailable" if problem else "200 OK", [("Content-Type", "text/plain")])
        return [f"{problem or 'ok'}\n".encode()]

    server = make_server(host, port, answer, server_class=_Server, handler_class=_Quiet)
    threading.Thread(target=server.serve_forever, name="web", daemon=True).start()
    return server
