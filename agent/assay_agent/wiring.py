"""Put a run together: project → datasources, models, embedder, pack → context. The one place that loads adapters.

Called by the entry point after the run is claimed, and piecewise by `assay test-connection` and `assay estimate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import cast

from assay_agent import plugins
from assay_agent.adapters.least_privilege import judge
from assay_agent.adapters.nycflights import load_nycflights
from assay_agent.adapters.sources import open_source
from assay_agent.context import Deadline, Progress, RunContext, StopSignal
from assay_agent.discovery.schema import datasources_of
from assay_agent.llm.roles import RoleModels
from assay_agent.packs import load_pack, selected_areas, templates
from assay_agent.policy import Policy
from assay_agent.ports import (
    Embedder,
    Inspectable,
    LanguageModel,
    MiddlewareContext,
    ModelSettings,
    SecretProvider,
    VectorIndex,
    Warehouse,
    WarehouseSettings,
)
from assay_agent.settings import AgentSettings
from assay_agent.sql.confined import ConfinedWarehouse, TenantSettings
from assay_core import clock, log
from assay_core.errors import ConfigError
from assay_core.model.project import Datasource, LLMConfig, Project
from assay_core.model.run import CredentialRecord, DiscoveryRun
from assay_core.store.client import Store
from assay_core.store.fence import FencedRun

__all__ = [
    "RunOptions",
    "Wiring",
    "load_nycflights",
    "open_embedder",
    "open_models",
    "open_secrets",
    "open_source",
    "open_warehouses",
    "policy_of",
]

_logger = log.logger(__name__)
_PASSWORD_KEYS = ("password", "passwd", "pwd", "secret", "token", "api_key", "private_key")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line decides."""

    areas: tuple[str, ...]
    max_steps: int
    min_steps: int
    resume: bool
    require_index: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What the entry point holds before a run is put together."""

    settings: AgentSettings
    policy: Policy
    store: Store
    vectors: VectorIndex
    secrets: SecretProvider
    embedder: Embedder
    progress: Progress
    stop: StopSignal

    def context(
        self,
        run: DiscoveryRun,
        project: Project,
        fenced: FencedRun,
        options: RunOptions,
        *,
        resources: ExitStack,
    ) -> RunContext:
        """The context of a run; what must be closed is given to `resources`."""
        pack = load_pack(project.domain, extra=self.settings.assay_domain_packs)
        areas = selected_areas(pack, project, options.areas)
        model = open_models(project, self.secrets)
        credentials: list[CredentialRecord] = []
        warehouses = open_warehouses(
            project, self.secrets, middleware=self.settings.middleware_names(), record=credentials.append
        )
        fenced.mark(set={"credentials": credentials})
        for warehouse in warehouses.values():
            resources.callback(warehouse.close)
        return RunContext(
            run=run,
            project=project,
            areas=areas,
            templates=templates(pack, project),
            attempt=fenced.fence.attempt,
            max_steps=options.max_steps,
            min_steps=options.min_steps,
            resume=options.resume,
            require_index=options.require_index,
            fenced=fenced,
            store=self.store,
            vectors=self.vectors,
            embedder=self.embedder,
            model=model,
            warehouses=warehouses,
            policy=self.policy,
            progress=self.progress,
            stop=self.stop,
            deadline=Deadline(limit_s=self.policy.run.max_duration_s),
        )


def policy_of(settings: AgentSettings) -> Policy:
    """The default policy with what the environment changes."""
    default = Policy()
    output = settings.exploration_max_output_tokens
    return replace(
        default,
        query=replace(default.query, timeout_s=settings.warehouse_query_timeout),
        exploration=replace(
            default.exploration,
            output_tokens=output,
            output_tokens_ceiling=max(output, default.exploration.output_tokens_ceiling),
        ),
        analysis=replace(
            default.analysis,
            output_tokens=settings.analysis_min_output_tokens,
            parse_retries=settings.analysis_parse_max_retries,
            threads=settings.assay_area_threads,
        ),
        recommendation=replace(
            default.recommendation, parse_retries=settings.recommendation_parse_max_retries
        ),
        run=replace(default.run, max_duration_s=settings.discovery_max_duration),
        checkpoint=replace(default.checkpoint, retention_s=settings.discovery_checkpoint_retention),
    )


def open_secrets(settings: AgentSettings) -> SecretProvider:
    return cast("SecretProvider", plugins.load("secret_providers", settings.secret_provider)())


def open_embedder(settings: AgentSettings, project: Project | None) -> Embedder:
    configured = project.embedding.provider if project and project.embedding else ""
    return cast("Embedder", plugins.load("embedders", configured or settings.embedding_provider)())


def open_models(project: Project, secrets: SecretProvider) -> RoleModels:
    """The project's model for every layer. Without any, the scout: the analyst that needs none."""
    config = project.llm or LLMConfig(provider="scout", model="")
    return RoleModels(_open_model(config, project, secrets))


