"""What every secret provider must do. The suites import these tests and give them `held`: a provider with what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from assay_agent.ports import SecretProvider
from assay_core import log
from assay_core.errors import ConfigError

VALUE = "sk-marked-8c1f0d6e2b9a4753"
HELD: Mapping[str, str] = {
    "llm-api-key": VALUE,
    "llm-api-key-My_main": "sk-marked-of-main-0e5d91",
    "warehouse-credentials": '{\n  "type": "service_account",\n  "marked": "größer als 7 € – 鍵"\n}',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A provider that holds HELD for the project. `apart`: another project has none of it."""

    provider: SecretProvider
    project_id: str
    apart: bool


def test_provider_gives_what_it_holds_and_hides_it(held: Held) -> None:
    for key, value in HELD.items():
        assert held.provider.get(project_id=held.project_id, key=key) == value
        assert value not in log.masked(f"the key is {value}")


def test_what_is_not_there_is_none(held: Held) -> None:
    assert held.provider.get(project_id=held.project_id, key="llm-api-key-other") is None
    assert held.provider.get(project_id=held.project_id, key="embedding-api-key") is None


def test_projects_are_apart_where_the_place_tells_them_apart(held: Held) -> None:
    found = held.provider.get(project_id=f"{held.project_id}2", key="llm-api-key")
    assert found == (None if held.apart else VALUE)


@pytest.mark.parametrize("key", ["../../etc/passwd", "", "a/b", "Key", "k" * 65, "llm-api-key\n"])
def test_key_is_a_name_and_no_path(held: Held, key: str) -> None:
    with pytest.raises(ConfigError, match="not the name of a secret"):
        held.provider.get(project_id=held.project_id, key=key)


def test_threads_may_share_it(held: Held) -> None:
    with ThreadPoolExecutor(4) as pool:
        keys = list(HELD) * 4
        found = pool.map(lambda key: held.provider.get(project_id=held.project_id, key=key), keys)
        assert list(found) == [HELD[key] for key in keys]
