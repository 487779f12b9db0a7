"""The run home: who owns it, and where its stores can be read meanwhile.

`owner.lock` is locked by the one process that may write; the kernel lets go of the lock however that process
ends. `stores.json` names the server's address and its owner; a file whose process is gone says nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from assay_agent.stores import wrapper
from assay_core.errors import ConfigError
from assay_core.store.owner import process_start

NEEDED_BYTES = 64 * 1024 * 1024
"""Free disk below which nothing is started: the server's log alone takes 10 MiB at once."""
STARTING_S = wrapper.LOCK_WAIT_S + wrapper.START_S + 5.0
"""Seconds after which a server that is being started must have spoken."""


class HomeTaken(ConfigError):
    """Another process owns this run home."""


class HomeLock:
    """Held by the one process that may write a run home. The kernel lets go of it when that process ends."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        lock = (self._home / "owner.lock").open("a+", encoding="utf-8")
        if not wrapper.try_lock(lock):
            lock.seek(0)
            pid = lock.read(20).strip() or "unknown"
            lock.close()
            raise HomeTaken(
                f"{self._home} is in use by process {pid}; wait until it ends or use another folder"
            )
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._file = lock
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningStores:
    """What `stores.json` says, when its process is there."""

    url: str
    pid: int
    start: str


def running_stores(home: Path) -> RunningStores | None:
    """The stores another process offers from this home; None when nobody does (a stale file says nothing)."""
    try:
        told = json.loads((home / "stores.json").read_text(encoding="utf-8"))
        found = RunningStores(url=str(told["url"]), pid=int(told["pid"]), start=str(told["start"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if process_start(found.pid) == found.start else None


def announce(home: Path, url: str, *, server_pid: int | None) -> None:
    """Say in `stores.json` where others may read; replaced in one step, so that nobody reads half of it."""
    pid = os.getpid()
    told = {"url": url, "pid": pid, "start": process_start(pid), "server_pid": server_pid}
    fresh = home / "stores.json.new"
    fresh.write_text(json.dumps(told), encoding="utf-8")
    fresh.chmod(0o600)
    fresh.replace(home / "stores.json")


def await_announcement(home: Path) -> None:
    """Give an owner that is still starting the time to say where it listens."""
    deadline = time.monotonic() + STARTING_S
    while running_stores(home) is None and time.monotonic() < deadline:
        time.sleep(0.1)
        with contextlib.suppress(HomeTaken), HomeLock(home):
            return


def prepare(home: Path) -> None:
    try:
        for folder in (home, home / "mongodb"):
            folder.mkdir(parents=True, exist_ok=True)
        (home / "server.toml").write_text("", encoding="utf-8")
        free = shutil.disk_usage(home).free
    except OSError as error:
        raise ConfigError(f"the folder {home} cannot be written: {error.strerror}") from None
    require_space(home, free_bytes=free)


def require_space(home: Path, *, free_bytes: int) -> None:
    """`ConfigError` when the disk is too full to start."""
    if free_bytes < NEEDED_BYTES:
        raise ConfigError(
            f"the disk of {home} has {free_bytes // 2**20} MiB left; {NEEDED_BYTES // 2**20} MiB are needed"
        )
