"""Liveness: a loop that stands still and a watch that does not bring back own writes are seen; a quiet cluster is well."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from assay_operator import metrics
from assay_operator.health import LOOP_S, UNSEEN_S, Health
from assay_operator.web import serve


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def body(version: int) -> dict[str, dict[str, str]]:
    return {"metadata": {"resourceVersion": str(version)}}


def test_quiet_cluster_is_well_as_long_as_the_loop_turns() -> None:
    clock = Clock()
    health = Health(monotonic=clock)
    assert not health.ready
    for _ in range(1_000):
        clock.now += LOOP_S - 1
        health.beat()
    assert health.problem() is None
    assert health.ready
    clock.now += LOOP_S + 1
    assert "loop" in str(health.problem())


def test_own_write_must_come_back() -> None:
    clock = Clock()
    health = Health(monotonic=clock)
    health.wrote("jobs", body(7))
    clock.now += UNSEEN_S - 1
    health.beat()
    health.wrote("jobs", body(9))
    health.watched("jobs", body(6))
    assert health.problem() is None
    clock.now += 2
    assert "jobs" in str(health.problem())
    health.watched("jobs", body(8))
    assert health.problem() is None


def test_kubelet_and_prometheus_are_answered() -> None:
    clock = Clock()
    health = Health(monotonic=clock)
    server = serve(health, 0, host="127.0.0.1")
    try:
        base = f"http://127.0.0.1:{server.server_port}"

        def ask(path: str) -> tuple[int, str]:
            try:
                with urlopen(base + path, timeout=5) as answer:
                    return answer.status, answer.read().decode()
            except HTTPError as error:
                return error.code, error.read().decode()

        assert ask("/healthz") == (200, "ok\n")
        assert ask("/readyz")[0] == 503
        health.beat()
        assert ask("/readyz") == (200, "ok\n")
        metrics.QUEUE_DEPTH.set(0)
        assert "assay_queue_depth" in ask("/metrics")[1]
        clock.now += LOOP_S + 1
        status, text = ask("/healthz")
        assert (status, "loop" in text) == (503, True)
        assert ask("/elsewhere")[0] == 404
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("arguments", [["serve"], ["drain", "now"], ["--version", "--help"]])
def test_unknown_word_is_one_line(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from assay_operator.__main__ import main

    monkeypatch.setattr("sys.argv", ["assay-operator", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 10
    assert capsys.readouterr().err.count("\n") == 1


def test_help_says_what_there_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from assay_operator.__main__ import main

    monkeypatch.setattr("sys.argv", ["assay-operator", "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "drain" in capsys.readouterr().out
