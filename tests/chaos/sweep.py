"""Kill a run at each of its points in turn and say what came of it. Used by a test on a small run and by `make chaos` on a large one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.chaos.scenario import Ended, World, differences, distinct

REASKED_AT_MOST = 1
"""Model calls that may be paid for twice: the one whose answer was not saved when the process died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One point and how the run that died there differs from the undisturbed one."""

    point: str
    attempts: int
    requeried: int
    reasked: int
    different: tuple[str, ...]

    def wrong(self, *, reasked_at_most: int = REASKED_AT_MOST) -> bool:
        return bool(self.different or self.requeried or self.reasked > reasked_at_most)


def sweep(world: World, *, tell: Callable[[str], None] = print) -> Iterator[Finding]:
    """Every point of an undisturbed run, in the order it passes them."""
    calm = world.run()
    again = world.run()
    assert not differences(calm.documents, again.documents), "two undisturbed runs differ"
    points = distinct(calm.points)
    tell(
        f"{len(points)} points in an undisturbed run of {world.size.steps} steps, {len(world.size.areas)} areas"
    )
    for point in points:
        yield _compared(point, world.run(kill=point), calm)


def _compared(point: str, ended: Ended, calm: Ended) -> Finding:
    return Finding(
        point=point,
        attempts=ended.attempts,
        requeried=ended.requeried,
        reasked=ended.reasked,
        different=tuple(differences(calm.documents, ended.documents)),
    )
