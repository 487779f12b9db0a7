"""What every secret provider must do, and how the one in MongoDB keeps what it holds."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from assay_agent.adapters.environment_secrets import EnvironmentSecrets, WithEnvironment
from assay_agent.adapters.mongodb_secrets import MongodbSecrets, open_provider
from assay_agent.ports import SecretProvider, SecretSettings
from assay_core import log
from assay_core.errors import ConfigError
from assay_core.store import names
from assay_core.store.client import Store

KEY = base64.b64encode(bytes(range(32))).decode()
OTHER_KEY = base64.b64encode(bytes(32)).decode()
VALUE = "sk-marked-8c1f0d6e2b9a4753"


def sealed(store: Store, key: str = KEY, namespace: str = "assay") -> MongodbSecrets:
    return MongodbSecrets(store, namespace=namespace, encryption_key=key)


def in_mongodb(store: Store, _folder: Path) -> SecretProvider:
    provider = sealed(store)
    provider.put(project_id="p", key="llm-api-key", value=VALUE)
    return WithEnvironment(provider)


def in_a_folder(_store: Store, folder: Path) -> SecretProvider:
    (folder / "llm-api-key").write_text(VALUE + "\n")
    return EnvironmentSecrets({}, directory=folder)


def in_a_variable(_store: Store, _folder: Path) -> SecretProvider:
    return EnvironmentSecrets({"LLM_API_KEY": VALUE})


def in_a_named_file(_store: Store, folder: Path) -> SecretProvider:
    (folder / "key").write_text(VALUE)
    return EnvironmentSecrets({"LLM_API_KEY": f"file://{folder / 'key'}"})


@pytest.mark.parametrize("opened", [in_mongodb, in_a_folder, in_a_variable, in_a_named_file])
def test_provider_gives_what_it_holds_hides_it_and_knows_nothing_else(
    store: Store, tmp_path: Path, opened: Callable[[Store, Path], SecretProvider]
) -> None:
    provider = opened(store, tmp_path)
    assert provider.get(project_id="p", key="llm-api-key") == VALUE
    assert VALUE not in log.masked(f"the key is {VALUE}")
    assert provider.get(project_id="p", key="llm-api-key-other") is None
    with pytest.raises(ConfigError, match="not the name of a secret"):
        provider.get(project_id="p", key="../../etc/passwd")


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
