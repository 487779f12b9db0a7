"""One line per comparison: both sides, the ratio, the goal, and whether it was met."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`ours` and `theirs` in `unit`; `goal` bounds their ratio, or `ours` itself where there is no other side; inf is no goal."""

    what: str
    ours: float
    theirs: float | None
    unit: str
    goal: float

    def text(self) -> str:
        judged = self.ours if self.theirs is None else self.ours / self.theirs
        met = "met" if judged <= self.goal else "NOT MET"
        judgement = f"goal {self.goal:<6.4g} {met}" if math.isfinite(self.goal) else "no goal"
        other = f"{'–':>11}" if self.theirs is None else f"{self.theirs:>9.4g} {self.unit}"
        ratio = f"{'–':>8}" if self.theirs is None else f"{judged:>8.3f}"
        return f"{self.what:<62} {self.ours:>9.4g} {self.unit} {other} {ratio}  {judgement}"


HEADING = f"{'':<62} {'ours':>12} {'baseline':>12} {'ratio':>7}"
