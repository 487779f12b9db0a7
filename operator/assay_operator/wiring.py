"""The one place where the parts of a reconcile are put together. Called by `__main__`, and by tests over a real cluster."""

from __future__ import annotations

from assay_core import log
from assay_core.store.client import Store
from assay_core.vectors.collections import Collections
from assay_operator.apply import Applier
from assay_operator.cache import Cache, RunKey
from assay_operator.cluster import Cluster
from assay_operator.events import Events
from assay_operator.job import JobSettings
from assay_operator.observe import Observer, Refusals
from assay_operator.project import ProjectResolver
from assay_operator.reconcile import Reconciler
from assay_operator.workqueue import WorkQueue

_logger = log.logger(__name__)


def reconciler(
    *,
    cache: Cache,
    cluster: Cluster,
    store: Store,
    collections: Collections | None,
    cluster_id: str,
    jobs: JobSettings,
) -> Reconciler:
    """All parts over one cache, one cluster and one store."""
    projects, refusals = ProjectResolver(store=store, cache=cache), Refusals(said={})
    observer = Observer(
        cache=cache,
        cluster=cluster,
        events=Events(cluster),
        store=store,
        collections=collections,
        projects=projects,
        refusals=refusals,
    )
    applier = Applier(
        cache=cache,
        cluster=cluster,
        store=store,
        collections=collections,
        projects=projects,
        refusals=refusals,
        jobs=jobs,
        cluster_id=cluster_id,
    )
    return Reconciler(cache=cache, cluster=cluster, observer=observer, applier=applier)


def relist(cluster: Cluster, cache: Cache, queue: WorkQueue[RunKey]) -> None:
    """Everything that is there, before anything is decided: a Job that is missing is a fact only then."""
    for body in cluster.jobs():
        cache.saw_job(body)
    for body in cluster.pods():
        cache.saw_pod(body)
    for body in cluster.runs():
        queue.add(cache.saw_run(body))
    _logger.info("relisted", runs=len(cache.runs()))
