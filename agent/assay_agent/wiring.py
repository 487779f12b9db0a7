"""Put a run together: project → datasources, models, embedder, pack → context. The one place that loads adapters.

Called by the entry point after the run is claimed, and piecewise by `assay test-connection` and `assay estimate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import cast

from assay_agent import plugins
from assay_agent.adapters.environment_secrets import WithEnvironment
from assay_agent.adapters.environment_secrets import open_provider as open_environment
from assay_agent.adapters.least_privilege import judge
from assay_agent.adapters.mongodb_secrets import MongodbSecrets
from assay_agent.budgets import Amounts, Budget, BytesMeter, Ledger
from assay_agent.context import Deadline, Progress, RunContext, StopSignal
from assay_agent.indexing.describer import Describer, ModelDescriber, RuleDescriber
from assay_agent.indexing.job import IndexJob, sample_limits
from assay_agent.indexing.scope import datasources_of, warehouse_hash
from assay_agent.llm.layers import DEFAULT as DEFAULT_LAYER
from assay_agent.llm.layers import Choice, choices_of, description_choice, secret_keys
from assay_agent.llm.roles import RoleModels
from assay_agent.packs import Shelf, category_of, check_profile, selected_areas, templates
from assay_agent.policy import Policy
from assay_agent.ports import (
    Embedder,
    EmbedderSettings,
    Inspectable,
    LanguageModel,
    Meter,
    MiddlewareContext,
    ModelSettings,
    SecretProvider,
    SecretSettings,
    VectorIndex,
    Warehouse,
    WarehouseSettings,
)
from assay_agent.settings import AgentSettings
from assay_agent.sql.confined import ConfinedWarehouse, TenantSettings
from assay_core import clock, log
from assay_core.errors import ConfigError
from assay_core.model.project import Datasource, EmbeddingConfig, Project, tenant_of
from assay_core.model.run import CredentialRecord, DiscoveryRun, ModelUsage
from assay_core.store.client import Store
from assay_core.store.fence import FencedRun
from assay_core.store.schema import IndexProgress

__all__ = [
    "IndexOptions",
    "RunOptions",
    "Wiring",
    "check_choices",
    "checked_project",
    "findings_dimensions",
    "open_embedder",
    "open_models",
    "open_secrets",
    "open_shelf",
    "open_stored_secrets",
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
    limits: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """What the command line decides about an index."""

    index_id: str
    refresh: bool = False
    limits: Amounts = field(default_factory=dict)


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
        pack = open_shelf(self.settings, self.store).load(project.domain)
        areas = selected_areas(pack, project, options.areas)
        check_profile(pack, category_of(pack, project), project)
        tenant = _same_tenant(run, project)
        model = open_models(project, self.secrets, self.settings)
        ledger = Ledger(limits=options.limits, spent=_spent_before(run))
        model.go_on(run.usage, ledger)
        credentials: list[CredentialRecord] = []
        warehouses = open_warehouses(
            project,
            self.secrets,
            middleware=self.settings.middleware_names(),
            record=credentials.append,
            labels={"run": str(run.id), "attempt": str(fenced.fence.attempt), "project": project.id},
            meter=BytesMeter(ledger=ledger),
        )
        fenced.mark(set={"credentials": credentials, "tenant": tenant})
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
            tenant=tenant,
            ledger=ledger,
            fenced=fenced,
            store=self.store,
            vectors=self.vectors,
            embedder=self.embedder,
            model=model,
            warehouses=warehouses,
            policy=self.policy,
            progress=self.progress,
            stop=self.stop,
            deadline=Deadline(limit_s=_time_limit_s(self.policy, options.limits, run)),
        )

    def index_job(self, project: Project, options: IndexOptions, *, resources: ExitStack) -> IndexJob:
        """An index of a project's tables; what must be closed is given to `resources`."""
        describer, usage = self._describer(project, options)
        warehouses = open_warehouses(
            project,
            self.secrets,
            middleware=self.settings.middleware_names(),
            labels={"index": options.index_id, "project": project.id},
        )
        for warehouse in warehouses.values():
            resources.callback(warehouse.close)
        limit_s = options.limits.get(Budget.SECONDS, self.policy.run.max_duration_s)
        deadline = Deadline(limit_s=limit_s)

        def check() -> None:
            self.stop.check()
            deadline.check()

        return IndexJob(
            project=project,
            index_id=options.index_id,
            warehouse_hash=warehouse_hash(project),
            warehouses=warehouses,
            store=self.store,
            vectors=self.vectors,
            embedder=self.embedder,
            describer=describer,
            policy=self.policy.index,
            limits=sample_limits(self.policy),
            check=check,
            tell=self._tell,
            note=self.progress.note,
            usage=usage,
            needs_vectors=True,
            refresh=options.refresh,
        )

    def _describer(
        self, project: Project, options: IndexOptions
    ) -> tuple[Describer, Callable[[], Sequence[ModelUsage]]]:
        """The model of `table_descriptions`, else the default one, with what the index spent before; else rules."""
        choice = description_choice(project, inherited=True)
        if choice is None:
            return RuleDescriber(policy=self.policy.index), list
        model = RoleModels(_open_model(choice, project, self.secrets, self.settings))
        before = self.store.schema.progress(project.id)
        spent = before.usage if before is not None and before.run_id == options.index_id else []
        model.go_on(spent, Ledger(limits=options.limits, spent=_model_spending(spent)))
        return ModelDescriber(model=model, by=choice.name, policy=self.policy.index), model.usage

    def _tell(self, progress: IndexProgress) -> None:
        percent = 100 * progress.tables_seen // max(progress.tables_total, 1)
        self.progress.phase(
            "index",
            percent=percent,
            detail=f"Indexing tables: {progress.tables_seen:,} of {progress.tables_total:,}",
        )


