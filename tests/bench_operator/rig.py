"""What is measured: the operator as a process beside a control plane with simulated nodes, MongoDB's stand-in and no vector server."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assay_agent.stores.home import prepare
from assay_agent.stores.server import EmbeddedServer

PORT = 18_080
_READY_S = 60.0
DATABASE = "bench"


@dataclass(slots=True)
class OperatorProcess:
    """`start`, `kill`, and what the process says about itself."""

    environment: dict[str, str]
    log: Path
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "assay_operator"], env=self.environment, stdout=log, stderr=log
            )

    def wait_ready(self) -> None:
        end = time.monotonic() + _READY_S
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz", timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise AssertionError(f"the operator is not ready within {_READY_S:g} s; see {self.log}")

    def kill(self) -> None:
        """With SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def peak_mib(self) -> float:
        """The most memory it has had resident."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 1024


@contextmanager
def operator(kubeconfig: str) -> Iterator[OperatorProcess]:
    """An operator that has its relist behind it, over a MongoDB of its own."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "mongo"
        home.mkdir()
        prepare(home)
        server = EmbeddedServer(home, standalone=False)
        server.start()
        environment = {
            **os.environ,
            "KUBECONFIG": kubeconfig,
            "MONGODB_URI": server.url(),
            "MONGODB_DB": DATABASE,
            "AGENT_IMAGE": "localhost/simulated:1",
            "OPERATOR_PORT": str(PORT),
            "LOG_LEVEL": "warning",
            "MALLOC_ARENA_MAX": "2",  # as the image says
        }
        made = OperatorProcess(environment, Path(tempfile.gettempdir()) / "assay-bench-operator.log")
        try:
            made.start()
            made.wait_ready()
            yield made
        finally:
            made.kill()
            server.stop()
