"""A run killed at any point of any call, then resumed, leaves what an undisturbed run leaves and pays for nothing twice."""

from __future__ import annotations

from pathlib import Path

from assay_core.store.client import Store
from tests.chaos.scenario import Size, World
from tests.chaos.sweep import sweep

SMALL = Size(steps=3, areas=("data_quality", "trends"))


def test_run_killed_at_any_point_ends_like_an_undisturbed_one(
    store: Store, mongo_uri: str, tmp_path: Path
) -> None:
    with World(store, mongo_uri, tmp_path, SMALL) as world:
        findings = list(sweep(world))
    assert len(findings) > 100
    assert [finding for finding in findings if finding.wrong()] == []


def test_last_word_of_the_model_is_not_asked_for_again(store: Store, mongo_uri: str, tmp_path: Path) -> None:
    """Killed between the step that ends the exploration and its summary."""
    size = Size(steps=30, areas=("data_quality",))
    with World(store, mongo_uri, tmp_path, size) as world:
        calm = world.run()
        last = sum(point.startswith("before:store.bulkWrite") for point in calm.points) - 2
        ended = world.run(kill=f"after:store.bulkWrite:{last}")
    assert len(calm.documents["discovery_exploration_steps"]) == last < size.steps
    assert ended.attempts == 2
    assert ended.documents["discovery_exploration_steps"] == calm.documents["discovery_exploration_steps"]
    assert ended.reasked == 0


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
