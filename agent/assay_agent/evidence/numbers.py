"""Numbers that a writer typed by hand: which of them the rows do not show. Pure.

Used after figures: what remains as digits in prose is compared with the cells of the insight's source steps, and what
matches none is listed on the insight.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from assay_agent.evidence.figures import REFERENCE
from assay_agent.evidence.filters import as_number
from assay_core.model.step import ExplorationStep

_NUMBER = re.compile(
    r"(?<![\w.,/:-])([-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[-+]?\d+(?:\.\d+)?)\s?(%|[KMB]\b)?(?![\w/:-])"
)
_SCALE = {"K": 1e3, "M": 1e6, "B": 1e9}
_SMALL = 10
_MAX_CELLS = 200_000


def unchecked_numbers(texts: Iterable[str], steps: Sequence[ExplorationStep]) -> list[str]:
    """Typed numbers, as written, that equal no cell of the steps within their printed precision.

    Small whole numbers (below 10, without a percent sign) and years are not claims about the data.
    """
    typed = [match for text in texts for match in _NUMBER.finditer(REFERENCE.sub(" ", text))]
    claims = [(match.group(0).strip(), *_read(match)) for match in typed]
    claims = [claim for claim in claims if not _harmless(claim[0], claim[1])]
    if not claims:
        return []
    cells = _cells(steps)
    missing = [
        text
        for text, value, tolerance in claims
        if not any(
            abs(cell - value) <= tolerance or ("%" in text and abs(cell * 100 - value) <= tolerance)
            for cell in cells
        )
    ]
    return list(dict.fromkeys(missing))


def _read(match: re.Match[str]) -> tuple[float, float]:
    digits = match.group(1).replace(",", "")
    factor = _SCALE.get(match.group(2) or "", 1.0)
    places = len(digits.split(".")[1]) if "." in digits else 0
    return float(digits) * factor, 0.5 * 10**-places * factor * (1 + 1e-9)


def _harmless(text: str, value: float) -> bool:
    whole = float(value).is_integer() and "%" not in text and "," not in text
    return whole and (abs(value) < _SMALL or 1900 <= value <= 2100)


def _cells(steps: Sequence[ExplorationStep]) -> list[float]:
    cells: list[float] = []
    for step in steps:
        cells.append(float(step.row_count))
        for row in step.query_result:
            cells += [float(number) for value in row.values() if (number := as_number(value)) is not None]
            if len(cells) > _MAX_CELLS:
                return cells
    return cells