def _same_tenant(run: DiscoveryRun, project: Project) -> str:
    """The tenant of the run; raises ConfigError where an earlier attempt saw another's rows, which its checkpoints hold."""
    tenant = tenant_of(datasources_of(project))
    if run.tenant is not None and run.tenant != tenant:
        raise ConfigError(
            f"run {run.id[:8]} began with another tenant filter than project {project.id} has now; start a new run"
        )
    return tenant


def _spent_before(run: DiscoveryRun) -> dict[Budget, float]:
    """What earlier attempts of the run have spent; their limits hold for the run, not for each attempt."""
    return {
        **_model_spending(run.usage),
        Budget.ROWS: float(run.rows_read),
        Budget.BYTES: float(run.bytes_scanned),
    }


def _model_spending(spent: Sequence[ModelUsage]) -> dict[Budget, float]:
    return {
        Budget.TOKENS: sum((usage.input_tokens or 0) + (usage.output_tokens or 0) for usage in spent),
        Budget.COST_USD: sum(usage.cost_usd or 0.0 for usage in spent),
    }


def _time_limit_s(policy: Policy, limits: Amounts, run: DiscoveryRun) -> float:
    """Seconds this attempt may take: what the user's budget leaves, within DISCOVERY_MAX_DURATION; 0 is no limit."""
    asked = limits.get(Budget.SECONDS)
    if asked is None:
        return policy.run.max_duration_s
    left = max(asked - run.active_ms / 1000, 1.0)
    return min(left, policy.run.max_duration_s) if policy.run.max_duration_s else left


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
        index=replace(default.index, threads=settings.blurb_workers),
        checkpoint=replace(default.checkpoint, retention_s=settings.discovery_checkpoint_retention),
    )


def open_shelf(settings: AgentSettings, store: Store | None) -> Shelf:
    """Every place packs are kept; without a store, the folders."""
    folders = Shelf(extra=settings.assay_domain_packs, system_test=settings.assay_enable_system_test)
    if store is None:
        return folders
    return replace(folders, imported=store.packs.get, all_imported=store.packs.list)


