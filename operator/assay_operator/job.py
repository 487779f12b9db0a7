"""From a run and an attempt to the Job that carries it out. Pure.

One Job per attempt with a name that follows from both, one pod, no replacement inside the attempt: what happens next is decided
by the operator, from what the pod left behind. No secret value stands in a Job, only names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay_core.errors import ConfigError
from assay_operator.endings import CONTRACT, OWNERSHIP_LOST
from assay_operator.resource import (
    API_VERSION,
    ATTEMPT_LABEL,
    KIND,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    RUN_LABEL,
    RUN_UID_LABEL,
    Object,
    PodPatch,
    SecretRef,
    Spec,
    job_name,
)
from assay_operator.seen import AGENT_CONTAINER

SECRETS_DIR = "/var/run/assay/secrets"
SAVE_S = 15 * 60
"""Seconds after DISCOVERY_MAX_DURATION within which an agent saves what it has."""
GRACE_S = 30
"""Seconds between SIGTERM and SIGKILL; the agent ends within 25."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """What the installation gives to every Job; durations in seconds."""

    image: str
    image_pull_policy: str = "IfNotPresent"
    environment_secrets: tuple[str, ...] = ()
    """Secrets in the run's namespace whose keys are variables of the agent: MONGODB_URI and the like."""
    environment_config: str | None = None
    """A ConfigMap of the same kind."""
    service_account: str | None = None
    queue_name: str | None = None
    """The queue of a run that names none."""
    profiles: Mapping[str, PodPatch] = field(default_factory=dict)
    """Pod settings that a run chooses by name; what the run says itself goes before."""
    max_duration_s: int = 24 * 3600
    retention_s: int = 48 * 3600
    scratch_bytes: int = 2 * 2**30
    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


def build_job(
    run: Object, *, project_id: str, attempt: int, replay: bool, settings: JobSettings
) -> dict[str, Any]:
    """The Job of one attempt; `replay` says that there is a prefix to continue from. An unknown profile is a `ConfigError`."""
    spec = run.spec
    patch = _pod_patch(spec, settings)
    queue_name = spec.queue_name or settings.queue_name
    labels = {
        "app.kubernetes.io/name": "assay-agent",
        "app.kubernetes.io/managed-by": "assay-operator",
        RUN_LABEL: run.name,
        RUN_UID_LABEL: run.uid,
        ATTEMPT_LABEL: str(attempt),
    }
    queue = {QUEUE_LABEL: queue_name} if queue_name else {}
    priority = {PRIORITY_LABEL: spec.priority_class_name} if queue and spec.priority_class_name else {}
    duration_s = spec.budget.max_duration_seconds or settings.max_duration_s
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(run.name, attempt),
            "namespace": run.namespace,
            "labels": {**labels, **queue, **priority},
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": KIND,
                    "name": run.name,
                    "uid": run.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": _failure_policy(),
            # The Job's own deadline counts the time until the pod runs as well.
            "activeDeadlineSeconds": (spec.active_deadline_seconds or duration_s + SAVE_S)
            + spec.pending_deadline_seconds,
            **({"suspend": True} if queue else {}),
            "template": {
                "metadata": {
                    "labels": {**patch.labels, **labels},
                    "annotations": patch.annotations,
                },
                "spec": _pod(
                    run,
                    settings,
                    patch,
                    arguments=_arguments(spec, project_id, run.run_id, attempt, replay=replay),
                    duration_s=duration_s,
                ),
            },
        },
    }


def _pod_patch(spec: Spec, settings: JobSettings) -> PodPatch:
    """The named profile with what the run says itself put over it, field by field."""
    if spec.profile is None:
        return spec.pod_patch
    profile = settings.profiles.get(spec.profile)
    if profile is None:
        known = ", ".join(sorted(settings.profiles)) or "none"
        raise ConfigError(f"spec.profile: this installation has no profile {spec.profile!r}; it has: {known}")
    said = spec.pod_patch.model_dump(exclude_defaults=True)
    for name in ("labels", "annotations"):
        said[name] = {**getattr(profile, name), **said.get(name, {})}
    return profile.model_copy(update=said)


