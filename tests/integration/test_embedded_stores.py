"""The embedded stores as processes: one owner, an end with the owner however it dies, and no write lost."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

import pytest

from assay_agent.ports import Point
from assay_agent.stores import Stores, open_for_reading, open_stores, running_stores, server
from assay_agent.stores import home as run_home
from assay_core.errors import ConfigError, TransientError
from assay_core.settings import StoreSettings
from assay_core.store.owner import process_start
from tests.builders import a_run

OWNER = Path(__file__).with_name("embedded_owner.py")
GONE_S = 5.0


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MONGODB_URI", "QDRANT_URL", "QDRANT_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".assay"


@contextmanager
def an_owner(home: Path, *, limit: Callable[[], None] | None = None) -> Iterator[subprocess.Popen[str]]:
    """The owning program in a process group of its own, killed at the end if it is still there."""
    with subprocess.Popen(
        [sys.executable, str(OWNER), str(home)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, preexec_fn=limit,  # noqa: PLW1509
    ) as owner:  # fmt: skip
        try:
            yield owner
        finally:
            with suppress(ProcessLookupError):
                os.killpg(owner.pid, signal.SIGKILL)


def said(owner: subprocess.Popen[str]) -> str:
    assert owner.stdout is not None
    return owner.stdout.readline().strip()


def written(owner: subprocess.Popen[str], *, at_least: int) -> list[str]:
    assert said(owner) == "ready"
    return [said(owner) for _ in range(at_least)]


def server_of(home: Path) -> int:
    return int(json.loads((home / "stores.json").read_text(encoding="utf-8"))["server_pid"])


def ends_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process_start(pid) is None:
            return True
        time.sleep(0.05)
    return False


def opened(home: Path) -> Stores:
    return Stores(home=home, settings=StoreSettings.load(), embedder_dims=4)


# ---------------------------------------------------------------------------------------------------- the end


def test_a_killed_owner_takes_the_server_along_and_loses_no_acknowledged_write(home: Path) -> None:
    with an_owner(home) as owner:
        numbers = written(owner, at_least=50)
        pid = server_of(home)
        owner.kill()
        assert ends_within(pid, GONE_S)
        assert owner.stdout is not None
        numbers += owner.stdout.read().split()
    assert running_stores(home) is None
    with opened(home) as stores:
        kept = {row["_id"] for row in stores.store.database["numbers"].find()}
    assert {int(number) for number in numbers} <= kept


def test_a_killed_wrapper_takes_the_server_along(home: Path) -> None:
    with an_owner(home) as owner:
        written(owner, at_least=1)
        pid = server_of(home)
        wrapper = int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        os.kill(wrapper, signal.SIGKILL)
        assert ends_within(pid, GONE_S)


def test_an_owner_killed_while_the_server_starts_leaves_nothing(home: Path) -> None:
    with an_owner(home) as owner:
        lock = home / "mongodb.lock"
        deadline = time.monotonic() + 30
        while not lock.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        owner.kill()
    with opened(home) as stores:  # waits for the lock of the server that is ending
        stores.store.ping()


def test_ctrl_c_to_the_group_leaves_the_server_to_its_owner(home: Path) -> None:
    with an_owner(home) as owner:
        written(owner, at_least=3)
        pid = server_of(home)
        os.killpg(owner.pid, signal.SIGINT)
        assert owner.stdout is not None
        assert "last" in owner.stdout.read().split()
        assert owner.wait(20) == 0
        assert ends_within(pid, GONE_S)
    assert not (home / "stores.json").exists()


def test_closing_ends_the_server_and_the_next_open_finds_everything(home: Path) -> None:
    point = Point(id=str(UUID(int=1)), vector=[1.0, 0.0, 0.0, 0.0], payload={})
    with opened(home) as stores:
        pid = server_of(home)
        stores.store.runs.create(a_run(id="r1"))
        stores.vectors.upsert("assay_4", [point])
    assert process_start(pid) is None
    assert not (home / "stores.json").exists()
    with open_stores(home=home, settings=StoreSettings.load(), embedder_dims=4) as again:
        assert again.store.runs.get("r1")
        assert again.vectors.count("assay_4") == 1
        again.close()
        again.close()


def test_a_server_that_is_gone_is_transient(home: Path) -> None:
    with opened(home) as stores:
        os.kill(server_of(home), signal.SIGKILL)
        with pytest.raises(TransientError):
            stores.store.runs.get("r1")


# ------------------------------------------------------------------------------------------------- one owner


def test_a_second_owner_is_refused_in_one_line_that_names_the_first(home: Path) -> None:
    with an_owner(home) as owner:
        written(owner, at_least=1)
        with pytest.raises(ConfigError, match=f"in use by process {owner.pid}") as caught:
            open_stores(home=home, settings=StoreSettings.load())
        assert "\n" not in str(caught.value)
        assert said(owner).isdigit()  # the first goes on unharmed


def test_a_reader_attaches_to_the_owner_and_has_no_vectors(home: Path) -> None:
    with an_owner(home) as owner:
        written(owner, at_least=1)
        with open_for_reading(home=home, settings=StoreSettings.load()) as reader:
            assert not reader.owned
            assert str(owner.pid) in reader.described
            assert reader.store.database["numbers"].find_one({"_id": 0})
            with pytest.raises(ConfigError, match=str(owner.pid)):
                _ = reader.vectors
        assert said(owner).isdigit()


def test_a_reader_waits_for_an_owner_that_is_still_starting(home: Path) -> None:
    with an_owner(home) as owner:
        deadline = time.monotonic() + 30
        while not (home / "mongodb.lock").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        with open_for_reading(home=home, settings=StoreSettings.load()) as reader:
            assert not reader.owned
        written(owner, at_least=1)


def test_a_reader_opens_what_nobody_owns(home: Path) -> None:
    with opened(home) as stores:
        stores.store.runs.create(a_run(id="r1"))
    (home / "stores.json").write_text('{"url": "mongodb://127.0.0.1:9", "pid": 1, "start": "stale"}', "utf-8")
    with open_for_reading(home=home, settings=StoreSettings.load()) as reader:
        assert reader.owned
        assert reader.store.runs.get("r1")
        assert reader.vectors.collections() == ["assay_4"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"url": 1, "pid": "x", "start": null}'])
def test_a_broken_announcement_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "stores.json").write_text(text, encoding="utf-8")
    assert running_stores(tmp_path) is None


# ------------------------------------------------------------------------------------------- given addresses


def test_a_given_mongodb_is_used_and_its_password_is_not_shown(home: Path, mongo_uri: str) -> None:
    settings = StoreSettings.load().model_copy(update={"mongodb_uri": mongo_uri, "mongodb_db": "test_given"})
    with open_stores(home=home, settings=settings, embedder_dims=4) as stores:
        assert not (home / "mongodb").exists() or not any((home / "mongodb").iterdir())
        assert mongo_uri.removeprefix("mongodb://") in stores.described
        with open_for_reading(home=home, settings=settings) as reader:  # needs no home
            reader.store.ping()
        stores.store.client.drop_database("test_given")


# --------------------------------------------------------------------------------------- what cannot be opened


def test_a_home_that_cannot_be_made_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be written") as caught:
        open_stores(home=tmp_path / "file" / ".assay", settings=StoreSettings.load())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kib", "what"),
    [(8, "the vectors"), (24, "the embedded MongoDB server"), (60, "the embedded MongoDB server")],
)
def test_a_disk_that_takes_no_more_is_a_config_error_of_one_line(home: Path, kib: int, what: str) -> None:
    """Files may not grow beyond a size: the first thing that cannot be written is named."""

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (kib * 1024, kib * 1024))

    with an_owner(home, limit=little_room) as owner:
        assert owner.stdout is not None
        text = owner.stdout.read().strip()
        assert owner.wait(60) == 10
    assert text.startswith(f"ConfigError: {what}")
    assert "\n" not in text
    assert running_stores(home) is None


def test_a_disk_that_is_nearly_full_is_refused_before_anything_starts(home: Path) -> None:
    with pytest.raises(ConfigError, match="has 3 MiB left"):
        run_home.require_space(home, free_bytes=3 * 2**20)


def test_a_server_that_is_not_installed_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SERVER", "no-such-server")
    with pytest.raises(ConfigError, match=r"MONGODB_URI.*local"):
        open_stores(home=home, settings=StoreSettings.load())
    with run_home.HomeLock(home):  # and the home is free again
        pass
