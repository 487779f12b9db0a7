"""BigQuery as a client meets it: a recording relay in front of the emulator, which plays what the emulator lacks.

It issues tokens for service accounts, answers what a credential may do, keeps a job running until it is cancelled, adds
the keys of tables and the kind of statements, and gives scripted answers, errors in BigQuery's documented form among
them (https://cloud.google.com/bigquery/docs/error-messages).
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import sqlglot
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from sqlglot import exp

from tests.bigquery_emulator import PROJECT, emulator

ACCOUNT = "reader@shop-1.iam.gserviceaccount.com"
ENDLESS = "SELECT COUNT(*) FROM UNNEST(GENERATE_ARRAY(1, 900000)) a, UNNEST(GENERATE_ARRAY(1, 900001)) b"
"""A statement whose job runs until it is cancelled."""
_HELD = "GENERATE_ARRAY(1, 900001)"
_POLL_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    body: Any

    @property
    def job(self) -> Mapping[str, Any]:
        """The configuration of the job that was to be inserted; empty for other calls."""
        return self.body.get("configuration", {}) if isinstance(self.body, dict) else {}


@dataclass(slots=True, kw_only=True)
class Scripted:
    """An answer to calls whose method, path and body match a pattern, as often as `times` says."""

    pattern: re.Pattern[str]
    status: int
    body: Any
    times: int
    headers: Mapping[str, str] = field(default_factory=dict)


class BigQueryServer:
    """`requests` are the calls so far.

    `rights` are what any table answers of its permissions, None for no answer; `keys` the primary keys of tables by name;
    `billed` the bytes that each job is billed whose label `assay` is one of `billed_kinds`, by default each query of a model.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.rights: list[str] | None = []
        self.keys: dict[str, list[str]] = {}
        self.billed = 0
        self.billed_kinds = frozenset({"query"})
        self.upstream = emulator().port
        self.scripted: list[Scripted] = []
        self.lock = threading.Lock()
        self.running: dict[str, threading.Event] = {}
        self.tokens = 0
        server = self

        class Handler(_Handler):
            owner = server

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def script(
        self,
        pattern: str,
        status: int,
        body: Any,
        *,
        times: int = 1_000,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Answer `status` and `body` where `METHOD path body` matches `pattern`."""
        self.scripted.append(
            Scripted(
                pattern=re.compile(pattern, re.DOTALL),
                status=status,
                body=body,
                times=times,
                headers=headers or {},
            )
        )

    def jobs(self, *, dry_run: bool = False) -> list[Mapping[str, Any]]:
        """Configurations of the jobs inserted so far, rehearsals or the others."""
        found = [request.job for request in self.requests if request.method == "POST" and request.job]
        return [job for job in found if bool(job.get("dryRun")) is dry_run]

    def key(self, **changed: Any) -> str:
        """The JSON key of a service account whose tokens this server issues."""
        return json.dumps(
            {
                "type": "service_account",
                "project_id": PROJECT,
                "private_key_id": "k1",
                "private_key": _private_key(),
                "client_email": ACCOUNT,
                "client_id": "1",
                "token_uri": f"{self.url}/token",
                **changed,
            }
        )

    def config(self, **changed: Any) -> dict[str, Any]:
        return {"project_id": PROJECT, "api_endpoint": self.url, **changed}

    @contextmanager
    def dataset(self, *statements: str, name: str = "", project: str = PROJECT) -> Iterator[str]:
        """A new dataset with what `statements` make, run one after the other; dropped afterwards."""
        name = name or f"d_{uuid4().hex[:12]}"
        client = bigquery.Client(
            project=project,
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]  # google-auth is partly untyped
            client_options=ClientOptions(api_endpoint=f"http://127.0.0.1:{self.upstream}"),
        )
        client.create_dataset(name, timeout=30)
        try:
            for statement in statements:
                config = bigquery.QueryJobConfig(default_dataset=f"{project}.{name}")
                client.query(statement, job_config=config, timeout=30, job_retry=None).result(
                    timeout=60, job_retry=None
                )
            yield name
        finally:
            client.delete_dataset(name, delete_contents=True, timeout=30)
            client.close()  # type: ignore[no-untyped-call]  # and so is the client

    def ask(self, sql: str, dataset: str = "") -> tuple[list[str], list[str]] | None:
        """The emulator's own types and rows, in no order; None where it refuses the statement."""
        query: dict[str, Any] = {"query": sql, "useLegacySql": False}
        if dataset:
            query["defaultDataset"] = {"projectId": PROJECT, "datasetId": dataset}
        job = self._call("POST", "jobs", {"configuration": {"query": query}})
        if job is None or "errorResult" in job["status"]:
            return None
        answer = self._call("GET", f"queries/{job['jobReference']['jobId']}")
        if answer is None:
            return None
        return [field["type"] for field in answer["schema"]["fields"]], sorted(
            map(json.dumps, answer["rows"])
        )

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=60)
        try:
            connection.request(
                method,
                f"/bigquery/v2/projects/{PROJECT}/{path}",
                body=None if body is None else json.dumps(body),
                headers={"Content-Type": "application/json"},
            )
            response = connection.getresponse()
            answer = response.read()
            return json.loads(answer) if response.status == 200 else None
        finally:
            connection.close()

    def close(self) -> None:
        for event in self.running.values():
            event.set()
        self._http.shutdown()
        self._http.server_close()