def _open_model(config: LLMConfig, project: Project, secrets: SecretProvider) -> LanguageModel:
    factory = plugins.load("llms", config.provider)
    settings = ModelSettings(
        provider=config.provider,
        model=config.model,
        config=config.config,
        secret=secrets.get(project_id=project.id, key="llm-api-key"),
    )
    return cast("LanguageModel", factory(settings))


def open_warehouses(
    project: Project,
    secrets: SecretProvider,
    *,
    middleware: Sequence[str] = (),
    record: Callable[[CredentialRecord], None] | None = None,
) -> dict[str, Warehouse]:
    """Every datasource of the project by id, wrapped by the named middleware, the first named innermost.

    A credential that could write is refused; `record` gets what was found of each one that may be used.
    """
    opened: dict[str, Warehouse] = {}
    try:
        for source in datasources_of(project):
            if source.id in opened:
                raise ConfigError(f"datasources: the id {source.id!r} is used twice")
            warehouse = opened[source.id] = _open_warehouse(source, project, secrets)
            found = _proven(warehouse, source)
            if record is not None:
                record(found)
            warehouse = opened[source.id] = _wrapped(warehouse, project, middleware)
            opened[source.id] = _confined(warehouse, source)
    except BaseException:
        for warehouse in opened.values():
            warehouse.close()
        raise
    return opened


def _wrapped(warehouse: Warehouse, project: Project, middleware: Sequence[str]) -> Warehouse:
    for name in middleware:
        warehouse = plugins.load("warehouse_middleware", name)(
            warehouse, MiddlewareContext(project_id=project.id)
        )
    return warehouse


def _proven(warehouse: Warehouse, source: Datasource) -> CredentialRecord:
    """What the credential may do, as far as the source can say; raises ConfigError when that is too much."""
    found = judge(
        warehouse.grants() if isinstance(warehouse, Inspectable) else None,
        datasource_id=source.id,
        allowed=source.allow_writable_credential,
        checked_at=clock.now(),
    )
    if found.read_only is None:
        _logger.warning("least privilege not proven: the warehouse cannot say", datasource=source.id)
    elif found.allowed_by_name:
        _logger.warning("a credential that could write is used", datasource=source.id, user=found.user)
    return found


def _confined(warehouse: Warehouse, source: Datasource) -> Warehouse:
    """The warehouse as one tenant sees it, where the datasource has a filter."""
    if not source.filter_field and not source.filter_value:
        if source.tenant_columns or source.shared_tables:
            raise ConfigError(
                f"datasource {source.id}: tenant_columns and shared_tables need filter_field and filter_value"
            )
        return warehouse
    if not source.filter_field or not source.filter_value:
        missing = "filter_value" if source.filter_field else "filter_field"
        raise ConfigError(
            f"datasource {source.id}: {missing} is not set; a tenant filter needs filter_field and filter_value"
        )
    return ConfinedWarehouse(
        warehouse,
        TenantSettings(
            column=source.filter_field,
            value=source.filter_value,
            columns=source.tenant_columns,
            shared=frozenset(source.shared_tables),
            catalog=source.project_id,
        ),
    )


def _open_warehouse(source: Datasource, project: Project, secrets: SecretProvider) -> Warehouse:
    _refuse_secrets(source.config, where=f"datasource {source.id}")
    suffix = "" if source.id == "default" else f"-{source.id}"
    secret = secrets.get(project_id=project.id, key=f"warehouse-credentials{suffix}")
    settings = WarehouseSettings(
        datasource_id=source.id,
        provider=source.provider,
        datasets=tuple(source.datasets),
        config=source.config,
        secret=secret,
    )
    return cast("Warehouse", plugins.load("warehouses", source.provider)(settings))


def _refuse_secrets(config: Mapping[str, object], *, where: str) -> None:
    """A secret in a document would be stored and shown; it comes by reference only."""
    for key in config:
        if key.lower() in _PASSWORD_KEYS:
            raise ConfigError(
                f"{where}: config.{key} would store a secret; give it as the secret warehouse-credentials"
            )
