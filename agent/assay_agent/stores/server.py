"""The embedded MongoDB-protocol server of a run home: a child process behind `wrapper`, stopped with its
owner.
"""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from assay_agent.stores import wrapper
from assay_agent.stores.home import STARTING_S
from assay_core.errors import ConfigError

_SERVER = "secantusd-py"
_CACHE = "256M"
_STOP_S = wrapper.STOP_S + 5.0


class EmbeddedServer:
    """The MongoDB-protocol server of a home, as a child of a wrapper that ends it with this process.

    `standalone` spares each command the book-keeping of a replica set, which only a driver of a cluster needs: a
    step's writes cost a fifth less.
    """

    def __init__(self, home: Path, *, standalone: bool = True) -> None:
        self._home = home
        self._standalone = standalone
        self._wrapper: subprocess.Popen[str] | None = None
        self._said: queue.Queue[dict[str, Any]] = queue.Queue()
        self._url: str | None = None
        self._lock = threading.Lock()
        self._ended: str | None = None
        self._when_ended: Callable[[str], None] | None = None
        self.pid: int | None = None

    def start(self) -> None:
        """Start and return at once."""
        command: Sequence[str] = [
            _server_program(), "--config", str((self._home / "server.toml").resolve()),
            "--port", "0", "--storage-path", str((self._home / "mongodb").resolve()),
            "--sync-on-commit", "--cache-size", _CACHE, *(["--standalone"] if self._standalone else []),
        ]  # fmt: skip
        lock = str((self._home / "mongodb.lock").resolve())
        self._wrapper = subprocess.Popen(
            [sys.executable, "-I", "-S", wrapper.__file__, "wait", lock, *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=self._listen, args=(self._wrapper,), daemon=True).start()

    def url(self) -> str:
        """Its address, once it listens; a `ConfigError` with the server's own last words when it will not."""
        if self._url is None:
            try:
                said = self._said.get(timeout=STARTING_S)
            except queue.Empty:
                said = {"error": f"it did not answer within {STARTING_S:.0f} s"}
            if "port" not in said:
                self._fail(str(said.get("error")))
            self._url = f"mongodb://127.0.0.1:{said['port']}"
            self.pid = int(said["pid"])
        return self._url

    def when_ended(self, tell: Callable[[str], None]) -> None:
        """Have `tell` called with one line once the server has ended without being asked to; at once where it has."""
        with self._lock:
            self._when_ended = tell
            ended = self._ended
        if ended is not None:
            tell(ended)

    def stop(self) -> None:
        """Close the pipe, which asks the wrapper to end the server, and wait for it."""
        running = self._wrapper
        if running is None:
            return
        self._wrapper = None
        assert running.stdin is not None
        with contextlib.suppress(OSError):
            running.stdin.close()
        try:
            running.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait(_STOP_S)

    def _listen(self, running: subprocess.Popen[str]) -> None:
        assert running.stdout is not None
        last: dict[str, Any] = {}
        with running.stdout:
            for line in running.stdout:
                last = json.loads(line)
                self._said.put(last)
        self._said.put({"error": "the server ended"})
        if self._wrapper is running:  # nobody asked for it
            self._end(f"the embedded document store ended ({_how(last.get('code'))})")

    def _end(self, why: str) -> None:
        with self._lock:
            self._ended = why
            tell = self._when_ended
        if tell is not None:
            tell(why)

    def _fail(self, why: str) -> NoReturn:
        self.stop()
        raise ConfigError(f"the embedded MongoDB server in {self._home} did not start: {why}")


def _how(code: int | None) -> str:
    """How a child ended, as its return code says it; None where the wrapper that would know was ended too."""
    if code is None:
        return "its keeper was ended"
    return f"signal {-code}" if code < 0 else f"code {code}"


def _server_program() -> str:
    beside = Path(sysconfig.get_path("scripts")) / _SERVER
    found = str(beside) if beside.is_file() else shutil.which(_SERVER)
    if found is None:
        raise ConfigError(
            "no MongoDB: set MONGODB_URI, or install the embedded server (dependency group `local`: uv sync "
            "--group local, or pip install secantusdb)"
        )
    return found
