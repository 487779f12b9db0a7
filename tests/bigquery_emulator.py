"""The BigQuery emulator of the tests: installed from its own lock into `.bigquery`, one per test process, on loopback.

It ends with this process. What it holds is shared: every caller makes a dataset of its own.
"""

from __future__ import annotations

import atexit
import http.client
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.integration.postgres import end_with_parent, free_port
from tests.one_at_a_time import one_at_a_time

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".bigquery"
PROJECT = "shop-1"
_INSTALL_S = 600.0
_START_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulator:
    port: int
    pid: int


@cache
def emulator() -> Emulator:
    """The emulator of this test process, installed and started on the first call."""
    subprocess.run(
        ["make", "--no-print-directory", ".bigquery/.installed"],
        cwd=ROOT,
        check=True,
        timeout=_INSTALL_S,
        capture_output=True,
    )
    port = free_port()
    with tempfile.NamedTemporaryFile(prefix="assay-bigquery-", suffix=".log", delete=False) as log:
        process = subprocess.Popen(
            [
                str(HOME / "bin" / "bqemulator"),
                *("start", "--ephemeral", "--project", PROJECT, "--log-level", "error"),
                *("--rest-port", str(port), "--grpc-port", "0"),
            ],
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(HOME / "home")},
            preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509  # before any thread
        )
    atexit.register(_stop, process, Path(log.name))
    _wait(port, process, Path(log.name))
    return Emulator(port=one_at_a_time(port), pid=process.pid)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_S
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", f"/bigquery/v2/projects/{PROJECT}/datasets")
            connection.getresponse().read()
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(
                    f"the BigQuery emulator did not start: {log.read_text()[-2000:]}"
                ) from None
            time.sleep(0.1)
        else:
            return
        finally:
            connection.close()


def _stop(process: subprocess.Popen[bytes], log: Path) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    log.unlink(missing_ok=True)
