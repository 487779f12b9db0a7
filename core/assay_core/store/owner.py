"""Who owns a local run, and whether that process is still there.

An owner is `local:<host>:<pid>:<start>`; `start` tells two processes apart that had the same pid. Only the
host that wrote an owner can say that it is gone. Used by the command line before it answers `runs`, `show` or
`resume`.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
from pathlib import Path

_UNKNOWN = "unknown"
_PS_TIMEOUT_S = 5.0


def local_owner() -> str:
    """This process as an owner."""
    pid = os.getpid()
    return f"local:{_host()}:{pid}:{process_start(pid) or _UNKNOWN}"


def owner_is_gone(owner: str | None) -> bool:
    """True only for a local owner of this host whose process has ended; in doubt False."""
    parts = (owner or "").split(":")
    if len(parts) != 4 or parts[0] != "local" or parts[1] != _host() or not parts[2].isdigit():
        return False
    if parts[3] == _UNKNOWN:
        return False
    return process_start(int(parts[2])) != parts[3]


def process_start(pid: int) -> str | None:
    """When a process started, as an opaque word; None when there is no such process."""
    proc = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # The command in brackets may hold blanks and brackets of its own.
            fields = proc.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        state, started = fields[0], fields[19]
        return None if state in "ZX" else started
    return _start_by_ps(pid)


def _start_by_ps(pid: int) -> str | None:
    try:
        told = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)],
            capture_output=True, text=True, timeout=_PS_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return _UNKNOWN
    started = told.stdout.strip()
    return hashlib.sha256(started.encode()).hexdigest()[:12] if started else None


def _host() -> str:
    return socket.gethostname().replace(":", "-")
