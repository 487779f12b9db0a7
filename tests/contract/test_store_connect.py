"""Connecting: what is wrong is said in one line that never shows the password; indexes follow their settings."""

from __future__ import annotations

import socket
import traceback

import pytest

from assay_core.errors import AssayError, ConfigError, TransientError
from assay_core.store import indexes, names
from assay_core.store.client import Store

SECRET = "hunter2-pass"


def whole_text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "uri",
    [
        f"mongodb://user:{SECRET}@host:port/",
        f"mongo://user:{SECRET}@host/",
        f"mongodb://user:{SECRET}@",
        f"mongodb://us@er:{SECRET}@host/",
        f"mongodb://user:{SECRET}@host/?authMechanism=NONSENSE",
        "",
    ],
)
def test_a_bad_address_is_a_config_error_without_the_password(uri: str) -> None:
    with pytest.raises(ConfigError, match="MONGODB_URI") as caught:
        Store.connect(uri, "assay", timeout_s=0.2)
    assert SECRET not in whole_text(caught.value)
    assert "\n" not in str(caught.value)


def test_nobody_there_is_transient_and_names_mongodb() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(TransientError) as caught:
        Store.connect(f"mongodb://u:{SECRET}@127.0.0.1:{port}/", "assay", timeout_s=0.3)
    assert caught.value.dependency == "mongodb"
    assert SECRET not in whole_text(caught.value)
    assert "\n" not in str(caught.value)


def test_refused_credentials_are_a_config_error(mongo_uri: str) -> None:
    address = mongo_uri.removeprefix("mongodb://")
    with pytest.raises(AssayError) as caught:
        Store.connect(f"mongodb://nobody:{SECRET}@{address}/", "assay", timeout_s=2)
    assert type(caught.value) is ConfigError
    assert SECRET not in whole_text(caught.value)


def test_a_bad_database_name_is_a_config_error(mongo_uri: str) -> None:
    with pytest.raises(ConfigError, match="MONGODB_DB"):
        Store.connect(mongo_uri, "as say", timeout_s=2)


def test_an_open_store_answers(store: Store) -> None:
    store.ping()


def test_every_index_is_there_and_saying_it_again_is_nothing(store: Store) -> None:
    store.ensure_indexes(checkpoint_retention_s=48 * 3600)
    for index in indexes.needed(checkpoint_retention_s=48 * 3600):
        assert index.called in store.database[index.collection].index_information()


def test_another_retention_takes_hold_only_when_rebuilding_is_asked_for(store: Store) -> None:
    def kept_s() -> tuple[int, int]:
        steps = store.database[names.CHECKPOINTS].index_information()["ttl_discovery_checkpoint"]
        areas = store.database[names.AREA_CHECKPOINTS].index_information()[
            "ttl_discovery_analysis_checkpoint"
        ]
        return steps["expireAfterSeconds"], areas["expireAfterSeconds"]

    store.ensure_indexes(checkpoint_retention_s=3600)
    assert kept_s() == (48 * 3600, 48 * 3600)
    store.ensure_indexes(checkpoint_retention_s=3600, rebuild=True)
    assert kept_s() == (3600, 3600)


def test_an_index_of_another_name_on_the_same_field_is_replaced(store: Store) -> None:
    rows = store.database[names.DISCOVERIES]
    rows.drop_index("run_id_1")
    rows.create_index([("run_id", 1)], name="somebody_elses")
    store.ensure_indexes(checkpoint_retention_s=48 * 3600, rebuild=True)
    assert "somebody_elses" not in rows.index_information()
    assert "run_id_1" in rows.index_information()
