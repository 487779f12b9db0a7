"""The agent's environment, read once by the entry point. The rest of the agent receives values."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from assay_core.settings import Seconds, StoreSettings


class AgentSettings(StoreSettings):
    """Variables of the agent; names as the specification has them, ours with `ASSAY_`."""

    assay_owner: str | None = None
    assay_domain_packs: Path | None = None
    """A folder with further packs."""
    assay_enable_system_test: bool = False
    """Offer the pack `system-test`, which tries a warehouse and the way to it."""
    assay_warehouse_middleware: str = ""
    """Names of warehouse middleware, comma separated, the first is the innermost."""
    assay_termination_message: Path = Path("/dev/termination-log")
    """Where the one-line outcome goes, if that file is there."""
    assay_area_threads: int = Field(default=5, ge=1, le=32)
    blurb_workers: int = Field(default=8, ge=1, le=64)
    """Tables that an index samples and describes at once."""
    secret_provider: str = "environment"
    secret_namespace: str = Field(default="assay", pattern=r"^[A-Za-z0-9._-]{1,64}$")
    secret_encryption_key: str | None = Field(default=None, repr=False)
    secret_gcp_project_id: str = ""
    secret_gcp_endpoint: str = ""
    """Another address of Google's Secret Manager than the public one."""
    secret_aws_region: str = ""
    embedding_provider: str = "minilm"
    embedding_model: str = ""
    embedding_base_url: str = ""
    embedding_dimensions: int | None = Field(default=None, ge=1, le=65_536)
    exploration_max_output_tokens: int = Field(default=4_096, ge=256, le=200_000)
    analysis_min_output_tokens: int = Field(default=8_192, ge=256, le=200_000)
    analysis_parse_max_retries: int = Field(default=1, ge=0, le=5)
    recommendation_parse_max_retries: int = Field(default=1, ge=0, le=5)
    warehouse_query_timeout: Seconds = 300.0
    llm_timeout: Seconds = 300.0
    llm_retry_max_attempts: int = Field(default=3, ge=1, le=20)
    llm_retry_base_backoff: Seconds = 5.0
    llm_request_delay_ms: int = Field(default=0, ge=0, le=60_000)
    log_level: str = "info"

    def embedding_config(self) -> dict[str, object]:
        """The connection of an embedder that the environment names."""
        given = {"base_url": self.embedding_base_url or None, "dimensions": self.embedding_dimensions}
        return {name: value for name, value in given.items() if value is not None}

    def secret_config(self) -> dict[str, str]:
        """Where the secret managers of clouds are asked."""
        given = {
            "gcp_project_id": self.secret_gcp_project_id,
            "gcp_endpoint": self.secret_gcp_endpoint,
            "aws_region": self.secret_aws_region,
        }
        return {name: value for name, value in given.items() if value}

    def middleware_names(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.assay_warehouse_middleware.split(",") if name.strip())
