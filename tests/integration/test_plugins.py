"""Custom builds: middleware by name and order, registered models, and errors that name the setting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_agent import plugins
from assay_agent.settings import AgentSettings
from assay_core.errors import ConfigError
from assay_core.store.client import Store
from tests.integration.discovery import Bench, open_bench, whole

SEEN: list[tuple[str, str]] = []


class _Wrapped:
    """Delegates everything and notes who was asked for what."""

    def __init__(self, name: str, inner: Any, project_id: str) -> None:
        self._name, self._inner, self._project_id = name, inner, project_id

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._inner, attribute)

    def execute(self, sql: str, **options: Any) -> Any:
        SEEN.append((self._name, self._project_id))
        return self._inner.execute(sql, **options)


@pytest.fixture
def bench(store: Store, tmp_path: Path) -> Iterator[Bench]:
    SEEN.clear()
    for name in ("first", "second"):
        if name not in plugins.available("warehouse_middleware"):
            plugins.register(
                "warehouse_middleware",
                name,
                lambda inner, context, name=name: _Wrapped(name, inner, context.project_id),
            )
    opened = open_bench(store, tmp_path / "home")
    with opened.resources:
        yield opened


def test_middleware_wraps_in_configured_order_and_sees_the_project(bench: Bench) -> None:
    bench.script(whole())
    settings = AgentSettings.load().model_copy(update={"assay_warehouse_middleware": "first, second"})
    assert bench.go(bench.new_run(), "--areas", "data_quality", settings=settings) == 0
    assert SEEN[:2] == [("second", bench.project.id), ("first", bench.project.id)]


def test_unknown_names_list_what_may_be_used() -> None:
    with pytest.raises(ConfigError, match=r"SECRET_PROVIDER is 'vault', must be one of: .*environment"):
        plugins.load("secret_providers", "vault")
    with pytest.raises(
        ConfigError, match=r"provider is 'oracle', must be one of: .*duckdb.*postgres.*sqlite"
    ):
        plugins.load("warehouses", "oracle")


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ConfigError, match="registered twice"):
        plugins.register("llms", "in-test", object)


def test_secret_in_a_datasource_config_is_refused(store: Store, tmp_path: Path) -> None:
    config = {"path": str(tmp_path / "x.duckdb"), "password": "hunter2"}
    bench = open_bench(
        store, tmp_path / "h", datasources=[{"id": "default", "provider": "duckdb", "config": config}]
    )
    with bench.resources:
        bench.script(whole())
        run = bench.new_run()
        assert bench.go(run) == 10
        error = str(bench.read(run).error)
        assert "config.password would store a secret" in error
        assert "hunter2" not in error
