"""The operator's environment, read once at the start. The rest of the operator receives values."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from assay_core.settings import Seconds, Settings, StoreSettings
from assay_operator.job import JobSettings
from assay_operator.resource import PodPatch


def _split(value: Any) -> Any:
    return (
        tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value
    )


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""Names, separated by commas."""


class DrainSettings(Settings):
    """Variables of `assay-operator drain`."""

    watch_namespace: str | None = None
    operator_namespace: str | None = None
    operator_deployment: str | None = None
    """The Deployment that is scaled to nothing first."""


class OperatorSettings(StoreSettings):
    """Variables of the operator. With `WATCH_NAMESPACE` it sees that namespace and nothing else."""

    watch_namespace: str | None = None
    cluster_id: str | None = None
    """Tells clusters apart that share a MongoDB: the uid of kube-system, which is asked for where this is not set."""
    agent_image: str = Field(min_length=1)
    agent_image_pull_policy: str = Field(default="IfNotPresent", pattern="^(Always|IfNotPresent|Never)$")
    agent_environment_secrets: Names = ()
    agent_environment_config: str | None = None
    agent_service_account: str | None = None
    agent_requests: dict[str, str] = {}
    agent_limits: dict[str, str] = {}
    agent_queue_name: str | None = None
    agent_profiles: dict[str, PodPatch] = {}
    """JSON: name → pod settings as in `spec.podPatch`."""
    operator_workers: int = Field(default=8, ge=1, le=64)
    operator_port: int = Field(default=8080, ge=0, le=65_535)
    """Metrics and health are served here."""
    sweep_interval: Seconds = 5.0
    orphan_sweep_interval: Seconds = 600.0
    log_level: str = "info"

    def job_settings(self) -> JobSettings:
        return JobSettings(
            image=self.agent_image,
            image_pull_policy=self.agent_image_pull_policy,
            environment_secrets=self.agent_environment_secrets,
            environment_config=self.agent_environment_config,
            service_account=self.agent_service_account,
            max_duration_s=int(self.discovery_max_duration),
            retention_s=int(self.discovery_checkpoint_retention),
            requests=self.agent_requests,
            limits=self.agent_limits,
            queue_name=self.agent_queue_name,
            profiles=self.agent_profiles,
        )
