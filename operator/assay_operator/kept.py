"""What is kept in memory of an object that was seen: the parts that are read here, packed. Pure; used by the cache alone.

Thousands of bodies as nested dicts would take some hundred megabytes, most of it fields that nobody here reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Body = Mapping[str, Any]

_METADATA = (
    *("name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
)
_POD_STATUS = (
    *("phase", "reason", "message", "startTime", "conditions"),
    *("containerStatuses", "initContainerStatuses"),
)
_OF_GIT = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Kept:
    """One version of an object. `version` is its resourceVersion as a number, None where it is none; `phase` that of a run."""

    uid: str
    version: int | None
    phase: str
    packed: bytes

    @property
    def body(self) -> Body:
        """A fresh copy."""
        found: Body = json.loads(self.packed)
        return found

    def older(self, than: Kept) -> bool:
        """Versions of one object are compared as numbers, which the API server promises."""
        return self.version is not None and than.version is not None and self.version < than.version


def kept_run(body: Body) -> Kept:
    """All but the bookkeeping of those who write it."""
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    annotations = metadata.get("annotations")
    if annotations:
        metadata["annotations"] = {name: value for name, value in annotations.items() if name != _OF_GIT}
    return _pack({**body, "metadata": metadata})


def kept_job(body: Body) -> Kept:
    """What `job_seen` reads."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    return _pack(
        {
            "metadata": _some(body["metadata"], _METADATA),
            "spec": _some(spec, ("suspend",)),
            "status": _some(status, ("startTime", "conditions")),
        }
    )


def kept_pod(body: Body) -> Kept:
    """What `pod_seen` reads."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    containers = [_some(one, ("name", "resources")) for one in spec.get("containers") or ()]
    return _pack(
        {
            "metadata": _some(body["metadata"], _METADATA),
            "spec": {**_some(spec, ("nodeName",)), "containers": containers},
            "status": _some(status, _POD_STATUS),
        }
    )


def _some(found: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: found[name] for name in names if name in found}


def _pack(body: Mapping[str, Any]) -> Kept:
    metadata = body["metadata"]
    try:
        version = int(metadata["resourceVersion"])
    except (KeyError, TypeError, ValueError):
        version = None
    phase = str((body.get("status") or {}).get("phase") or "")
    packed = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
    return Kept(str(metadata["uid"]), version, phase, packed)