def checked_project(project: Project, shelf: Shelf) -> Project:
    """The project with its category said, once everything in it that needs no connection is known to be right."""
    category = _checked_category(project, shelf, ())
    sources = datasources_of(project)
    for position, source in enumerate(sources):
        if source.id in {other.id for other in sources[:position]}:
            raise ConfigError(f"datasources: the id {source.id!r} is used twice")
        _refuse_secrets(source.config, where=f"datasource {source.id}")
        plugins.load("warehouses", source.provider)
    for where, config in _connections(project):
        _refuse_secrets(config, where=where)
    return project.model_copy(update={"category": category})


def check_choices(project: Project, shelf: Shelf, areas: Sequence[str]) -> None:
    """Raise ConfigError where the pack, the category, an area or a model's provider that a run names is not there."""
    _checked_category(project, shelf, areas)
    for choice in choices_of(project).values():
        plugins.load("llms", choice.provider)


def _checked_category(project: Project, shelf: Shelf, areas: Sequence[str]) -> str:
    pack = shelf.load(project.domain)
    category = category_of(pack, project)
    selected_areas(pack, project, areas)
    check_profile(pack, category, project)
    return category


def _connections(project: Project) -> list[tuple[str, Mapping[str, object]]]:
    """Every other `config` of a project, by where it stands."""
    found = [(f"llm_providers {entry.id}", entry.config) for entry in project.llm_providers]
    found += [(f"layer_models {layer}", choice.config) for layer, choice in project.layer_models.items()]
    single = {"llm": project.llm, "blurb_llm": project.blurb_llm, "embedding": project.embedding}
    return found + [(name, part.config) for name, part in single.items() if part is not None]


def open_secrets(settings: AgentSettings, store: Store | None = None) -> SecretProvider:
    """The installation's secrets; what it does not hold is looked for in the environment."""
    given = SecretSettings(
        namespace=settings.secret_namespace,
        config=settings.secret_config(),
        encryption_key=settings.secret_encryption_key,
        store=store,
    )
    provider = cast("SecretProvider", plugins.load("secret_providers", settings.secret_provider)(given))
    return provider if settings.secret_provider == "environment" else WithEnvironment(provider)


def open_stored_secrets(settings: AgentSettings, store: Store) -> MongodbSecrets:
    """The secrets kept in the document store, for whoever writes them."""
    return MongodbSecrets(
        store, namespace=settings.secret_namespace, encryption_key=settings.secret_encryption_key or ""
    )


_LOCAL = frozenset({"minilm", "hashing"})
"""Embedders that ask nobody, and need no key."""
_EMBEDDING = "embedding-api-key"


def open_embedder(
    settings: AgentSettings, project: Project | None = None, secrets: SecretProvider | None = None
) -> Embedder:
    """The project's embedder, else the installation's. Without a project its key comes from the environment."""
    embedding = project.embedding if project and project.embedding else EmbeddingConfig()
    provider = embedding.provider or settings.embedding_provider
    factory = plugins.load("embedders", provider)
    asked = secrets or open_environment()
    found = (
        None if provider in _LOCAL else asked.get(project_id=project.id if project else "", key=_EMBEDDING)
    )
    return cast(
        "Embedder",
        factory(
            EmbedderSettings(
                provider=provider,
                model=embedding.model or settings.embedding_model,
                config=embedding.config or settings.embedding_config(),
                secret=found,
                secret_key=_EMBEDDING,
                timeout_s=settings.llm_timeout,
                tries=settings.llm_retry_max_attempts,
                backoff_s=settings.llm_retry_base_backoff,
            )
        ),
    )


def findings_dimensions(settings: AgentSettings) -> int | None:
    """Dimensions of the installation's embedder. None where only a project's key can ask for them: the run makes the collection."""
    away = settings.secret_provider != "environment" and settings.embedding_provider not in _LOCAL
    if away and open_environment().get(project_id="", key=_EMBEDDING) is None:
        return settings.embedding_dimensions
    return open_embedder(settings).dimensions


