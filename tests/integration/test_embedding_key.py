"""The embedder's key by the project's secrets, as the model's: stored sealed, or at a cloud; and written nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_agent.adapters.environment_secrets import EnvironmentSecrets
from assay_agent.settings import AgentSettings
from assay_agent.wiring import findings_dimensions, open_embedder
from assay_core.errors import ConfigError
from assay_core.model.project import EmbeddingConfig, Project
from assay_core.store.client import Store
from tests.integration.discovery import open_bench
from tests.integration.test_litellm_run import AREAS, as_scout, layers
from tests.openai_server import DIMENSIONS, OpenAiServer, serving
from tests.secret_server import GOOGLE_PROJECT, REGION, SecretServer, secret_server

MODEL_KEY = "sk-marked-of-the-model-6a0f"
EMBEDDING_KEY = "sk-marked-of-the-embedder-93be"


@pytest.fixture
def models() -> Iterator[OpenAiServer]:
    with serving(as_scout) as server:
        yield server


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SecretServer]:
    for name in ("LLM_API_KEY", "EMBEDDING_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SECRET_GCP_PROJECT_ID", GOOGLE_PROJECT)
    monkeypatch.setenv("SECRET_AWS_REGION", REGION)
    with secret_server() as server:
        monkeypatch.setenv("SECRET_GCP_ENDPOINT", server.url)
        server.sign_in(monkeypatch, tmp_path)
        yield server


def embedding(url: str) -> EmbeddingConfig:
    return EmbeddingConfig(provider="openai-compatible", model="embed-test", config={"base_url": url})


@pytest.mark.parametrize(("provider", "joint"), [("gcp", "__"), ("aws", "/")])
def test_run_takes_both_keys_from_the_cloud_and_writes_them_nowhere(
    store: Store,
    tmp_path: Path,
    models: OpenAiServer,
    secrets: SecretServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    provider: str,
    joint: str,
) -> None:
    monkeypatch.setenv("SECRET_PROVIDER", provider)
    bench = open_bench(
        store,
        tmp_path / "home",
        **layers(models.url, default="gpt-4o-mini"),
        embedding=embedding(models.url),
    )
    project_id = bench.project.id
    for key, value in (("llm-api-key-main", MODEL_KEY), ("embedding-api-key", EMBEDDING_KEY)):
        secrets.kept[joint.join(("assay", project_id, key))] = [value.encode()]
    with bench.resources:
        run = bench.new_run()
        assert bench.go(run, *AREAS, "--enable-debug-logs") == 0
        assert bench.result(run).insights
    assert set(models.keys) == {MODEL_KEY}
    assert set(models.embedding_keys) == {EMBEDDING_KEY}
    said = capfd.readouterr()
    written = [said.out + said.err, str(models.requests)]
    for collection in store.database.list_collection_names():
        written += [str(document) for document in store.database[collection].find()]
    files = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    for value in (MODEL_KEY, EMBEDDING_KEY):
        assert [text for text in written if value in text] == []
        assert [data for data in files if value.encode() in data] == []


def test_run_whose_cloud_is_out_of_reach_ends_as_one_that_waits_for_a_dependency(
    store: Store, tmp_path: Path, models: OpenAiServer, secrets: SecretServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_PROVIDER", "aws")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://127.0.0.1:9")
    bench = open_bench(store, tmp_path / "home", llm=None, embedding=embedding(models.url))
    with bench.resources:
        run = bench.new_run()
        assert bench.go(run, *AREAS) == 11
        assert "AWS Secrets Manager in eu-central-1 is not reachable" in str(bench.read(run).error)


def test_key_is_asked_of_the_projects_secrets_and_without_a_project_of_the_environment(
    models: OpenAiServer, secrets: SecretServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(id="p", embedding=embedding(models.url))
    held = EnvironmentSecrets({"EMBEDDING_API_KEY": EMBEDDING_KEY})
    assert open_embedder(AgentSettings.load(), project, held).dimensions == DIMENSIONS
    assert set(models.embedding_keys) == {EMBEDDING_KEY}
    monkeypatch.setenv("EMBEDDING_PROVIDER", "openai")
    monkeypatch.setenv("EMBEDDING_MODEL", "text-embedding-3-small")
    with pytest.raises(ConfigError, match="embedding-api-key"):
        open_embedder(AgentSettings.load())


def test_dimensions_wait_for_the_run_where_only_its_project_has_the_key(
    models: OpenAiServer, secrets: SecretServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDING_PROVIDER", "openai-compatible")
    monkeypatch.setenv("EMBEDDING_MODEL", "embed-test")
    monkeypatch.setenv("EMBEDDING_BASE_URL", models.url)
    monkeypatch.setenv("SECRET_PROVIDER", "gcp")
    assert findings_dimensions(AgentSettings.load()) is None
    monkeypatch.setenv("EMBEDDING_DIMENSIONS", "256")
    assert findings_dimensions(AgentSettings.load()) == 256
    assert models.embedding_keys == []
    monkeypatch.delenv("EMBEDDING_DIMENSIONS")
    monkeypatch.setenv("EMBEDDING_API_KEY", EMBEDDING_KEY)
    assert findings_dimensions(AgentSettings.load()) == DIMENSIONS
    assert set(models.embedding_keys) == {EMBEDDING_KEY}
