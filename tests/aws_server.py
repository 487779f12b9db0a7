"""The two calls of AWS that give a password for Redshift, over HTTP, for boto3 to talk to. What it was asked is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from assay_core import clock

_SPACE = "http://redshift.amazonaws.com/doc/2012-12-01/"


@dataclass(slots=True, kw_only=True)
class AwsServer:
    """Answers with `user` and `password`, or with `refusal`: a status, a code and a message."""

    url: str
    user: str = "IAM:analyst"
    password: str = "temporary"
    expires_in: timedelta = timedelta(hours=1)
    refusal: tuple[int, str, str] | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)
    signed_by: list[str] = field(default_factory=list)

    @property
    def _expires(self) -> datetime:
        return clock.now() + self.expires_in

    def cluster(self) -> str:
        """GetClusterCredentials speaks the query protocol: XML."""
        if self.refusal:
            _, code, message = self.refusal
            return (
                f'<ErrorResponse xmlns="{_SPACE}"><Error><Type>Sender</Type><Code>{code}</Code>'
                f"<Message>{message}</Message></Error><RequestId>r1</RequestId></ErrorResponse>"
            )
        return (
            f'<GetClusterCredentialsResponse xmlns="{_SPACE}"><GetClusterCredentialsResult>'
            f"<DbUser>{self.user}</DbUser><DbPassword>{self.password}</DbPassword>"
            f"<Expiration>{clock.iso_z(self._expires)}</Expiration></GetClusterCredentialsResult>"
            "<ResponseMetadata><RequestId>r1</RequestId></ResponseMetadata></GetClusterCredentialsResponse>"
        )

    def workgroup(self) -> str:
        """GetCredentials of the serverless service speaks JSON."""
        if self.refusal:
            _, code, message = self.refusal
            return json.dumps({"__type": code, "message": message})
        return json.dumps(
            {"dbUser": self.user, "dbPassword": self.password, "expiration": self._expires.timestamp()}
        )


@contextmanager
def aws_server() -> Iterator[AwsServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            target = self.headers.get("X-Amz-Target")
            fields = {name: values[0] for name, values in parse_qs(body).items()}
            server.asked.append({"Action": target, **json.loads(body)} if target else fields)
            server.signed_by.append(self.headers["Authorization"].partition("Credential=")[2].split("/")[0])
            answer = (server.workgroup() if target else server.cluster()).encode()
            self.send_response(server.refusal[0] if server.refusal else 200)
            self.send_header("Content-Type", "application/x-amz-json-1.1" if target else "text/xml")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = AwsServer(url=f"http://127.0.0.1:{http.server_address[1]}")
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
