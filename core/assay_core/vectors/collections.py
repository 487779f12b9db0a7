"""The few things a program that is no agent does with vector collections: see which there are, and drop one.

Used by the operator against a Qdrant server by its REST interface. Nothing here reads or writes a vector. Qdrant's own client
is left to the agent: it takes 70 MB of memory, a third of what an operator may take, for two requests.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import urllib3

from assay_core.errors import ConfigError, TransientError
from assay_core.log import hide

_TIMEOUT_S = 10.0
_NOT_THERE = 404
_DENIED = (401, 403)
_CONNECTIONS = 8


class Collections:
    """One client of a server. Safe to share between threads."""

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        hide(api_key)
        self._url = url.rstrip("/")
        headers = {"api-key": api_key} if api_key else {}
        self._pool = urllib3.PoolManager(
            maxsize=_CONNECTIONS, headers=headers, timeout=_TIMEOUT_S, retries=False
        )

    def names(self) -> list[str]:
        found = self._call("GET", "/collections")
        try:
            return sorted(str(one["name"]) for one in found["result"]["collections"])
        except (KeyError, TypeError):
            raise TransientError("QDRANT_URL does not answer as Qdrant does", dependency="qdrant") from None

    def exists(self, name: str) -> bool:
        return name in self.names()

    def drop(self, name: str) -> None:
        """Remove a collection; one that is not there is no error."""
        self._call("DELETE", f"/collections/{quote(name, safe='')}", absent_is_fine=True)

    def _call(self, method: str, path: str, *, absent_is_fine: bool = False) -> Any:
        try:
            answer = self._pool.request(method, self._url + path)
            status = answer.status
            body = json.loads(answer.data or b"{}") if status < 300 else None
        except (urllib3.exceptions.LocationValueError, urllib3.exceptions.LocationParseError):
            raise ConfigError("QDRANT_URL is no URL; it may be http://host:6333") from None
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            text = type(error).__name__
            raise TransientError(f"Qdrant is not reachable: {text}", dependency="qdrant") from error
        if status in _DENIED:
            raise ConfigError("QDRANT_API_KEY is not accepted by QDRANT_URL")
        if status >= 300 and not (absent_is_fine and status == _NOT_THERE):
            raise TransientError(f"Qdrant answered {status}", dependency="qdrant")
        return body
