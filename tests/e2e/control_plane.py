"""What a test does to the control plane and the node. On the built cluster only: its processes and its network are ours."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOME = os.environ.get("ASSAY_E2E_HOME", "")
_CLUSTER = Path(__file__).parents[1] / "cluster" / "cluster.py"
API_PORT = 6443


def restart(component: str) -> None:
    """Kill one component and start it again as it was."""
    subprocess.run(
        [sys.executable, str(_CLUSTER), "restart", component, "--home", HOME],
        check=True,
        capture_output=True,
        timeout=60,
    )


@contextmanager
def stopped(component: str) -> Iterator[None]:
    """The component stands still until the end of the block."""
    pid = int(json.loads((Path(HOME) / "pids.json").read_text())[component])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def frozen_connections(process: int) -> Iterator[int]:
    """The connections a process has to the API server now stay open and are silent, both ways; new ones are not touched.
    Yields how many."""
    listed = subprocess.run(
        ["nsenter", f"--net=/proc/{process}/ns/net", "ss", "-Htn", "state", "established"],
        capture_output=True, text=True, check=True, timeout=20,
    ).stdout  # fmt: skip
    found = re.findall(r"(\d+\.\d+\.\d+\.\d+):(\d+)\s+10\.96\.0\.1:443", listed)
    rules = [["-s", address, "-p", "tcp", "--sport", port, "-j", "DROP"] for address, port in found]
    for rule in rules:
        subprocess.run(["iptables", "-I", "INPUT", *rule], check=True, timeout=20)
    try:
        yield len(found)
    finally:
        for rule in rules:
            subprocess.run(["iptables", "-D", "INPUT", *rule], check=True, timeout=20)
