"""The event pump: what the watch says goes into the cache, and the run it is about into the queue. Nothing is decided here.

kopf watches; it keeps no state of ours, writes nothing and adds no finalizer. The handlers run in its event loop and only touch
memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import kopf

from assay_operator import metrics
from assay_operator.cache import Cache, RunKey
from assay_operator.health import Health
from assay_operator.resource import GROUP, PLURAL, RUN_UID_LABEL, VERSION
from assay_operator.workqueue import WorkQueue

SERVER_TIMEOUT_S = 240
CONNECT_TIMEOUT_S = 10
INACTIVITY_S = 70
"""A watch that says nothing for so long, bookmarks included, is opened anew."""
CHUNK = 500
BEAT_S = 5.0


def pump(cache: Cache, queue: WorkQueue[RunKey], health: Health) -> kopf.OperatorRegistry:
    """The three watches, and a beat that shows that their loop turns."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry, id="login")(kopf.login_via_client)

    def watch(saw: Callable[..., RunKey | None], resource: str) -> Callable[..., Any]:
        async def handle(event: kopf.RawEvent, **_: Any) -> None:
            body = dict(event["object"])
            key = saw(body, deleted=event["type"] == "DELETED")
            health.watched(resource, body)
            metrics.WATCH_AGE_SECONDS.labels(resource=resource).set_function(_age(time.monotonic()))
            if key is not None:
                queue.add(key)

        return handle

    kopf.on.event(GROUP, VERSION, PLURAL, registry=registry, id="run")(watch(cache.saw_run, "discoveryruns"))
    labelled = {RUN_UID_LABEL: kopf.PRESENT}
    kopf.on.event("batch", "v1", "jobs", labels=labelled, registry=registry, id="job")(
        watch(cache.saw_job, "jobs")
    )
    kopf.on.event("v1", "pods", labels=labelled, registry=registry, id="pod")(watch(cache.saw_pod, "pods"))
    beats: set[asyncio.Task[None]] = set()

    async def begin(**_: Any) -> None:
        beats.add(asyncio.create_task(_beat(health)))

    kopf.on.startup(registry=registry, id="beat")(begin)
    return registry


async def _beat(health: Health) -> None:
    while True:  # ends with the loop that is watched
        health.beat()
        await asyncio.sleep(BEAT_S)


def _age(since: float) -> Callable[[], float]:
    return lambda: time.monotonic() - since


def settings() -> kopf.OperatorSettings:
    """No peering, no posting, no bookkeeping on objects; short patience with a watch that has died."""
    made = kopf.OperatorSettings()
    made.posting.enabled = False
    made.peering.standalone = True
    made.scanning.disabled = True
    made.watching.server_timeout = SERVER_TIMEOUT_S
    made.watching.connect_timeout = CONNECT_TIMEOUT_S
    made.watching.inactivity_timeout = INACTIVITY_S
    made.watching.chunk_size = CHUNK
    return made
