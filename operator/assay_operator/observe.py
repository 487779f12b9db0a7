"""Gather what is known of one run, from the cache and the store, as `decide` wants it. Reads only.

The first of the three parts of a reconcile. A store that gives no answer is an observation too: what can be decided without it
still is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay_core import clock
from assay_core.errors import TransientError
from assay_core.model.run import DiscoveryRun, RunOutcome, RunStatus
from assay_core.resume import Refused, refusal
from assay_core.store.client import Store
from assay_core.vectors import names
from assay_core.vectors.collections import Collections
from assay_operator.cache import Cache
from assay_operator.cluster import Cluster
from assay_operator.decide import Asked, Observed
from assay_operator.endings import LOST_POD
from assay_operator.events import Events
from assay_operator.findings import Evidence
from assay_operator.outcome import judge
from assay_operator.project import Found, ProjectResolver
from assay_operator.resource import SKIP_PURGE_ANNOTATION, Object, job_name
from assay_operator.seen import JobSeen, PodSeen, job_seen, pod_seen
from assay_operator.status import auto_retries

EVENTS_AFTER = timedelta(seconds=30)
"""Without progress, before the events about a Job and its pod are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """What the API server last said when it would not create a Job, by run uid and attempt. Written by `apply`."""

    said: dict[tuple[str, int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Where observations come from."""

    cache: Cache
    cluster: Cluster
    events: Events
    store: Store
    collections: Collections | None
    projects: ProjectResolver
    refusals: Refusals

    def observe(self, run: Object) -> Observed:
        """All that `decide` asks for; lookups that the present state does not need are left out."""
        now = clock.now()
        jobs = [job_seen(body, owner_uid=run.uid) for body in self.cache.jobs(run.uid)]
        try:
            return self._with_store(run, now, jobs)
        except TransientError as error:
            if error.dependency == "kubernetes":
                raise
            return Observed(
                now=now,
                asked=asked(run),
                job_there=bool(jobs),
                job_live=any(not job.over for job in jobs),
                finalized=run.finalized,
                store_error=str(error),
            )

    def _with_store(self, run: Object, now: datetime, jobs: Sequence[JobSeen]) -> Observed:
        document = self.store.runs.get(run.run_id)
        evidence = self._evidence(run, document, now, jobs) if document is not None else None
        pod = evidence.pod if evidence else None
        found = self.projects.find(run) if document is None else Found()
        ended = document is not None and document.status is RunStatus.FAILED
        waits = document is None or ended
        return Observed(
            now=now,
            asked=asked(run),
            run=document,
            finding=judge(evidence) if evidence else None,
            job_created=evidence is not None and evidence.job_created,
            job_there=bool(jobs),
            job_live=any(not job.over for job in jobs),
            queued=evidence is not None and evidence.job is not None and evidence.job.queued,
            pod=pod,
            node_dead=_node_dead(pod, now),
            rows_left=self._rows_left(run, document),
            finalized=run.finalized,
            project=found.problem,
            project_detail=found.detail,
            busy=self.projects.busy(run, started=document is not None)
            if waits and not found.problem
            else None,
            refused=self._refused(document) if ended and document is not None else None,
            auto_retries=auto_retries(document) if document is not None else 0,
        )

    def _evidence(
        self, run: Object, document: DiscoveryRun, now: datetime, jobs: Sequence[JobSeen]
    ) -> Evidence:
        name = job_name(run.name, document.attempt)
        job = next((found for found in jobs if found.name == name), None)
        known = (run.status.get("job") or {}).get("name") == name
        refused = self.refusals.said.get((run.uid, document.attempt))
        if job is None and not document.status.is_terminal and (known or refused == TAKEN):
            # The watch may lag behind what the status says, as where another operator has made the Job: it is asked for itself.
            there = self.cluster.job(run.namespace, name)
            job = job_seen(there, owner_uid=run.uid) if there else None
        pods = self.cache.pods(run.uid, document.attempt)
        pod = pod_seen(pods[-1][0], gone=pods[-1][1]) if pods else None
        ended = job is None or job.over or pod is None or pod.over or pod.gone
        slow = document.owner is None and _does_not_get_on(job, pod, now)
        return Evidence(
            now=now,
            run=document,
            records=self._records(document) if ended or document.status is RunStatus.FAILED else (),
            stopping="suspend" if document.suspend_requested else None,
            job_created=known or job is not None,
            job=job,
            pod=pod,
            job_events=self.events.about(run.namespace, job.uid) if slow and job and pod is None else (),
            pod_events=self.events.about(run.namespace, pod.uid) if slow and pod else (),
            refused=None if refused == TAKEN else refused,
            pending_since=_pending_since(document),
            pending_deadline_s=run.spec.pending_deadline_seconds,
        )

    def _records(self, document: DiscoveryRun) -> list[RunOutcome]:
        found = self.store.outcomes.of_run(document.id)
        return [record for record in found if record.attempt == document.attempt]

    def _refused(self, document: DiscoveryRun) -> Refused | None:
        others = [other.id for other in self.store.runs.active(project_id=document.project_id)]
        return refusal(
            document,
            self.store.checkpoints.marks(document.id),
            summary=self.store.checkpoints.summary(document.id) is not None,
            active=[other for other in others if other != document.id],
        )

    def _rows_left(self, run: Object, document: DiscoveryRun | None) -> bool:
        """Asked only where something is to be removed."""
        if document is None:
            return False
        if document.status is not RunStatus.CANCELLED and not run.deleting:
            return False
        if self.store.checkpoints.any_of(document.id):
            return True
        return self.collections is not None and self.collections.exists(names.run(document.id))


TAKEN = "taken"
"""What stands in `Refusals` when a Job of the name exists already."""


def asked(run: Object) -> Asked:
    """What the object asks for."""
    spec = run.spec
    return Asked(
        cancel=run.asks_cancel,
        suspend=spec.suspend,
        resume=run.asks_resume,
        deleting=run.deleting,
        skip_purge=run.annotations.get(SKIP_PURGE_ANNOTATION) == "true",
        retain=spec.retention.on_delete == "Retain",
        retries=spec.retry.max_infra_retries,
        backoff_s=spec.retry.backoff_seconds,
        max_backoff_s=spec.retry.max_backoff_seconds,
        ttl_s=spec.retention.ttl_seconds_after_finished,
    )


def _does_not_get_on(job: JobSeen | None, pod: PodSeen | None, now: datetime) -> bool:
    """Made a while ago, and neither over nor held back by a queue."""
    if job is None or job.over or job.suspended or job.created_at is None:
        return False
    return not (pod is not None and (pod.over or pod.gone)) and now > job.created_at + EVENTS_AFTER


def _node_dead(pod: PodSeen | None, now: datetime) -> bool:
    return (
        pod is not None
        and not pod.over
        and not pod.gone
        and pod.delete_at is not None
        and now > pod.delete_at + LOST_POD
    )


def _pending_since(document: DiscoveryRun) -> datetime | None:
    launched = [event.at for event in document.lifecycle if event.status is RunStatus.PENDING]
    return launched[-1] if launched else document.started_at