def _failure_policy() -> dict[str, Any]:
    """Fail the Job at once on a disruption and on every code of the contract. Never 143, which follows a stop of any kind."""
    codes = sorted({*CONTRACT, OWNERSHIP_LOST})
    return {
        "rules": [
            {
                "action": "FailJob",
                "onExitCodes": {"containerName": AGENT_CONTAINER, "operator": "In", "values": codes},
            },
            {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        ]
    }


def _arguments(spec: Spec, project_id: str, run_id: str, attempt: int, *, replay: bool) -> list[str]:
    budget = spec.budget
    said: list[tuple[str, object]] = [
        ("--project-id", project_id),
        ("--run-id", run_id),
        ("--attempt", attempt),
        ("--max-steps", spec.max_steps),
        ("--min-steps", spec.min_steps),
        ("--areas", ",".join(spec.areas) or None),
        ("--effort", spec.effort),
        ("--max-tokens", budget.max_tokens),
        ("--max-cost-usd", budget.max_cost_usd),
        ("--max-bytes-scanned", budget.max_bytes_scanned),
        ("--max-rows", budget.max_rows),
    ]
    return [text for flag, value in said if value is not None for text in (flag, str(value))] + (
        ["--resume"] if replay else []
    )


def _pod(
    run: Object, settings: JobSettings, patch: PodPatch, *, arguments: list[str], duration_s: int
) -> dict[str, Any]:
    spec = run.spec
    service_account = spec.service_account_name or settings.service_account
    mounted = [reference for reference in spec.secret_refs if not reference.env]
    resources = patch.resources or {
        name: amounts
        for name, amounts in (("requests", settings.requests), ("limits", settings.limits))
        if amounts
    }
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": AGENT_CONTAINER,
                "image": spec.image or settings.image,
                "imagePullPolicy": settings.image_pull_policy,
                "args": arguments,
                "env": _environment(settings, duration_s=duration_s, secrets=bool(mounted)),
                "envFrom": _environment_sources(spec, settings),
                "resources": resources,
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "terminationMessagePolicy": "File",
                "volumeMounts": [
                    {"name": "scratch", "mountPath": "/tmp"},
                    *([{"name": "secrets", "mountPath": SECRETS_DIR, "readOnly": True}] if mounted else []),
                ],
            }
        ],
        "volumes": [
            {"name": "scratch", "emptyDir": {"sizeLimit": str(settings.scratch_bytes)}},
            *([_secrets_volume(mounted)] if mounted else []),
        ],
    }
    given = {
        "serviceAccountName": service_account,
        "imagePullSecrets": [{"name": name} for name in spec.image_pull_secrets],
        "priorityClassName": spec.priority_class_name,
        "nodeSelector": patch.node_selector,
        "tolerations": patch.tolerations,
        "affinity": patch.affinity,
        "topologySpreadConstraints": patch.topology_spread_constraints,
    }
    return pod | {name: value for name, value in given.items() if value}


def _environment(settings: JobSettings, *, duration_s: int, secrets: bool) -> list[dict[str, Any]]:
    said: dict[str, str] = {
        "HOME": "/tmp",
        "DISCOVERY_MAX_DURATION": f"{duration_s}s",
        "DISCOVERY_CHECKPOINT_RETENTION": f"{settings.retention_s}s",
        **({"SECRETS_DIR": SECRETS_DIR} if secrets else {}),
    }
    return [
        *({"name": name, "value": value} for name, value in said.items()),
        {"name": "ASSAY_OWNER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
    ]


def _environment_sources(spec: Spec, settings: JobSettings) -> list[dict[str, Any]]:
    sources: list[dict[str, Any]] = []
    if settings.environment_config:
        sources.append({"configMapRef": {"name": settings.environment_config}})
    sources += [{"secretRef": {"name": name}} for name in settings.environment_secrets]
    sources += [
        {"secretRef": {"name": reference.name, "optional": reference.optional}}
        for reference in spec.secret_refs
        if reference.env
    ]
    return sources


def _secrets_volume(references: list[SecretRef]) -> dict[str, Any]:
    return {
        "name": "secrets",
        "projected": {
            "defaultMode": 0o444,
            "sources": [
                {
                    "secret": {
                        "name": reference.name,
                        "optional": reference.optional,
                        **(
                            {"items": [{"key": key, "path": key} for key in reference.keys]}
                            if reference.keys
                            else {}
                        ),
                    }
                }
                for reference in references
            ],
        },
    }
