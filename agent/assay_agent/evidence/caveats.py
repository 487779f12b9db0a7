"""How good the evidence of an insight is, from the caveats of the steps it cites. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from assay_core.model.step import CaveatKind, ExplorationStep

_LABELS = (
    (CaveatKind.WITHHELD, "rows withheld"),
    (CaveatKind.RESTRICTED, "restricted view"),
    (CaveatKind.SAMPLED, "sampled"),
    (CaveatKind.TRUNCATED, "truncated result"),
)


def evidence_quality(steps: Sequence[ExplorationStep]) -> str | None:
    """The gravest caveat among the cited steps as a label, or None when the evidence is whole."""
    kinds = {caveat.kind for step in steps for caveat in step.caveats}
    return next((label for kind, label in _LABELS if kind in kinds), None)
