"""`assay-operator`: settings → store and cluster → relist → workers and sweep → the watch, until it is told to stop.

`assay-operator drain` frees all runs of the operator's finalizer before it is uninstalled.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, NoReturn, cast

import kopf

from assay_core import log
from assay_core.errors import AssayError, ConfigError
from assay_core.store.client import Store
from assay_core.vectors.collections import Collections
from assay_operator import handlers
from assay_operator.cache import Cache, RunKey
from assay_operator.cluster import Cluster, Forbidden
from assay_operator.drain import drain
from assay_operator.health import Health
from assay_operator.orphans import OrphanSweep
from assay_operator.settings import DrainSettings, OperatorSettings
from assay_operator.web import serve
from assay_operator.wiring import reconciler, relist
from assay_operator.workers import Sweep, Workers
from assay_operator.workqueue import WorkQueue

_logger = log.logger(__name__)


def main() -> NoReturn:
    """The container's command. Exit 10: a setting is wrong; 11: the cluster or MongoDB gives no answer."""
    if sys.argv[1:] in (["--help"], ["-h"]):
        sys.stdout.write(f"{(__doc__ or '').strip()}\n")
        sys.exit(0)
    if sys.argv[1:] not in ([], ["drain"]):
        sys.stderr.write("error: the one command is: drain; without it the operator is served\n")
        sys.exit(10)
    try:
        if sys.argv[1:]:
            _drain(DrainSettings.load())
            sys.exit(0)
        settings = OperatorSettings.load()
        log.configure(level=settings.log_level, json=True)
        run(settings)
    except ConfigError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(10)
    except AssayError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(11)
    sys.exit(0)


def run(settings: OperatorSettings) -> None:
    """Serve until SIGTERM. A watch that is not permitted ends the process with 1."""
    if not settings.mongodb_uri:
        raise ConfigError("MONGODB_URI is needed: where the runs are stored (mongodb://host:port)")
    log.hide(settings.mongodb_uri)
    health = Health()
    cluster = Cluster.connect(
        namespace=settings.watch_namespace, threads=settings.operator_workers, wrote=health.wrote
    )
    store = Store.later(settings.mongodb_uri, settings.mongodb_db)
    collections = (
        Collections(settings.qdrant_url, api_key=settings.qdrant_api_key) if settings.qdrant_url else None
    )
    cluster_id = settings.cluster_id or _identity(cluster)
    cache, queue, stopping = Cache(), WorkQueue[RunKey](), threading.Event()
    parts = reconciler(
        cache=cache,
        cluster=cluster,
        store=store,
        collections=collections,
        cluster_id=cluster_id,
        jobs=settings.job_settings(),
    )
    if settings.operator_port:
        serve(health, settings.operator_port)
    relist(cluster, cache, queue)
    Workers(queue=queue, reconciler=parts, count=settings.operator_workers, stopping=stopping).start()
    Sweep(
        queue=queue,
        cache=cache,
        store=store,
        interval_s=settings.sweep_interval,
        stopping=stopping,
        checkpoint_retention_s=settings.discovery_checkpoint_retention,
        orphan_interval_s=settings.orphan_sweep_interval,
        orphans=OrphanSweep(
            store=store,
            collections=collections,
            cluster_id=cluster_id,
            namespace=settings.watch_namespace,
        ),
    ).start()
    try:
        kopf.run(
            registry=handlers.pump(cache, queue, health),
            settings=handlers.settings(),
            standalone=True,
            # kopf asks for the name of the user otherwise, which an arbitrary user id has not.
            identity=cast(Any, "assay-operator"),
            namespaces=[settings.watch_namespace] if settings.watch_namespace else [],
            clusterwide=not settings.watch_namespace,
        )
    finally:
        stopping.set()
        queue.close()


def _drain(settings: DrainSettings) -> None:
    log.configure(level="info", json=True)
    cluster = Cluster.connect(namespace=settings.watch_namespace, threads=1)
    name, namespace = settings.operator_deployment, settings.operator_namespace
    drain(cluster, deployment=(namespace, name) if name and namespace else None)


def _identity(cluster: Cluster) -> str:
    try:
        return cluster.identity()
    except Forbidden:
        raise ConfigError(
            "CLUSTER_ID is needed where the uid of the namespace kube-system may not be read"
        ) from None


if __name__ == "__main__":
    main()
