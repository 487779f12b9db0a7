"""Both clouds' secret managers as their clients meet them, over real HTTP on loopback: what is kept, who may read, and every failure.

Google's REST API v1 with its sign-in for service accounts, and AWS's JSON 1.1 protocol. Answers and errors have the documented
form (https://cloud.google.com/secret-manager/docs/reference/rest, the API reference of AWS Secrets Manager). A call is answered
by the first of `scripted` that is left, else by what is kept.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

GOOGLE_PROJECT = "shop-1"
ACCOUNT = "reader@shop-1.iam.gserviceaccount.com"
REGION = "eu-central-1"
ACCESS_KEY = "AKIAINTESTINTESTINTE"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SECRET = re.compile(rf"/v1/projects/{GOOGLE_PROJECT}/secrets(?:/(?P<name>[\w-]+))?(?P<rest>[/:]?.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is said in place of what is kept. `cut` sends only that many bytes of the body and closes; `stall_s` waits first."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    stall_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class SecretServer:
    """`kept` is the versions of each secret by its name, `calls` what was asked besides signing in."""

    url: str
    kept: dict[str, list[bytes]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    tokens: int = 0
    scripted: list[Answer] = field(default_factory=list)
    signing_in: list[Answer] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def sign_in(self, environment: pytest.MonkeyPatch, folder: Path) -> None:
        """As this server's Google account and AWS user, whoever else the machine may be."""
        key = folder / "google.json"
        key.write_text(
            json.dumps(
                {
                    "type": "service_account",
                    "project_id": GOOGLE_PROJECT,
                    "private_key_id": "k1",
                    "private_key": _private_key(),
                    "client_email": ACCOUNT,
                    "client_id": "1",
                    "token_uri": f"{self.url}/token",
                }
            )
        )
        environment.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
        environment.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
        signed_out_of_aws(environment)
        environment.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        environment.setenv("AWS_SECRET_ACCESS_KEY", "in-test-in-test-in-test-in-test-in-test")
        environment.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", self.url)


def signed_out_of_aws(environment: pytest.MonkeyPatch) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE", "DEFAULT_REGION"):
        environment.delenv(f"AWS_{name}", raising=False)
    environment.setenv("AWS_CONFIG_FILE", "/nowhere")
    environment.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    environment.setenv("AWS_EC2_METADATA_DISABLED", "true")


def google_error(status: int, code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": code}}


def aws_error(code: str, message: str) -> dict[str, Any]:
    return {"__type": code, "Message": message}


@cache
def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of ours."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    owner: SecretServer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        self._answer(self._said())

    do_POST = do_DELETE = do_GET

    def _said(self) -> Answer:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        action = self.headers.get("X-Amz-Target")
        with self.owner.lock:
            if self.path == "/token":
                self.owner.tokens += 1
                return self.owner.signing_in.pop(0) if self.owner.signing_in else self._token(raw)
            self.owner.calls.append(action or f"{self.command} {self.path}")
            if self.owner.scripted:
                return self.owner.scripted.pop(0)
            return self._aws(action, json.loads(raw)) if action else self._google(raw)

    def _token(self, raw: bytes) -> Answer:
        asked = parse_qs(raw.decode())
        claims = json.loads(base64.urlsafe_b64decode(asked["assertion"][0].split(".")[1] + "=="))
        if (
            asked["grant_type"] != [_GRANT]
            or claims["iss"] != ACCOUNT
            or "cloud-platform" not in claims["scope"]
        ):
            return Answer(status=400, body={"error": "invalid_grant", "error_description": "Bad claims."})
        token = {"access_token": f"t{self.owner.tokens}", "token_type": "Bearer", "expires_in": 3600}
        return Answer(body=token)

    def _google(self, raw: bytes) -> Answer:
        issued = {f"Bearer t{number}" for number in range(1, self.owner.tokens + 1)}
        if self.headers.get("Authorization") not in issued:
            return Answer(status=401, body=google_error(401, "UNAUTHENTICATED", "Invalid credentials."))
        address = urlsplit(self.path)
        place = _SECRET.fullmatch(address.path)
        if place is None:
            denied = "Permission denied on resource project (or it may not exist)."
            return Answer(status=403, body=google_error(403, "PERMISSION_DENIED", denied))
        kept, name = self.owner.kept, place["name"]
        missing = f"Secret [projects/1/secrets/{name}] not found or has no versions."
        match self.command, place["rest"]:
            case "POST", "":
                (made,) = parse_qs(address.query)["secretId"]
                if made in kept:
                    return Answer(status=409, body=google_error(409, "ALREADY_EXISTS", "It exists."))
                kept[made] = []
                return Answer(body={"name": made})
            case "POST", ":addVersion" if name in kept:
                kept[name].append(base64.b64decode(json.loads(raw)["payload"]["data"]))
                return Answer(body={"name": name})
            case "GET", "/versions/latest:access" if kept.get(name):
                data = base64.b64encode(kept[name][-1]).decode()
                return Answer(body={"name": name, "payload": {"data": data} if data else {}})
            case "DELETE", "" if kept.pop(name, None) is not None:
                return Answer(body={})
        return Answer(status=404, body=google_error(404, "NOT_FOUND", missing))

    def _aws(self, action: str, asked: dict[str, Any]) -> Answer:
        signed = self.headers.get("Authorization", "")
        if f"Credential={ACCESS_KEY}/" not in signed or f"/{REGION}/secretsmanager/" not in signed:
            why = "The security token included in the request is invalid."
            return Answer(status=400, body=aws_error("UnrecognizedClientException", why))
        kept = self.owner.kept
        name = asked.get("SecretId") or asked["Name"]
        match action.partition(".")[2]:
            case "CreateSecret":
                binary = asked.get("SecretBinary")
                kept[name] = [asked["SecretString"].encode() if binary is None else base64.b64decode(binary)]
                return Answer(body={"Name": name})
            case "GetSecretValue" if name in kept:
                try:
                    value = {"SecretString": kept[name][-1].decode()}
                except UnicodeDecodeError:
                    value = {"SecretBinary": base64.b64encode(kept[name][-1]).decode()}
                return Answer(body={"Name": name, **value})
            case "DeleteSecret" if asked["ForceDeleteWithoutRecovery"]:
                kept.pop(name, None)
                return Answer(body={"Name": name})
        missing = "Secrets Manager can't find the specified secret."
        return Answer(status=400, body=aws_error("ResourceNotFoundException", missing))

    def _answer(self, answer: Answer) -> None:
        time.sleep(answer.stall_s)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if answer.cut is None else body[: answer.cut])
        if answer.cut is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the calls are recorded."""


@contextmanager
def secret_server() -> Iterator[SecretServer]:
    """A server that keeps nothing yet, until the block ends."""
    http = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {}))
    http.daemon_threads = True
    server = SecretServer(url=f"http://127.0.0.1:{http.server_address[1]}")
    http.RequestHandlerClass.owner = server  # type: ignore[attr-defined]  # a handler of ours
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join(5)
