"""Analysis of five areas against one, at two seconds of model latency: independent areas must not queue."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from assay_agent.stores.home import prepare
from assay_agent.stores.server import EmbeddedServer
from assay_core.store.client import Store
from tests.bench.table import Line
from tests.integration.discovery import DONE, LOOKUP, SHARE, Bench, an_insight, insights, open_bench, whole

LATENCY_S = 2.0
ROUNDS = 3


def _slow(_request: Any) -> str:
    time.sleep(LATENCY_S)
    return insights(an_insight())


def lines() -> list[Line]:
    five, one = [], []
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        prepare(home)
        server = EmbeddedServer(home)
        server.start()
        try:
            store = Store.connect(server.url(), "bench_areas")
            store.ensure_indexes(checkpoint_retention_s=3600)
            bench = open_bench(store, Path(folder) / "run")
            with bench.resources:
                for _ in range(ROUNDS):
                    five.append(_analysis_s(bench))
                    one.append(_analysis_s(bench, "--areas", "data_quality"))
            store.close()
        finally:
            server.stop()
    return [
        Line(
            what=f"analysis of five areas against one at {LATENCY_S:.0f} s latency",
            ours=statistics.median(five),
            theirs=statistics.median(one),
            unit="s ",
            goal=1.3,
        )
    ]


def _analysis_s(bench: Bench, *flags: str) -> float:
    steps = [
        LOOKUP,
        *(
            SHARE.replace("quality and trend", word)
            for word in ("quality trend share of outlier difference between",)
        ),
        DONE,
    ]
    bench.script(whole(exploration=steps, analysis=[_slow]), repeat_last=True)
    run = bench.new_run()
    assert bench.go(run, *flags) == 0
    timings = {timing.phase: timing.duration_ms for timing in bench.read(run).phase_timings}
    areas = bench.store.discoveries.logs(bench.result(run).id).analysis
    assert all(area.relevant_queries for area in areas)
    return float(timings["analyze"]) / 1000
