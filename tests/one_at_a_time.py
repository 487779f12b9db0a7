"""A reverse proxy on loopback that lets one request through at a time.

The BigQuery emulator answers requests that overlap with each other's rows, which BigQuery does not.
"""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_TIMEOUT_S = 120.0
_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive", "host"})


def one_at_a_time(port: int) -> int:
    """The port of a proxy before the server on `port`; it ends with this process."""
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            with turn:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
                try:
                    connection.request(self.command, self.path, body=body, headers=headers)
                    answer = connection.getresponse()
                    said = answer.read()
                finally:
                    connection.close()
            self.send_response(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # names of the standard library

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])
