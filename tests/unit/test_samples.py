"""The sample warehouses: what is documented of them is what their rows say, on every machine."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import duckdb
import pytest

from assay_agent.adapters.samples import SAMPLES, load_sample
from assay_agent.packs import Shelf, merged_schema, profile_problems
from assay_core.errors import ConfigError
from tests.warehouses import ecommerce, gaming, social, system_test
from tests.warehouses.facts import Fact, asked, page, warehouse

PAGES = Path(__file__).parents[2] / "docs" / "packs"
FACTS: dict[str, tuple[Fact, ...]] = {
    "gaming": gaming.FACTS,
    "social": social.FACTS,
    "ecommerce": ecommerce.FACTS,
    "system-test": system_test.FACTS,
}


@pytest.mark.parametrize("pack", FACTS)
def test_page_states_the_facts_with_the_numbers_of_the_rows(pack: str) -> None:
    text = page(pack, FACTS[pack])
    path = PAGES / f"{pack}.md"
    if os.environ.get("ASSAY_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("pack", FACTS)
def test_size_is_that_of_a_sample(pack: str) -> None:
    with duckdb.connect(str(warehouse(pack)), read_only=True) as connection:
        rows = connection.execute("SELECT sum(estimated_size) FROM duckdb_tables()").fetchone()
    assert rows is not None
    assert 20_000 <= rows[0] <= 200_000


@pytest.mark.parametrize("pack", FACTS)
def test_made_again_it_holds_the_same_rows(pack: str, tmp_path: Path) -> None:
    again = load_sample(pack, tmp_path)
    assert fingerprint(again) == fingerprint(warehouse(pack))
    assert load_sample(pack, tmp_path) == again


def fingerprint(path: Path) -> str:
    digest = hashlib.sha256()
    with duckdb.connect(str(path), read_only=True) as connection:
        names = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        for (name,) in names:
            digest.update(repr(connection.execute(f'SELECT * FROM "{name}"').fetchall()).encode())
    return digest.hexdigest()


@pytest.mark.parametrize("pack", FACTS)
def test_profile_of_the_sample_satisfies_its_pack(pack: str) -> None:
    schema = merged_schema(Shelf(system_test=True).load(pack), SAMPLES[pack].category)
    assert profile_problems(schema, SAMPLES[pack].profile) == []


@pytest.mark.parametrize("pack", FACTS)
def test_every_area_of_the_pack_has_a_fact(pack: str) -> None:
    loaded = Shelf(system_test=True).load(pack)
    areas = {area.id for group in loaded.analysis_areas.categories.values() for area in group}
    areas |= {area.id for area in loaded.analysis_areas.base}
    named = {area for fact in FACTS[pack] for area in fact.areas}
    assert named == areas


def test_unplanted_difference_is_small() -> None:
    row = asked("ecommerce", ecommerce.FACTS[-1].sql)
    assert abs(row["rate_voucher"] - row["rate_none"]) < 0.05


def test_pack_without_sample_names_those_that_have_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gaming, social, ecommerce, system-test"):
        load_sample("generic", tmp_path)
