"""Small invented warehouses, one for each pack that is shipped, with facts planted in them.

`docs/packs/<pack>.md` lists the facts with their numbers; tests compute them again. The demo command loads one by the pack's name.
Invariant: the same code makes the same rows on every machine, and a file that stands under its final name is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from assay_agent.adapters.samples import ecommerce, gaming, social, system_test
from assay_core.errors import ConfigError

__all__ = ["SAMPLES", "Sample", "load_sample", "sample_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One invented warehouse: who fills it, and what a project says of it."""

    name: str
    category: str
    fill: Callable[[duckdb.DuckDBPyConnection], None]
    profile: dict[str, Any] = field(default_factory=dict)


SAMPLES = {
    "gaming": Sample(
        name="Gem Harbour, an invented match-3 game",
        category="match3",
        fill=gaming.fill,
        profile=gaming.PROFILE,
    ),
    "social": Sample(
        name="Lumen, an invented platform for pictures and videos",
        category="content_sharing",
        fill=social.fill,
        profile=social.PROFILE,
    ),
    "ecommerce": Sample(
        name="Nordhaus, an invented online shop",
        category="multi_category",
        fill=ecommerce.fill,
        profile=ecommerce.PROFILE,
    ),
    "system-test": Sample(
        name="Types and edges, invented tables",
        category="quick",
        fill=system_test.fill,
        profile=system_test.PROFILE,
    ),
}


def sample_of(pack: str) -> Sample:
    """The sample of a pack; one that has none is a ConfigError."""
    if pack not in SAMPLES:
        raise ConfigError(f"--pack {pack!r} has no sample; the packs that have one: {', '.join(SAMPLES)}")
    return SAMPLES[pack]


def load_sample(pack: str, home: Path) -> Path:
    """The DuckDB file of a pack's sample under `<home>/warehouses`, made on the first call."""
    sample = sample_of(pack)
    target = home / "warehouses" / f"sample-{pack}.duckdb"
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="sample-", dir=target.parent) as folder:
            made = Path(folder) / target.name
            with duckdb.connect(str(made)) as connection:
                sample.fill(connection)
            os.replace(made, target)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror or error}") from error
    except duckdb.Error as error:
        raise ConfigError(f"the sample of {pack} cannot be made: {str(error).splitlines()[0]}") from error
    return target
