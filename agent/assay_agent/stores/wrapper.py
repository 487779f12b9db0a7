"""Keeps the embedded MongoDB server alive exactly as long as its owner. A program of its own, standard
library only.

`server` starts it with a pipe on its standard input, in a session of its own, so that Ctrl-C in the owner's
terminal does not reach it. It takes the data folder's lock, starts the server, reports the port as one JSON
line, and waits: when the pipe ends (the owner closed it, or died in any way) it stops the server. On Linux
the server also dies with this process. Nothing here imports the server, which is a program under a licence of
its own.

Run as `python wrapper.py wait LOCK COMMAND…`; `exec PARENT COMMAND…` is its own second stage.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from typing import IO

LOCK_WAIT_S = 15.0
"""Seconds to wait for the server of an owner that has just died."""
START_S = 30.0
STOP_S = 10.0
_POLL_S = 0.25
_PR_SET_PDEATHSIG = 1
_CAUSE = re.compile(r"no space|too large|permission|read-only|quota|in use|busy|resource|lock", re.IGNORECASE)
_LISTENING = re.compile(r"listening on (127\.0\.0\.1):(\d+)")


def wait(lock_path: str, command: list[str]) -> int:
    """Run the server until the owner is gone; 0 when it was stopped on purpose."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    owner = os.getppid()
    threading.Thread(target=_until_owner_ends, args=(over,), daemon=True).start()
    with open(lock_path, "a+", encoding="utf-8") as lock:
        if not _locked(lock, over):
            return _say(error="the data folder is in use by another server")
        # The death signal is tied to the thread that starts the server, hence not to be moved off the main
        # one.
        server = subprocess.Popen(
            _second_stage(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
        )  # fmt: skip
        try:
            return _watch(server, over, owner)
        finally:
            _stop(server)


def _watch(server: subprocess.Popen[str], over: threading.Event, owner: int) -> int:
    last: deque[str] = deque(maxlen=20)
    listening = threading.Event()
    reader = threading.Thread(target=_read_output, args=(server, last, listening), daemon=True)
    reader.start()
    deadline = time.monotonic() + START_S
    while not over.wait(_POLL_S):
        if server.poll() is not None:
            reader.join(1.0)
            code = server.returncode
            return _say(error=_last_words(last) or f"the server ended with code {code}", code=code)
        if not listening.is_set() and time.monotonic() > deadline:
            return _say(error=f"the server did not listen within {START_S:.0f} s")
        if os.name == "posix" and os.getppid() != owner:
            break
    return 0


def _last_words(lines: deque[str]) -> str:
    """The line that names a cause a person can remove, else the last one."""
    told = [line for line in lines if _CAUSE.search(line)] or list(lines)
    return re.sub(r"^(\[[^]]*\])+,? *", "", told[-1]) if told else ""


def _read_output(server: subprocess.Popen[str], last: deque[str], listening: threading.Event) -> None:
    assert server.stdout is not None
    for line in server.stdout:
        last.append(line.strip()[:500])
        found = _LISTENING.search(line)
        if found and not listening.is_set():
            listening.set()
            _say(port=int(found.group(2)), pid=server.pid)


def _until_owner_ends(over: threading.Event) -> None:
    """The owner never writes: whatever comes is the end."""
    with contextlib.suppress(OSError):
        # Not through `sys.stdin`, whose lock a thread that still reads would hold when this process ends.
        while os.read(0, 4_096):
            pass
    over.set()


def _locked(lock: IO[str], over: threading.Event) -> bool:
    deadline = time.monotonic() + LOCK_WAIT_S
    while not try_lock(lock):
        if time.monotonic() > deadline or over.wait(_POLL_S):
            return False
    return True


def try_lock(lock: IO[str]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _second_stage(command: list[str]) -> list[str]:
    if not sys.platform.startswith("linux"):
        return command
    return [sys.executable, "-I", "-S", __file__, "exec", str(os.getpid()), *command]


def die_with_parent_and_exec(parent: int, command: list[str]) -> int:
    """Ask the kernel to end this process with its parent, then become the server."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the request
        return 1
    for name in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    os.execv(command[0], command)
    return 1


def _stop(server: subprocess.Popen[str]) -> None:
    if server.poll() is not None:
        return
    server.terminate()
    try:
        server.wait(STOP_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait(STOP_S)


def _say(**words: object) -> int:
    """One JSON line to the owner, who may be gone."""
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(words) + "\n")
        sys.stdout.flush()
    return 1 if "error" in words else 0


if __name__ == "__main__":
    mode, first, *rest = sys.argv[1:]
    sys.exit(wait(first, rest) if mode == "wait" else die_with_parent_and_exec(int(first), rest))
