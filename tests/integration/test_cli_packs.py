"""`assay packs` as a person uses it, and a run that chooses a pack."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from assay_agent.cli.program import execute
from tests.integration.discovery import orders


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mongo_uri: str) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("QDRANT_URL", "ASSAY_DOMAIN_PACKS", "ASSAY_ENABLE_SYSTEM_TEST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MONGODB_URI", mongo_uri)
    monkeypatch.setenv("MONGODB_DB", f"test_{uuid4().hex[:12]}")
    return tmp_path


def output(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert execute(list(arguments)) == code
    told = capsys.readouterr()
    return told.out if code == 0 else told.err


def test_list_names_every_pack_with_categories_and_areas(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = json.loads(output(capsys, "packs", "list", "--json"))
    assert [pack["name"] for pack in listed] == ["ecommerce", "gaming", "generic", "social"]
    gaming = listed[1]
    assert gaming["categories"] == ["match3", "idle", "casual"]
    assert gaming["areas"]["base"] == ["churn", "engagement", "monetization"]
    assert gaming["areas"]["categories"]["casual"] == ["ad_performance", "session_flow"]
    monkeypatch.setenv("ASSAY_ENABLE_SYSTEM_TEST", "true")
    assert "system-test" in output(capsys, "packs", "list")


def test_show_tells_the_areas_and_profile_of_one_category(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = output(capsys, "packs", "show", "gaming", "--category", "idle")
    assert "prestige" in told
    assert "boosters:" not in told
    assert "kpis.retention_d1: number, Target share, from 0 to 1" in told
    assert "match3, idle, casual" in output(capsys, "packs", "show", "gaming", "--category", "rpg", code=10)


def test_new_pack_validates_travels_and_is_used_from_its_folder(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output(capsys, "packs", "new", "my-field", "--dir", "packs")
    assert output(capsys, "packs", "validate", "packs/my-field").startswith("ok: my-field 0.1.0")
    output(capsys, "packs", "export", "packs/my-field", "mine.json")
    assert output(capsys, "packs", "validate", "mine.json").startswith("ok: my-field 0.1.0")
    assert output(capsys, "packs", "import", "mine.json").startswith("imported: my-field")
    assert "imported already" in output(capsys, "packs", "import", "mine.json", code=10)
    assert output(capsys, "packs", "import", "packs/my-field", "--replace").startswith("imported: my-field")
    listed = json.loads(output(capsys, "packs", "list", "--json"))
    assert {pack["name"]: pack["source"] for pack in listed}["my-field"] == "imported"
    assert "first_area" in output(capsys, "packs", "show", "my-field")
    monkeypatch.setenv("ASSAY_DOMAIN_PACKS", str(place / "packs"))
    assert "is in a folder already" in output(capsys, "packs", "import", "mine.json", code=10)


def test_validate_prints_each_problem_on_its_own_line(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output(capsys, "packs", "new", "my-field")
    base = place / "my-field" / "prompts" / "base"
    (base / "analysis_first_area.md").write_text("{{NOPE}}", encoding="utf-8")
    (base / "recommendations.md").unlink()
    said = output(capsys, "packs", "validate", "my-field", code=10).splitlines()
    assert said == [
        "prompts/base/recommendations.md: is missing",
        "error: my-field has 1 problem, named above",
    ]
    (base / "recommendations.md").write_text("{{INSIGHTS_DATA}}", encoding="utf-8")
    said = output(capsys, "packs", "validate", "my-field", code=10).splitlines()
    assert [line.split(": ")[0] for line in said] == ["prompts/base/analysis_first_area.md"] * 2 + ["error"]
    assert "must contain {{QUERY_RESULTS}}" in said[0]
    assert "unknown template variable {{NOPE}}" in said[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["packs"], "VERB"),
        (["packs", "show", "gamming"], "available: ecommerce, gaming, generic, social"),
        (["packs", "show", "system-test"], "ASSAY_ENABLE_SYSTEM_TEST"),
        (["packs", "validate", "nowhere"], "nowhere cannot be read"),
        (["packs", "new", "My Pack"], "not 'My Pack'"),
        (["packs", "export", "gaming", "no/such/folder/x.json"], "cannot be written"),
        (
            ["run", "orders.duckdb", "--pack", "gaming", "--quiet"],
            "category is missing; pack gaming has match3, idle, casual",
        ),
        (
            ["run", "orders.duckdb", "--pack", "gaming", "--category", "rpg", "--quiet"],
            "category 'rpg' is not one of pack gaming's: match3, idle, casual",
        ),
        (["run", "orders.duckdb", "--pack", "shop", "--quiet"], "domain pack 'shop' not found; available:"),
        (
            ["run", "orders.duckdb", "--config", "wrong.yaml", "--quiet"],
            "profile.kpis.conversion must be at least 0 and at most 1, not 3",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_ten(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    orders(place / "orders.duckdb")
    (place / "wrong.yaml").write_text("domain: ecommerce\nprofile: {kpis: {conversion: 3}}", encoding="utf-8")
    said = output(capsys, *arguments, code=10)
    assert len([line for line in said.splitlines() if line.startswith("error:")]) == 1
    assert says in said


def test_demo_explores_the_invented_warehouse_of_a_pack(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(
        output(capsys, "demo", "--pack", "ecommerce", "--json", "--quiet", "--max-steps", "40")
    )
    areas = {insight["analysis_area"] for insight in document["insights"]}
    assert areas & {"conversion", "revenue", "retention", "product_performance", "session_behavior"}
    assert (place / ".assay" / "warehouses" / "sample-ecommerce.duckdb").is_file()
    assert "the packs that have one: gaming, social" in output(capsys, "demo", "--pack", "shop", code=10)


def test_looking_at_packs_starts_nothing_where_nothing_was_imported(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MONGODB_URI")
    assert "gaming" in output(capsys, "packs", "list")
    assert "churn" in output(capsys, "packs", "show", "gaming")
    assert not (place / ".assay").exists()
    output(capsys, "packs", "new", "my-field")
    output(capsys, "packs", "import", "my-field")
    assert "imported" in output(capsys, "packs", "list")