def error(status: int, reason: str, message: str) -> dict[str, Any]:
    """An error as BigQuery writes it."""
    detail = {"domain": "global", "reason": reason, "message": message}
    return {"error": {"code": status, "message": message, "errors": [detail], "status": "FAILED"}}


@contextmanager
def bigquery_server() -> Iterator[BigQueryServer]:
    server = BigQueryServer()
    try:
        yield server
    finally:
        server.close()


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
    owner: BigQueryServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = raw.decode()
        path = self.path.partition("?")[0]
        self.owner.requests.append(Request(method=self.command, path=path, body=body))
        if scripted := self._scripted(f"{self.command} {path} {raw.decode()}"):
            self._answer(scripted.status, scripted.body, headers=scripted.headers)
        elif path == "/token":
            self.owner.tokens += 1
            self._answer(
                200, {"access_token": f"t{self.owner.tokens}", "token_type": "Bearer", "expires_in": 3600}
            )
        elif path.endswith(":testIamPermissions") and self.owner.rights is not None:
            self._answer(200, {"permissions": self.owner.rights} if self.owner.rights else {})
        elif self.command == "POST" and _HELD in str(body):
            self._held(body)
        elif (job := self.owner.running.get(re.sub(r"/cancel$", "", path).rpartition("/")[2])) is not None:
            self._running(path, job)
        else:
            self._forward(raw)

    def _scripted(self, call: str) -> Scripted | None:
        with self.owner.lock:
            for answer in self.owner.scripted:
                if answer.times and answer.pattern.search(call):
                    answer.times -= 1
                    return answer
        return None

    def _held(self, body: Any) -> None:
        """A rehearsal is answered at once, a job only begins."""
        config = body["configuration"]
        reference = {"projectId": PROJECT, "location": "US"} | body.get("jobReference", {})
        job = {"kind": "bigquery#job", "jobReference": reference, "configuration": config}
        if config.get("dryRun"):
            query = {"statementType": "SELECT", "totalBytesProcessed": "0"}
            self._answer(200, job | {"status": {"state": "DONE"}, "statistics": {"query": query}})
            return
        self.owner.running[reference["jobId"]] = threading.Event()
        self._answer(200, job | {"status": {"state": "RUNNING"}, "statistics": {}})

    def _running(self, path: str, cancelled: threading.Event) -> None:
        *_, kind, job_id = path.removesuffix("/cancel").split("/")
        if path.endswith("/cancel"):
            cancelled.set()
        elif kind == "queries":
            cancelled.wait(_POLL_S)
        reference = {"projectId": PROJECT, "jobId": job_id, "location": "US"}
        stopped = {"reason": "stopped", "message": "Job execution was cancelled: User requested cancellation"}
        done = {"state": "DONE", "errorResult": stopped, "errors": [stopped]}
        job = {
            "kind": "bigquery#job",
            "jobReference": reference,
            "configuration": {"query": {"query": ENDLESS}},
            "status": done if cancelled.is_set() else {"state": "RUNNING"},
            "statistics": {},
        }
        if kind == "queries":
            self._answer(200, {"jobReference": reference, "jobComplete": cancelled.is_set()})
        else:
            self._answer(200, {"job": job} if path.endswith("/cancel") else job)

    def _forward(self, raw: bytes) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.owner.upstream, timeout=60)
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in ("host", "connection", "accept-encoding", "content-length")
        }
        try:
            connection.request(self.command, self.path, body=raw or None, headers=headers)
            response = connection.getresponse()
            answer = response.read()
            if response.status == 200:
                answer = self._completed(raw, answer)
            self._send(response.status, answer, response.headers.get("Content-Type", "application/json"))
        except OSError as failed:
            self._answer(502, error(502, "backendError", str(failed)))
        finally:
            connection.close()

    def _completed(self, raw: bytes, answer: bytes) -> bytes:
        """The emulator's answer with what BigQuery says besides."""
        keys = self.owner.keys.get(self.path.partition("?")[0].rpartition("/tables/")[2])
        if keys:
            table = json.loads(answer)
            return json.dumps(table | {"tableConstraints": {"primaryKey": {"columns": keys}}}).encode()
        labelled = [f'"assay":"{kind}"'.encode() for kind in self.owner.billed_kinds]
        squeezed = answer.replace(b" ", b"")
        if self.owner.billed and b'"dryRun"' not in raw and any(label in squeezed for label in labelled):
            job = json.loads(answer)
            job["statistics"].setdefault("query", {})["totalBytesBilled"] = str(self.owner.billed)
            return json.dumps(job).encode()
        if self.command == "POST" and b'"dryRun"' in raw:
            job = json.loads(answer)
            query = job.get("statistics", {}).get("query", {})
            if not query.get("statementType"):
                sql = json.loads(raw)["configuration"]["query"]["query"]
                query["statementType"] = (
                    "SELECT" if isinstance(sqlglot.parse_one(sql, dialect="bigquery"), exp.Query) else "OTHER"
                )
                return json.dumps(job).encode()
        return answer

    def _answer(self, status: int, body: Any, *, headers: Mapping[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", headers)

    def _send(self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the calls are recorded."""
