"""The `DiscoveryRun` resource: names, spec and status as `crds/discoveryruns.yaml` has them. Pure.

A test holds the hand-written CRD to these models. The API server has checked a spec before it is read here, so a spec that
does not fit is a mistake in one of the two and a `ConfigError` of one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, Self
from uuid import UUID, uuid5

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from assay_core.errors import ConfigError

GROUP = "assay.dev"
VERSION = "v1alpha1"
KIND = "DiscoveryRun"
PLURAL = "discoveryruns"
API_VERSION = f"{GROUP}/{VERSION}"

RUN_LABEL = f"{GROUP}/run"
RUN_UID_LABEL = f"{GROUP}/run-uid"
ATTEMPT_LABEL = f"{GROUP}/attempt"
FINALIZER = f"{GROUP}/purge"
RESUME_ANNOTATION = f"{GROUP}/resume-requested-at"
CANCEL_ANNOTATION = f"{GROUP}/cancel-requested-at"
SKIP_PURGE_ANNOTATION = f"{GROUP}/skip-purge"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"

NAME_CHARS = 50
ATTEMPTS_KEPT = 10
_NAMESPACE = UUID("6b8f1a52-1c1e-5d53-9f0e-0f6b7f5f7a10")


def run_id_of(uid: str) -> str:
    """The run id of an object: a re-created object has another uid, and so starts clean."""
    return str(uuid5(_NAMESPACE, uid))


def job_name(name: str, attempt: int) -> str:
    return f"{name}-a{attempt}"


class Phase(StrEnum):
    """For display; nothing triggers on it."""

    PENDING = "Pending"
    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    RETRYING = "Retrying"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLING = "Cancelling"
    CANCELLED = "Cancelled"


class _Part(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )


class ProjectRef(_Part):
    name: str = Field(min_length=1, max_length=128)


class Budget(_Part):
    """What a run may spend: tokens, US dollars, bytes, rows, seconds; absent is no limit."""

    max_tokens: int | None = Field(default=None, ge=1)
    max_cost_usd: float | None = Field(default=None, gt=0, alias="maxCostUSD")
    max_bytes_scanned: int | None = Field(default=None, ge=1)
    max_rows: int | None = Field(default=None, ge=1)
    max_duration_seconds: int | None = Field(default=None, ge=60)


class SecretRef(_Part):
    """Keys of a Secret for the agent: all of them, or those `keys` names; as files of the secret provider, or by `env`."""

    name: str = Field(min_length=1, max_length=253)
    keys: list[str] = Field(default=[], max_length=64)
    env: bool = False
    optional: bool = False


class RetryPolicy(_Part):
    max_infra_retries: int = Field(default=0, ge=0, le=20)
    backoff_seconds: int = Field(default=30, ge=1, le=3600)
    max_backoff_seconds: int = Field(default=600, ge=1, le=86_400)


class Retention(_Part):
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0)
    on_delete: Literal["Purge", "Retain"] = "Purge"


class PodPatch(_Part):
    """What a user may say of the pod: no command, no security context, no host fields."""

    resources: dict[str, Any] | None = None
    node_selector: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = Field(default=[], max_length=16)
    affinity: dict[str, Any] | None = None
    topology_spread_constraints: list[dict[str, Any]] = Field(default=[], max_length=8)
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Spec(_Part):
    """What a run is asked to be."""

    project_ref: ProjectRef | None = None
    project: dict[str, Any] | None = None
    areas: list[str] = Field(default=[], max_length=32)
    max_steps: int | None = Field(default=None, ge=1, le=10_000)
    min_steps: int | None = Field(default=None, ge=0, le=10_000)
    effort: Literal["lower", "low", "medium", "high", "higher"] | None = None
    budget: Budget = Budget()
    image: str | None = Field(default=None, min_length=1, max_length=512)
    profile: str | None = Field(default=None, max_length=63)
    pod_patch: PodPatch = PodPatch()
    service_account_name: str | None = Field(default=None, max_length=253)
    image_pull_secrets: list[str] = Field(default=[], max_length=8)
    secret_refs: list[SecretRef] = Field(default=[], max_length=16)
    queue_name: str | None = Field(default=None, max_length=253)
    priority_class_name: str | None = Field(default=None, max_length=253)
    suspend: bool = False
    cancel: bool = False
    resume_nonce: int = Field(default=0, ge=0)
    retry: RetryPolicy = RetryPolicy()
    active_deadline_seconds: int | None = Field(default=None, ge=60)
    pending_deadline_seconds: int = Field(default=3600, ge=60)
    retention: Retention = Retention()


class Object(BaseModel):
    """One `DiscoveryRun` as the API server has it: identity, spec, and the status as it stands."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    name: str
    namespace: str
    uid: str
    generation: int
    resource_version: str
    created: str
    deleting: bool
    finalizers: tuple[str, ...]
    annotations: dict[str, str]
    spec: Spec
    status: dict[str, Any]

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        """Parse a body; a spec that the models do not know is a `ConfigError`."""
        metadata = body.get("metadata") or {}
        try:
            spec = Spec.model_validate(body.get("spec") or {})
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ConfigError(
                f"spec.{where}: {first['msg']}; does the CRD belong to this operator?"
            ) from None
        return cls(
            name=str(metadata["name"]),
            namespace=str(metadata["namespace"]),
            uid=str(metadata["uid"]),
            generation=int(metadata.get("generation") or 1),
            resource_version=str(metadata.get("resourceVersion") or ""),
            created=str(metadata.get("creationTimestamp") or ""),
            deleting=metadata.get("deletionTimestamp") is not None,
            finalizers=tuple(metadata.get("finalizers") or ()),
            annotations=dict(metadata.get("annotations") or {}),
            spec=spec,
            status=dict(body.get("status") or {}),
        )

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)

    @property
    def run_id(self) -> str:
        return run_id_of(self.uid)

    @property
    def resume_token(self) -> str | None:
        return self.annotations.get(RESUME_ANNOTATION)

    @property
    def asks_cancel(self) -> bool:
        return self.spec.cancel or CANCEL_ANNOTATION in self.annotations

    @property
    def asks_resume(self) -> bool:
        """A nonce above the observed one, or an annotation not answered yet; what it was created with asks for nothing."""
        if "observedResumeNonce" not in self.status:
            return False
        nonce = int(self.status["observedResumeNonce"])
        token = self.resume_token
        return self.spec.resume_nonce > nonce or (
            token is not None and token != self.status.get("lastHandledResumeRequest")
        )

    @property
    def finalized(self) -> bool:
        return FINALIZER in self.finalizers
