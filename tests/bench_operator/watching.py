"""When a watcher saw each Job, its end, and the end of its run, by the monotonic clock."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import urllib3
from kubernetes import client

from assay_operator.resource import GROUP, PLURAL, VERSION

_ENDED = ("Succeeded", "Failed", "Cancelled")
_SERVER_S = 3_600


@dataclass(slots=True)
class Seen:
    """Seconds by the name of the run. `jobs` holds the uids of all Jobs of each run that there ever were."""

    jobs: dict[str, list[str]] = field(default_factory=dict)
    created: dict[str, float] = field(default_factory=dict)
    over: dict[str, float] = field(default_factory=dict)
    told: dict[str, float] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)

    def job(self, body: dict[str, Any]) -> None:
        run = (body["metadata"].get("labels") or {}).get("assay.dev/run", body["metadata"]["name"])
        now, uid = time.monotonic(), body["metadata"]["uid"]
        uids = self.jobs.setdefault(run, [])
        if uid not in uids:
            uids.append(uid)
            self.created.setdefault(run, now)
        conditions = (body.get("status") or {}).get("conditions") or []
        if any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions):
            self.over.setdefault(run, now)

    def run(self, body: dict[str, Any]) -> None:
        status, name = body.get("status") or {}, body["metadata"]["name"]
        self.attempts[name] = int(status.get("attempt") or 0)
        if status.get("phase") in _ENDED:
            self.told.setdefault(name, time.monotonic())


class Watcher:
    """Two watches of one namespace, until the end of the block."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self.seen = Seen()
        self._api, self._namespace = api, namespace
        self._ended = threading.Event()
        self._open: dict[str, Any] = {}

    def __enter__(self) -> Seen:
        paths = {
            f"/apis/batch/v1/namespaces/{self._namespace}/jobs": self.seen.job,
            f"/apis/{GROUP}/{VERSION}/namespaces/{self._namespace}/{PLURAL}": self.seen.run,
        }
        for path, saw in paths.items():
            version = json.loads(self._get(path, {"limit": "1"}).data)["metadata"]["resourceVersion"]
            threading.Thread(target=self._follow, args=(path, version, saw), daemon=True).start()
        return self.seen

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for stream in list(self._open.values()):
            stream.shutdown()  # a close would wait for the reader

    def _follow(self, path: str, version: str, saw: Callable[[dict[str, Any]], None]) -> None:
        """The API server ends the watch of a reader that is slow: it goes on at the version it was at."""
        while not self._ended.is_set():
            query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(_SERVER_S)}
            stream = self._open[path] = self._get(path, query)
            for line in _lines(stream):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise AssertionError(f"the watch of {path}: {event['object'].get('message')}")
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] in ("ADDED", "MODIFIED"):
                    saw(event["object"])

    def _get(self, path: str, query: dict[str, str]) -> Any:
        request = self._api.param_serialize(
            "GET", path, query_params=list(query.items()), header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
        )  # fmt: skip
        answer = self._api.call_api(*request, _request_timeout=(5, None))
        assert answer.status == 200, answer.status
        return answer.response


def _lines(stream: Any) -> Iterator[bytes]:
    rest = b""
    try:
        for part in stream.stream(1 << 16):
            *lines, rest = (rest + part).split(b"\n")
            yield from lines
    except (urllib3.exceptions.HTTPError, OSError):
        return  # cut off, or shut down at the end of the block
