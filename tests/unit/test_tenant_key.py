"""The key by which runs of a project share what they found: whose rows they see, and nothing else."""

from __future__ import annotations

from assay_core.model.project import Datasource, tenant_of


def a_source(**fields: object) -> Datasource:
    return Datasource.model_validate({"provider": "duckdb", **fields})


ACME = a_source(filter_field="account", filter_value="acme")


def test_without_a_filter_the_key_is_empty() -> None:
    assert tenant_of([a_source()]) == tenant_of([]) == ""


def test_column_value_and_datasource_make_the_key() -> None:
    others = [
        a_source(filter_field="account", filter_value="Acme"),
        a_source(filter_field="payer", filter_value="acme"),
        a_source(id="second", filter_field="account", filter_value="acme"),
    ]
    assert len({tenant_of([source]) for source in (ACME, *others)}) == 4


def test_what_does_not_change_whose_rows_are_seen_does_not_change_the_key() -> None:
    same = ACME.model_copy(update={"shared_tables": ["rates"], "tenant_columns": {"bills": "payer"}})
    assert tenant_of([ACME]) == tenant_of([same]) == tenant_of([a_source(id="plain"), ACME])


def test_the_key_tells_nothing_of_the_value() -> None:
    assert "acme" not in tenant_of([ACME])
