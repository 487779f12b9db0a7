"""Which credentials a run may use: a table of what sources say, and the one line that refuses."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from assay_agent.adapters.least_privilege import SHOWN, judge, reasons
from assay_agent.ports import Grant, Grants
from assay_core.errors import ConfigError

AT = datetime(2026, 1, 1, tzinfo=UTC)


def _grants(**fields: object) -> Grants:
    return Grants(user="analyst", proof="asked", **fields)  # type: ignore[arg-type]  # a table of cases


@pytest.mark.parametrize(
    ("grants", "found"),
    [
        (_grants(), ()),
        (_grants(attributes=("superuser",)), ("it is superuser",)),
        (_grants(attributes=("createdb", "createrole")), ("it is createdb", "it is createrole")),
        (_grants(attributes=("replication",)), ("it is replication",)),
        (_grants(attributes=("bypassrls",)), ("it is bypassrls",)),
        (_grants(roles=("analysts", "pg_monitor", "pg_read_all_data")), ()),
        (_grants(roles=("pg_write_all_data",)), ("it is a member of pg_write_all_data",)),
        (_grants(roles=("pg_execute_server_program",)), ("it is a member of pg_execute_server_program",)),
        (_grants(roles=("pg_read_server_files",)), ("it is a member of pg_read_server_files",)),
        (_grants(roles=("pg_database_owner",)), ("it is a member of pg_database_owner",)),
        (_grants(privileges=(Grant(on="table a.b", names=("SELECT",)),)), ()),
        (_grants(privileges=(Grant(on="database d", names=("CONNECT", "TEMPORARY")),)), ()),
        (_grants(privileges=(Grant(on="schema s", names=("USAGE", "CREATE")),)), ("CREATE on schema s",)),
        (
            _grants(privileges=(Grant(on="table a.b", names=("SELECT", "INSERT", "DELETE")),)),
            ("INSERT, DELETE on table a.b",),
        ),
        (_grants(privileges=(Grant(on="the file x", names=("WRITE",)),)), ("WRITE on the file x",)),
        (
            _grants(privileges=(Grant(on="table a.b", names=("SOMETHING NEW",)),)),
            ("SOMETHING NEW on table a.b",),
        ),
    ],
)
def test_what_a_source_says_and_what_it_means(grants: Grants, found: tuple[str, ...]) -> None:
    assert reasons(grants) == found


def test_a_credential_that_may_only_read_is_recorded_as_such() -> None:
    record = judge(_grants(), datasource_id="d", allowed=None, checked_at=AT)
    assert (record.user, record.read_only, record.reasons, record.proof) == ("analyst", True, [], "asked")


def test_one_that_could_write_is_refused_in_one_line_that_says_what_to_do() -> None:
    tables = tuple(Grant(on=f"table public.t{n}", names=("INSERT",)) for n in range(9))
    with pytest.raises(ConfigError) as refused:
        judge(_grants(privileges=tables), datasource_id="shop", allowed=None, checked_at=AT)
    said = str(refused.value)
    assert said.startswith(
        "datasource shop: the credential 'analyst' could write: INSERT on table public.t0; "
    )
    assert f"and {9 - SHOWN} more" in said
    assert said.endswith("or set allow_writable_credential: analyst")
    assert "\n" not in said


def test_it_is_allowed_by_its_own_name_only_and_what_it_could_do_is_recorded() -> None:
    writing = _grants(attributes=("superuser",))
    record = judge(writing, datasource_id="d", allowed="analyst", checked_at=AT)
    assert (record.read_only, record.allowed_by_name, record.reasons) == (False, True, ["it is superuser"])
    with pytest.raises(ConfigError, match="it allows 'postgres', not this one"):
        judge(writing, datasource_id="d", allowed="postgres", checked_at=AT)


def test_a_source_that_cannot_say_is_recorded_as_not_proven() -> None:
    record = judge(None, datasource_id="d", allowed=None, checked_at=AT)
    assert record.read_only is None
    assert record.user is None
