"""Collections and points are named alike on every day and in every program."""

from __future__ import annotations

from uuid import UUID

from assay_core.vectors import names


def test_collections_are_named_by_what_they_hold() -> None:
    assert names.findings(384) == "assay_384"
    assert names.schema("p1") == "assay_schema_p1"
    assert names.run("r-1") == "assay_run_r-1"
    assert names.run_of(names.run("r-1")) == "r-1"
    assert names.run_of("assay_384") is None


def test_a_name_that_had_to_change_stays_apart() -> None:
    assert names.schema("a/b") != names.schema("a.b")
    assert set(names.schema("a/b é")) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")


def test_points_have_stable_distinct_uuids() -> None:
    first = names.run_point_id("r", 1)
    assert first == names.run_point_id("r", 1)
    assert str(UUID(first)) == first
    others = {
        names.run_point_id("r", 2),
        names.table_point_id("p", "d", "t"),
        names.table_point_id("p", "e", "t"),
    }
    assert first not in others
    assert len(others) == 3
