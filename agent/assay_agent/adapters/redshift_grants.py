"""What Redshift says that a user may do beyond reading: itself, by groups and PUBLIC, and by every role, nested ones too.

Called by `redshift`. Roles are always active and unknown to the functions has_…_privilege, so both kinds of question
are asked and their answers joined. Whether a privilege matters is judged elsewhere; that everybody may create in the
schema public, as in a new database, is one that does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from assay_agent.ports import Grant, Grants

Ask = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]

_MAX_GRANTS = 200
"""Things that a user may write to which are named; more are not needed to refuse it."""
_PROOF = "user, groups, roles and privileges read from the system views"
_USER = "SELECT usename, usesuper, usecreatedb FROM pg_user WHERE usename = current_user"
_GROUPS = "SELECT g.groname FROM pg_group g, pg_user u WHERE u.usename = %s AND u.usesysid = ANY(g.grolist)"
_ROLES = "SELECT role_name FROM svv_user_grants WHERE user_name = %s"
_NESTED = "SELECT role_name, granted_role_name FROM svv_role_grants"
_MINE = """
    SELECT 'database ' || current_database(), 'CREATE' WHERE has_database_privilege(current_database(), 'CREATE')
    UNION ALL
    SELECT 'schema ' || n.nspname, 'CREATE' FROM pg_namespace n
    WHERE {ours} AND has_schema_privilege(n.oid, 'CREATE')
    UNION ALL
    SELECT 'schema ' || n.nspname, 'OWNER' FROM pg_namespace n JOIN pg_user u ON u.usesysid = n.nspowner
    WHERE {ours} AND u.usename = current_user
    UNION ALL
    SELECT 'table ' || n.nspname || '.' || c.relname, 'OWNER'
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_user u ON u.usesysid = c.relowner
    WHERE {ours} AND c.relkind IN ('r', 'v', 'm') AND u.usename = current_user
"""
_MY_TABLES = """
    SELECT 'table ' || n.nspname || '.' || c.relname, '{privilege}'
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {ours} AND c.relkind IN ('r', 'v', 'm') AND has_table_privilege(c.oid, '{privilege}')
"""
_OURS = "n.nspname NOT IN ('information_schema', 'catalog_history') AND substring(n.nspname, 1, 3) <> 'pg_'"
_TABLE_PRIVILEGES = ("INSERT", "UPDATE", "DELETE")
_GRANTED = {
    "database": "SELECT database_name, privilege_type, identity_type, identity_name FROM svv_database_privileges",
    "schema": "SELECT namespace_name, privilege_type, identity_type, identity_name FROM svv_schema_privileges",
    "table": "SELECT namespace_name || '.' || relation_name, privilege_type, identity_type, identity_name "
    "FROM svv_relation_privileges WHERE privilege_type <> 'SELECT'",
    "columns of": "SELECT namespace_name || '.' || relation_name, privilege_type, identity_type, identity_name "
    "FROM svv_column_privileges WHERE privilege_type <> 'SELECT'",
    "the system": "SELECT '', system_privilege, identity_type, identity_name FROM svv_system_privileges",
}
"""By what is granted on: on which, what, and to whom. They show more than the user's own to who may read system tables."""


def grants(ask: Ask) -> Grants | None:
    """None for a user that the catalogue does not know. Raises what `ask` raises."""
    known = ask(_USER, ())
    if not known:
        return None
    user, superuser, createdb = known[0]
    attributes = tuple(name for name, has in (("superuser", superuser), ("createdb", createdb)) if has)
    if superuser:
        return Grants(user=user, attributes=attributes, proof=_PROOF)
    roles = held([row[0] for row in ask(_ROLES, (user,))], ask(_NESTED, ()))
    holders = {("user", user), ("public", "")}
    holders |= {("group", row[0]) for row in ask(_GROUPS, (user,))} | {("role", role) for role in roles}
    found: list[tuple[str, str]] = [(on, name) for on, name in ask(_MINE.format(ours=_OURS), ())]
    for privilege in _TABLE_PRIVILEGES:
        found += [(on, name) for on, name in ask(_MY_TABLES.format(ours=_OURS, privilege=privilege), ())]
    for kind, statement in _GRANTED.items():
        found += [(f"{kind} {on}".strip(), name) for on, name in given(ask(statement, ()), holders)]
    return Grants(
        user=user, attributes=attributes, roles=tuple(roles), privileges=_by_thing(found), proof=_PROOF
    )


def held(granted: Iterable[str], nested: Iterable[Sequence[Any]]) -> list[str]:
    """Roles granted, and those granted to them; `nested` are pairs of a role and one that it has been granted."""
    below: dict[str, list[str]] = defaultdict(list)
    for role, inner in nested:
        below[role].append(inner)
    found: dict[str, None] = {}
    waiting = list(granted)
    while waiting:
        role = waiting.pop()
        if role not in found:
            found[role] = None
            waiting += below[role]
    return sorted(found)


def given(rows: Iterable[Sequence[Any]], holders: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Privileges of the holders: on what, and which. Everybody holds what is granted to PUBLIC, whatever it is called."""
    return [
        (str(on), str(privilege).upper())
        for on, privilege, kind, name in rows
        if (kind, "" if kind == "public" else name) in holders
    ]


def _by_thing(found: Iterable[tuple[str, str]]) -> tuple[Grant, ...]:
    names: dict[str, set[str]] = defaultdict(set)
    for on, name in found:
        names[on].add(name)
    return tuple(Grant(on=on, names=tuple(sorted(names[on]))) for on in sorted(names)[:_MAX_GRANTS])
