"""The contract on every secret provider, and how the one in MongoDB keeps what it holds."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_agent.adapters.environment_secrets import EnvironmentSecrets, WithEnvironment
from assay_agent.adapters.mongodb_secrets import MongodbSecrets, open_provider
from assay_agent.ports import SecretSettings
from assay_core.errors import ConfigError
from assay_core.store import names
from assay_core.store.client import Store
from tests.clouds import Amazon, Cloud, Google
from tests.contract.secret_contract import (
    HELD,
    VALUE,
    Held,
    test_key_is_a_name_and_no_path,
    test_projects_are_apart_where_the_place_tells_them_apart,
    test_provider_gives_what_it_holds_and_hides_it,
    test_threads_may_share_it,
    test_what_is_not_there_is_none,
)
from tests.secret_server import GOOGLE_PROJECT, REGION, SecretServer, secret_server

__all__ = [
    "test_key_is_a_name_and_no_path",
    "test_projects_are_apart_where_the_place_tells_them_apart",
    "test_provider_gives_what_it_holds_and_hides_it",
    "test_threads_may_share_it",
    "test_what_is_not_there_is_none",
]
KEY = base64.b64encode(bytes(range(32))).decode()
OTHER_KEY = base64.b64encode(bytes(32)).decode()


def sealed(store: Store, key: str = KEY, namespace: str = "assay") -> MongodbSecrets:
    return MongodbSecrets(store, namespace=namespace, encryption_key=key)


def in_mongodb(store: Store, _folder: Path, _server: SecretServer) -> Held:
    provider = sealed(store)
    for key, value in HELD.items():
        provider.put(project_id="p", key=key, value=value)
    return Held(provider=WithEnvironment(provider), project_id="p", apart=True)


def in_a_folder(_store: Store, folder: Path, _server: SecretServer) -> Held:
    for key, value in HELD.items():
        (folder / key).write_text(value + "\n", encoding="utf-8")
    return Held(provider=EnvironmentSecrets({}, directory=folder), project_id="p", apart=False)


def in_variables(_store: Store, _folder: Path, _server: SecretServer) -> Held:
    variables = {key.upper().replace("-", "_"): value for key, value in HELD.items()}
    return Held(provider=EnvironmentSecrets(variables), project_id="p", apart=False)


def in_named_files(_store: Store, folder: Path, _server: SecretServer) -> Held:
    for key, value in HELD.items():
        (folder / f"{key}.txt").write_text(value, encoding="utf-8")
    variables = {key.upper().replace("-", "_"): f"file://{folder / key}.txt" for key in HELD}
    return Held(provider=EnvironmentSecrets(variables), project_id="p", apart=False)


def at_google(_store: Store, _folder: Path, server: SecretServer) -> Held:
    return laid(Google(project=GOOGLE_PROJECT, endpoint=server.url))


def at_amazon(_store: Store, _folder: Path, _server: SecretServer) -> Held:
    return laid(Amazon(region=REGION))


def laid(cloud: Cloud) -> Held:
    for key, value in HELD.items():
        cloud.put(cloud.name_of("assay", "p", key), value.encode())
    return Held(provider=cloud.opened("assay"), project_id="p", apart=True)


@pytest.fixture(params=[in_mongodb, in_a_folder, in_variables, in_named_files, at_google, at_amazon])
def held(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Held]:
    with secret_server() as server:
        server.sign_in(monkeypatch, tmp_path)
        yield request.param(store, tmp_path, server)


def test_nothing_readable_is_stored(store: Store) -> None:
    sealed(store).put(project_id="p", key="llm-api-key", value=VALUE)
    sealed(store).put(project_id="p", key="warehouse-credentials", value=VALUE)
    rows = list(store.database[names.SECRETS].find())
    assert VALUE not in str(rows)
    assert base64.b64encode(VALUE.encode()).decode()[:20] not in str(rows)
    assert rows[0]["value"] != rows[1]["value"]  # a fresh nonce for each


def test_value_opens_only_with_its_key_and_in_its_place(store: Store) -> None:
    sealed(store).put(project_id="p", key="llm-api-key", value=VALUE)
    with pytest.raises(ConfigError, match="SECRET_ENCRYPTION_KEY is not the one"):
        sealed(store, OTHER_KEY).get(project_id="p", key="llm-api-key")
    store.database[names.SECRETS].update_one({"project_id": "p"}, {"$set": {"project_id": "q"}})
    with pytest.raises(ConfigError, match="cannot be opened"):
        sealed(store).get(project_id="q", key="llm-api-key")
    assert sealed(store).get(project_id="p", key="llm-api-key") is None
    assert sealed(store, namespace="other").get(project_id="q", key="llm-api-key") is None


def test_tampered_or_plain_rows_are_not_taken(store: Store) -> None:
    sealed(store).put(project_id="p", key="llm-api-key", value=VALUE)
    rows = store.database[names.SECRETS]
    rows.update_one({"project_id": "p"}, {"$set": {"value": "not base64!"}})
    with pytest.raises(ConfigError, match="cannot be opened"):
        sealed(store).get(project_id="p", key="llm-api-key")
    rows.update_one({"project_id": "p"}, {"$set": {"value": VALUE, "encrypted": False}})
    assert sealed(store).get(project_id="p", key="llm-api-key") is None


@pytest.mark.parametrize("key", ["", "short", base64.b64encode(b"16 bytes of key!").decode(), "*" * 44])
def test_without_a_proper_key_nothing_is_stored(store: Store, key: str) -> None:
    with pytest.raises(ConfigError, match="SECRET_ENCRYPTION_KEY must be 32 bytes"):
        open_provider(SecretSettings(store=store, encryption_key=key))
    assert store.database[names.SECRETS].count_documents({}) == 0


def test_secrets_are_listed_by_name_replaced_and_removed(store: Store) -> None:
    kept = sealed(store)
    for value in ("first", VALUE):
        kept.put(project_id="p", key="llm-api-key", value=value)
    assert [secret.key for secret in kept.listed(project_id="p")] == ["llm-api-key"]
    assert kept.get(project_id="p", key="llm-api-key") == VALUE
    assert kept.delete(project_id="p", key="llm-api-key")
    assert not kept.delete(project_id="p", key="llm-api-key")


def test_environment_serves_what_the_project_has_not(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", "from-the-shell-0123")
    provider = WithEnvironment(sealed(store))
    assert provider.get(project_id="p", key="llm-api-key") == "from-the-shell-0123"
    sealed(store).put(project_id="p", key="llm-api-key", value=VALUE)
    assert provider.get(project_id="p", key="llm-api-key") == VALUE
