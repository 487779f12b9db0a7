"""The few things a program that is no agent does with vector collections: see which there are, and drop one.

Used by the operator against a Qdrant server by its REST URL. Nothing here reads or writes a vector.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from assay_core.errors import AssayError, ConfigError, TransientError
from assay_core.log import hide

_TIMEOUT_S = 10
_NOT_THERE = 404
_DENIED = (401, 403)


class _NotThere(AssayError):
    """The named collection does not exist; never leaves this module."""


class Collections:
    """One client of a server. Safe to share between threads."""

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        hide(api_key)
        with warnings.catch_warnings():
            # A key over plain http is the installation's choice.
            warnings.simplefilter("ignore", UserWarning)
            self._client = QdrantClient(
                url=url, api_key=api_key, timeout=_TIMEOUT_S, check_compatibility=False
            )

    def names(self) -> list[str]:
        found = self._call(self._client.get_collections)
        return sorted(item.name for item in found.collections)

    def exists(self, name: str) -> bool:
        return name in self.names()

    def drop(self, name: str) -> None:
        """Remove a collection; one that is not there is no error."""
        with suppress(_NotThere):
            self._call(lambda: self._client.delete_collection(name))

    @staticmethod
    def _call(work: Any) -> Any:
        try:
            return work()
        except UnexpectedResponse as error:
            if error.status_code in _DENIED:
                raise ConfigError("QDRANT_API_KEY is not accepted by QDRANT_URL") from None
            if error.status_code == _NOT_THERE:
                raise _NotThere(str(error)) from None
            raise TransientError(f"Qdrant answered {error.status_code}", dependency="qdrant") from error
        except (ResponseHandlingException, ApiException, OSError) as error:
            text = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise TransientError(f"Qdrant is not reachable: {text}", dependency="qdrant") from error
