"""Owners of local runs: gone means that this host's process has ended, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from assay_core.errors import ConfigError
from assay_core.store import faults
from assay_core.store.owner import local_owner, owner_is_gone

CHILD = "from assay_core.store.owner import local_owner; print(local_owner(), flush=True); input()"


def test_a_process_is_gone_once_it_has_ended() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        owner = child.stdout.readline().strip()
        assert not owner_is_gone(owner)
        child.kill()
    assert owner_is_gone(owner)


def test_the_same_pid_started_at_another_time_is_another_process() -> None:
    kind, host, pid, start = local_owner().split(":")
    assert owner_is_gone(f"{kind}:{host}:{pid}:{int(start) - 1}")
    assert int(pid) == os.getpid()


@pytest.mark.parametrize(
    "owner",
    [None, "", "3f1c7a52-pod-uid", "local:elsewhere:1:1", "local:x", "local:a:b:c", f"{local_owner()}:more"],
    ids=["none", "empty", "pod", "elsewhere", "short", "wrong-numbers", "too-long"],
)
def test_in_doubt_nobody_is_gone(owner: str | None) -> None:
    assert not owner_is_gone(owner)


def test_an_owner_whose_start_is_unknown_is_not_gone() -> None:
    kind, host, _, _ = local_owner().split(":")
    assert not owner_is_gone(f"{kind}:{host}:999999999:unknown")


# ------------------------------------------------------------------------------------------------ fault points

REACHER = """
import os
from assay_core.store import faults
faults.arm(os.environ)
for turn in range(5):
    print(turn, flush=True)
    faults.reach("before:put")
    faults.reach("after:put")
"""


def reach_with(spec: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", REACHER],
        env={**os.environ, "ASSAY_FAULT": spec}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("spec", "told"),
    [("before:put:3", "012"), ("after:put", "0"), ("before:put", "0"), ("after:put:2", "01")],
)
def test_a_process_dies_at_the_armed_point(spec: str, told: str) -> None:
    assert reach_with(spec) == (-signal.SIGKILL, told)


@pytest.mark.parametrize("spec", ["", "elsewhere", "before:put:6"])
def test_a_point_that_is_not_reached_changes_nothing(spec: str) -> None:
    assert reach_with(spec) == (0, "01234")


@pytest.mark.parametrize("spec", [":1", "x:0"])
def test_a_bad_fault_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match="ASSAY_FAULT"):
        faults.arm({"ASSAY_FAULT": spec})
