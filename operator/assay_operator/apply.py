"""Carry out one decision: the store first, then the cluster. The last of the three parts of a reconcile.

Every step can be done again: a run that exists, a Job that exists and a row that is gone are what was wanted. A process that dies
between two steps leaves an intent that the next reconcile completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from assay_core import clock, log
from assay_core.errors import AssayError, ConfigError, ResumeRefused
from assay_core.model.run import DiscoveryRun, RunLifecycleEvent, RunOrigin, RunOutcome, RunStatus
from assay_core.resume import replayable
from assay_core.store.client import Store
from assay_core.store.control import resume_run
from assay_core.vectors import names
from assay_core.vectors.collections import Collections
from assay_operator import metrics
from assay_operator.cache import Cache
from assay_operator.cluster import Cluster, Conflict, Forbidden, Gone
from assay_operator.decide import (
    Decision,
    Expire,
    Finish,
    Hold,
    Launch,
    Purge,
    Refuse,
    Release,
    Settled,
    Stop,
)
from assay_operator.findings import Going, Over
from assay_operator.job import JobSettings, build_job
from assay_operator.observe import TAKEN, Refusals
from assay_operator.project import ProjectResolver, inline_project
from assay_operator.resource import FINALIZER, Object, job_name
from assay_operator.seen import job_seen

OPERATOR = "operator"
"""The owner of the outcome record that holds the operator's own verdict on an attempt."""
_MESSAGE_BYTES = 1_024
_logger = log.logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What changed beside the decision itself: fields of the status that only `apply` knows."""

    status: Mapping[str, Any]
    again: bool = True
    """Look at the run again at once."""
    launched: tuple[DiscoveryRun, Going] | None = None
    """The run as it is stored and where it stands, when its attempt has got its Job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applier:
    """Where decisions are carried out."""

    cache: Cache
    cluster: Cluster
    store: Store
    collections: Collections | None
    projects: ProjectResolver
    refusals: Refusals
    jobs: JobSettings
    cluster_id: str

    def apply(self, run: Object, document: DiscoveryRun | None, decision: Decision) -> Applied:
        """One decision. Raises what the store or the API raises; the key is then tried again."""
        match decision:
            case Launch():
                return self._launch(run, document, decision)
            case Stop():
                return self._stop(run, document, decision)
            case Finish():
                self._finish(run, document, decision.over)
                return Applied(status={})
            case Purge():
                return self._purge(run)
            case Release():
                self._release(run)
                return Applied(status={}, again=False)
            case Expire():
                self.cluster.delete_run(run.namespace, run.name, uid=run.uid)
                return Applied(status={}, again=False)
            case Refuse() | Hold() | Settled():
                return Applied(status={}, again=False)
            case _:
                assert_never(decision)

    # ------------------------------------------------------------------------------------------------ launching

    def _launch(self, run: Object, document: DiscoveryRun | None, launch: Launch) -> Applied:
        if not run.finalized and not self._finalizers(run, [*run.finalizers, FINALIZER]):
            return Applied(status={})
        match launch.trigger:
            case "first":
                document = self._begin(run)
            case "intent":
                pass
            case "resume":
                document = self._resumed(run)
            case _:
                document = self._continued(run, launch)
        if document is None or document.attempt != launch.attempt:
            return Applied(status={})  # somebody else has moved it: look again
        return self._create_job(run, document)

    def _begin(self, run: Object) -> DiscoveryRun | None:
        found = self.projects.find(run)
        if found.project_id is None:
            return None
        if run.spec.project_ref is None:
            self.store.projects.upsert(inline_project(run))
        at, spec = clock.now(), run.spec
        budget = spec.budget
        limits = {
            "tokens": budget.max_tokens,
            "cost_usd": budget.max_cost_usd,
            "bytes": budget.max_bytes_scanned,
            "rows": budget.max_rows,
        }
        document = DiscoveryRun(
            id=run.run_id,
            project_id=found.project_id,
            attempt=1,
            started_at=at,
            updated_at=at,
            max_steps=spec.max_steps,
            min_steps=spec.min_steps,
            areas=spec.areas,
            effort=spec.effort,
            budget={name: float(limit) for name, limit in limits.items() if limit is not None},
            lifecycle=[RunLifecycleEvent(status=RunStatus.PENDING, at=at, reason="first", attempt=1)],
            origin=RunOrigin(cluster=self.cluster_id, namespace=run.namespace, name=run.name, uid=run.uid),
        )
        try:
            self.store.runs.create(document)
        except ConfigError:
            return self.store.runs.get(run.run_id)
        return document

    def _resumed(self, run: Object) -> DiscoveryRun | None:
        try:
            return resume_run(self.store, run.run_id, reason="resume")
        except ResumeRefused as refused:
            _logger.info("resume refused after all", reason=refused.reason)
            return None

    def _continued(self, run: Object, launch: Launch) -> DiscoveryRun | None:
        """The next attempt without a person's word; it may begin from nothing."""
        document = self.store.runs.resume(run.run_id, attempt=launch.attempt - 1, reason=launch.trigger)
        if document is not None:
            prefix = replayable(self.store.checkpoints.marks(run.run_id))
            self.store.checkpoints.refresh(run.run_id, up_to=len(prefix))
        return document

    def _create_job(self, run: Object, document: DiscoveryRun) -> Applied:
        replay = document.attempt > 1 and bool(replayable(self.store.checkpoints.marks(document.id)))
        said, key = self.refusals.said, (run.uid, document.attempt)
        try:
            body = build_job(
                run,
                project_id=document.project_id,
                attempt=document.attempt,
                replay=replay,
                settings=self.jobs,
            )
            made = self.cluster.create_job(body)
        except Conflict:
            return self._adopt(run, document, job_name(run.name, document.attempt))
        except (ConfigError, Forbidden) as error:
            said[key] = str(error)
            return Applied(status={}, again=False)
        said.pop(key, None)
        self.cache.saw_job(made)
        if document.attempt == 1:
            metrics.JOB_CREATED_SECONDS.observe(max(0.0, (clock.now() - document.started_at).total_seconds()))
        going = Going(phase="Queued" if job_seen(made, owner_uid=run.uid).suspended else "Starting")
        return Applied(status={"job": _reference(made)}, again=False, launched=(document, going))

    def _adopt(self, run: Object, document: DiscoveryRun, name: str) -> Applied:
        """A Job of the name exists: ours from before, or one that is going, or somebody else's, which the next look will judge."""
        there = self.cluster.job(run.namespace, name)
        if there is not None and job_seen(there, owner_uid=run.uid).ours:
            self.cache.saw_job(there)
            return Applied(status={"job": _reference(there)})
        self.refusals.said[run.uid, document.attempt] = TAKEN
        return Applied(status={}, again=there is not None)

    # ------------------------------------------------------------------------------------------------ ending

    def _stop(self, run: Object, document: DiscoveryRun | None, stop: Stop) -> Applied:
        active = document is not None and not document.status.is_terminal
        if document is not None and active:
            if stop.why == "suspend":
                self.store.runs.request_suspend(document.id, attempt=document.attempt)
            else:
                self.store.runs.request_cancel(document.id, reason=f"{stop.why} by the cluster")
        for body in self.cache.jobs(run.uid):
            job = job_seen(body, owner_uid=run.uid)
            if not job.deleting and (stop.why == "delete" or not job.over):
                self.cluster.delete_job(run.namespace, job.name, uid=job.uid)
        return Applied(status={}, again=active and stop.why != "suspend")

    def _finish(self, run: Object, document: DiscoveryRun | None, over: Over) -> None:
        """The verdict as a record, then on the run: a reader of the run finds the record."""
        if document is None:
            return
        failure = over.failure
        class_ = {"Suspended": "Suspended", "Evicted": "Evicted", "Superseded": "OwnershipLost"}.get(
            over.result, failure.class_.value if failure else "Unknown"
        )
        reason = failure.reason if failure else over.result
        message = (failure.message if failure else "").encode()[:_MESSAGE_BYTES].decode(errors="ignore")
        if over.row != 0:
            self.store.outcomes.put(
                RunOutcome.model_validate(
                    {
                        "run_id": document.id,
                        "attempt": document.attempt,
                        "owner": OPERATOR,
                        "exit_code": failure.exit_code if failure else None,
                        "class": class_,
                        "reason": reason,
                        "message": message,
                        "resumable": failure.resumable if failure else True,
                    }
                )
            )
        if not document.status.is_terminal:
            self.store.runs.fail_unowned(
                document.id,
                attempt=document.attempt,
                owner=document.owner,
                reason=f"{reason}: {message}" if message else reason,
            )
        self.cache.forget(run.uid)

    def _purge(self, run: Object) -> Applied:
        before = run.status.get("purge") or {}
        try:
            self.store.checkpoints.purge(run.run_id)
            if self.collections is not None:
                self.collections.drop(names.run(run.run_id))
        except AssayError as error:
            _logger.warning("purge failed", error=str(error))
            return Applied(
                status={"purge": {"attempts": int(before.get("attempts") or 0) + 1, "error": str(error)}},
                again=False,
            )
        return Applied(status={"purge": {"attempts": int(before.get("attempts") or 0) + 1}})

    def _release(self, run: Object) -> None:
        self._finalizers(run, [name for name in run.finalizers if name != FINALIZER])

    def _finalizers(self, run: Object, wanted: list[str]) -> bool:
        """Whether they are as wanted."""
        body = self.cache.run(run.key)
        if body is None:
            return False
        try:
            self.cache.saw_run(self.cluster.set_finalizers(body, wanted))
        except (Conflict, Gone):
            return False  # a newer version is on its way to the cache
        return True


def _reference(body: Mapping[str, Any]) -> dict[str, str]:
    return {"name": str(body["metadata"]["name"]), "uid": str(body["metadata"]["uid"])}
