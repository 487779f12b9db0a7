"""What Redshift's views of privileges mean for one user: its own, its groups', everybody's, and those of nested roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay_agent.adapters.least_privilege import reasons
from assay_agent.adapters.redshift_grants import given, grants, held

ANALYST: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("pg_user", [("analyst", False, False)]),
    ("pg_group", [("readers",)]),
]


class Canned:
    """Rows by the view that a statement reads; nothing for the rest."""

    def __init__(self, *rows: tuple[str, list[tuple[Any, ...]]]) -> None:
        self.rows = dict(rows)
        self.asked: list[str] = []

    def __call__(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        self.asked.append(statement)
        source = statement.split(" FROM ", 1)[1].split(maxsplit=1)[0]
        return self.rows.get(source, [])


def test_roles_bring_along_the_roles_that_were_granted_to_them() -> None:
    nested = [("role2", "role1"), ("role3", "role2"), ("role1", "role3"), ("other", "sys:dba")]
    assert held(["role3"], nested) == ["role1", "role2", "role3"]
    assert held([], nested) == []


def test_privileges_count_by_kind_and_name_and_public_always() -> None:
    rows = [
        ("public.t", "INSERT", "user", "analyst"),
        ("public.t", "UPDATE", "role", "analyst"),
        ("public.t", "DELETE", "public", "public"),
        ("public.t", "drop", "group", "readers"),
        ("public.t", "ALTER", "user", "somebody"),
    ]
    assert [name for _, name in given(rows, {("user", "analyst"), ("group", "readers"), ("public", "")})] == [
        "INSERT",
        "DELETE",
        "DROP",
    ]


def test_a_user_that_may_only_read_has_no_reason_against_it() -> None:
    ask = Canned(
        *ANALYST,
        ("svv_user_grants", [("analysts",)]),
        ("svv_schema_privileges", [("public", "USAGE", "role", "analysts")]),
        (
            "svv_database_privileges",
            [("dev", "TEMP", "public", "public"), ("dev", "USAGE", "user", "analyst")],
        ),
        (
            "svv_system_privileges",
            [
                ("", "ACCESS SYSTEM TABLE", "role", "analysts"),
                ("", "ACCESS CATALOG", "role", "analysts"),
                ("", "EXPLAIN RLS", "role", "analysts"),
                ("", "DROP TABLE", "role", "sys:dba"),
            ],
        ),
    )
    found = grants(ask)
    assert found is not None
    assert (found.user, found.attributes, found.roles) == ("analyst", (), ("analysts",))
    assert reasons(found) == ()


def test_every_way_to_write_is_found() -> None:
    ask = Canned(
        ("pg_user", [("analyst", False, True)]),
        ("pg_group", [("readers",)]),
        ("svv_user_grants", [("analysts",)]),
        ("svv_role_grants", [("analysts", "loaders"), ("loaders", "sys:operator")]),
        ("svv_relation_privileges", [("public.t", "INSERT", "role", "loaders")]),
        ("svv_column_privileges", [("public.u", "UPDATE", "group", "readers")]),
        ("svv_schema_privileges", [("lake", "CREATE", "public", "public")]),
        ("svv_system_privileges", [("", "TRUNCATE TABLE", "role", "loaders")]),
        ("pg_class", [("table public.t", "DELETE")]),
    )
    found = grants(ask)
    assert found is not None
    assert reasons(found) == (
        "it is createdb",
        "it is a member of sys:operator",
        "UPDATE on columns of public.u",
        "CREATE on schema lake",
        "DELETE, INSERT on table public.t",
        "TRUNCATE TABLE on the system",
    )


def test_a_superuser_is_asked_no_further() -> None:
    ask = Canned(("pg_user", [("awsuser", True, True)]))
    found = grants(ask)
    assert found is not None
    assert found.attributes == ("superuser", "createdb")
    assert len(ask.asked) == 1


def test_a_user_that_the_catalogue_does_not_know_is_not_proven() -> None:
    assert grants(Canned()) is None
