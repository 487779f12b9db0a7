"""A run killed at any point of any call, then resumed, leaves what an undisturbed run leaves and pays for nothing twice."""

from __future__ import annotations

from pathlib import Path

from assay_core.store.client import Store
from tests.chaos.scenario import Size, World
from tests.chaos.sweep import sweep

SMALL = Size(steps=4, areas=("data_quality", "trends"))


def test_run_killed_at_any_point_ends_like_an_undisturbed_one(
    store: Store, mongo_uri: str, tmp_path: Path
) -> None:
    with World(store, mongo_uri, tmp_path, SMALL) as world:
        findings = list(sweep(world))
    assert len(findings) > 100
    assert [finding for finding in findings if finding.wrong()] == []


def test_areas_side_by_side_are_paid_for_once_each_at_most(
    store: Store, mongo_uri: str, tmp_path: Path
) -> None:
    """With areas in flight side by side, each of them may be lost with its answer, and none of those that were saved."""
    threads = 2
    with World(store, mongo_uri, tmp_path, Size(steps=4, areas=SMALL.areas, threads=threads)) as world:
        calm = world.run()
        for point in ("after:model:5", "before:store.insert:1"):
            ended = world.run(kill=point)
            assert ended.requeried == 0
            assert ended.reasked <= threads
            assert ended.documents["discovery"] == calm.documents["discovery"]