def open_models(project: Project, secrets: SecretProvider, settings: AgentSettings) -> RoleModels:
    """The project's model for every layer; layers that choose the same share one. Without any, the scout."""
    choices = choices_of(project)
    opened: list[tuple[Choice, LanguageModel]] = []
    by_layer: dict[str, LanguageModel] = {}
    for layer, choice in choices.items():
        known = next((model for other, model in opened if other == choice), None)
        by_layer[layer] = known or _open_model(choice, project, secrets, settings)
        opened.append((choice, by_layer[layer]))
    return RoleModels(by_layer.pop(DEFAULT_LAYER), by_layer)


def _open_model(
    choice: Choice, project: Project, secrets: SecretProvider, settings: AgentSettings
) -> LanguageModel:
    factory = plugins.load("llms", choice.provider)
    _refuse_secrets(choice.config, where=f"model connection {choice.entry}")
    keys = secret_keys(choice)
    found = (secrets.get(project_id=project.id, key=key) for key in keys)
    return cast(
        "LanguageModel",
        factory(
            ModelSettings(
                provider=choice.provider,
                model=choice.model,
                config=choice.config,
                secret=next((secret for secret in found if secret), None),
                secret_key=keys[0],
                timeout_s=settings.llm_timeout,
                tries=settings.llm_retry_max_attempts,
                backoff_s=settings.llm_retry_base_backoff,
                request_delay_s=settings.llm_request_delay_ms / 1000,
            )
        ),
    )


def open_warehouses(
    project: Project,
    secrets: SecretProvider,
    *,
    middleware: Sequence[str] = (),
    record: Callable[[CredentialRecord], None] | None = None,
    labels: Mapping[str, str] | None = None,
    meter: Meter | None = None,
) -> dict[str, Warehouse]:
    """Every datasource of the project by id, wrapped by the named middleware, the first named innermost.

    A credential that could write is refused; `record` gets what was found of each one that may be used. `labels` say to a
    source that keeps such a note for whom its statements run; `meter` counts what it bills for questions of its own.
    """
    opened: dict[str, Warehouse] = {}
    try:
        for source in datasources_of(project):
            if source.id in opened:
                raise ConfigError(f"datasources: the id {source.id!r} is used twice")
            warehouse = opened[source.id] = _open_warehouse(source, project, secrets, labels or {}, meter)
            found = _proven(warehouse, source)
            if record is not None:
                record(found)
            warehouse = opened[source.id] = _wrapped(warehouse, project, middleware)
            opened[source.id] = _confined(warehouse, source, meter)
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


def _confined(warehouse: Warehouse, source: Datasource, meter: Meter | None) -> Warehouse:
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
        meter=meter,
    )


def _open_warehouse(
    source: Datasource,
    project: Project,
    secrets: SecretProvider,
    labels: Mapping[str, str],
    meter: Meter | None,
) -> Warehouse:
    _refuse_secrets(source.config, where=f"datasource {source.id}")
    suffix = "" if source.id == "default" else f"-{source.id}"
    secret = secrets.get(project_id=project.id, key=f"warehouse-credentials{suffix}")
    settings = WarehouseSettings(
        datasource_id=source.id,
        provider=source.provider,
        datasets=tuple(source.datasets),
        config={
            name: value
            for name, value in (("project_id", source.project_id), ("location", source.location))
            if value
        }
        | source.config,
        labels=labels,
        meter=meter,
        secret=secret,
    )
    return cast("Warehouse", plugins.load("warehouses", source.provider)(settings))


def _refuse_secrets(config: Mapping[str, object], *, where: str) -> None:
    """A secret in a document would be stored and shown; it comes by reference only."""
    for key in config:
        if key.lower() in _PASSWORD_KEYS:
            by = "warehouse-credentials" if where.startswith("datasource") else "llm-api-key"
            raise ConfigError(f"{where}: config.{key} would store a secret; give it as the secret {by}")
