"""Objects created as fast as one client can, or at a steady pace, and when each was."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kubernetes import client

from assay_operator.resource import GROUP, PLURAL, VERSION

THREADS = 8
_PLACED = {
    "nodeSelector": {"type": "kwok"},
    "tolerations": [{"key": "type", "operator": "Equal", "value": "kwok", "effect": "NoSchedule"}],
}


def a_run(namespace: str, name: str) -> dict[str, Any]:
    """With a project of its own, on the simulated nodes."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "DiscoveryRun",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "project": {
                "name": name,
                "datasources": [{"id": "default", "provider": "postgres", "config": {"host": "h", "database": "d", "user": "u"}}],
                "llm": {"provider": "openai-compatible", "model": "m"},
            },
            "maxSteps": 10,
            "podPatch": _PLACED,
        },
    }  # fmt: skip


def create_all(
    create: Callable[[dict[str, Any]], Any], bodies: list[dict[str, Any]], *, per_s: float | None = None
) -> dict[str, float]:
    """Name → when its creation was answered, by the monotonic clock in seconds. `per_s` spaces the creations."""
    began = time.monotonic()

    def one(numbered: tuple[int, dict[str, Any]]) -> tuple[str, float]:
        number, body = numbered
        if per_s is not None:
            time.sleep(max(0.0, began + number / per_s - time.monotonic()))
        create(body)
        return body["metadata"]["name"], time.monotonic()

    with ThreadPoolExecutor(THREADS) as threads:
        return dict(threads.map(one, enumerate(bodies)))


def creator_of_runs(api: client.ApiClient, namespace: str) -> Callable[[dict[str, Any]], Any]:
    custom = client.CustomObjectsApi(api)
    return lambda body: custom.create_namespaced_custom_object(
        GROUP, VERSION, namespace, PLURAL, body, _preload_content=False
    )


def creator_of_jobs(api: client.ApiClient, namespace: str) -> Callable[[dict[str, Any]], Any]:
    batch: Any = client.BatchV1Api(api)  # its stubs ask for models; dicts go as well
    return lambda body: batch.create_namespaced_job(namespace, body, _preload_content=False)
