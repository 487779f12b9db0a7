"""The second gate: a query of a datasource with a tenant filter sees that tenant's rows only, whatever its shape. Pure.

`confine` takes a tree that the guard has passed and gives one in which every relation is the tenant's: proven, because the
SELECT that reads it keeps only rows of the tenant; or replaced by `(SELECT * FROM table WHERE column = value) AS alias`.
`unproven` finds what is not so; it is asked of the text that will run, so that nothing rests on `confine` alone.

Which name means what is not left to the engine: a table is written with its schema, so that no common table expression can
take its place, and a common table expression gets a name of ours, so that no table can take its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from sqlglot import exp

from assay_agent.sql.dialects import Dialect, make_ref
from assay_core.errors import ConfigError, QueryError

CTE_PREFIX = "assay_cte_"
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JOINED = frozenset({"", "INNER", "CROSS", "OUTER"})
"""Kinds of join after which a condition in WHERE still speaks of the joined rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What the filter must know of a table. `column` is None when it holds no tenant; `shared` tables need none.

    `catalog` stands before the schema where it is another than the datasource's. `wildcard`: the name stands for several tables,
    and pseudo-columns of it would not pass a subquery.
    """

    schema: str | None
    name: str
    column: str | None = None
    kind: str = "STRING"
    shared: bool = False
    catalog: str | None = None
    wildcard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The tenant: `value` as the settings give it. `facts` are by the reference a statement uses and by the full one.

    `catalog` is the datasource's own, which may stand before a schema; another one only where the facts have it.
    """

    value: str
    facts: Mapping[str, TableFacts]
    catalog: str | None = None
    datasource_id: str = "default"


def condition(column: str, value: str, *, dialect: str) -> str:
    """`column = 'value'` as a person of the dialect writes it, on one line; for texts, not for execution."""
    name = exp.column(exp.to_identifier(column, quoted=not _PLAIN.fullmatch(column)))
    literal = exp.Literal.string(" ".join(value.split()))
    return exp.EQ(this=name, expression=literal).sql(dialect=dialect or None)


def confine(tree: exp.Expr, *, language: Dialect, tenant: Filter) -> exp.Expr:
    """The tree in which every relation is the tenant's. Changes `tree`; raises QueryError(kind="tenant")."""
    numbers = count(1)
    replaced: set[tuple[str, str]] = set()
    for table, cte in list(_relations(tree, {}, language, numbers)):
        if cte is not None:
            _point_to(table, cte)
            continue
        facts = _facts(table, language, tenant)
        proven = _is_proven(table, facts, language, tenant)
        _write_in_full(table, facts)
        if facts.schema is not None:
            replaced.add((facts.schema.lower(), facts.name.lower()))
        if proven:
            continue
        if facts.wildcard:
            raise _refused(
                f"{table.name} stands for several tables; in the SELECT that reads it write WHERE "
                f"{facts.column} = {tenant.value!r}"
            )
        _filter(table, facts, language, tenant)
    _shorten_columns(tree, replaced)
    return tree


def own_rows(facts: TableFacts, *, value: str, datasource_id: str) -> exp.EQ:
    """`column = value`, the condition on the rows of the tenant."""
    tenant = Filter(value=value, facts={}, datasource_id=datasource_id)
    return exp.EQ(
        this=exp.Column(this=exp.to_identifier(facts.column, quoted=True)), expression=_value(facts, tenant)
    )


def unproven(tree: exp.Expr, *, language: Dialect, tenant: Filter) -> list[str]:
    """The relations of a tree that are not the tenant's, by name. Empty when the tree may run."""
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    left: list[str] = []
    if any(not name.startswith(CTE_PREFIX) for name in ctes):
        left.append("a common table expression under a name of its own")
    if language.paths_in_from:
        # `o.items` in FROM: whether `o` is an alias or a schema is the engine's choice, and it cannot be asked here.
        paths = [
            part
            for node in tree.find_all(exp.Unnest)
            for part in node.expressions
            if isinstance(part, exp.Column)
        ]
        left += [f"{path.sql()} in FROM" for path in paths]
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            continue
        if not table.db and table.name in ctes:
            continue
        ref = make_ref(table.db or None, table.name, catalog=table.catalog or None)
        facts = tenant.facts.get(ref)
        whole = facts is not None and (facts.catalog or "", facts.schema or "", facts.name) == (
            table.catalog,
            table.db,
            table.name,
        )
        if facts is None or not whole or not _is_proven(table, facts, language, tenant):
            left.append(ref)
    return left


# -------------------------------------------------------------------------------------------------- relations


def _relations(
    node: exp.Expr, known: Mapping[str, str], language: Dialect, numbers: Iterator[int]
) -> Iterator[tuple[exp.Table, str | None]]:
    """Every table of a tree, with the new name of the common table expression that it is, if it is one.

    Renames the expressions on the way. Scopes are the standard's: one sees those before it, all of them when recursive.
    """
    clause = node.args.get("with_")
    if isinstance(clause, exp.With):
        inner = dict(known)
        recursive = bool(clause.args.get("recursive"))
        names = [_key(cte.args["alias"].this, language) for cte in clause.expressions]
        fresh = [f"{CTE_PREFIX}{next(numbers)}" for _ in names]
        if recursive:
            inner.update(zip(names, fresh, strict=True))
        for cte, name, new in zip(clause.expressions, names, fresh, strict=True):
            yield from _relations(cte.this, inner, language, numbers)
            inner[name] = new
            cte.args["alias"].set("this", exp.to_identifier(new))
        known = inner
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        bare = not node.args.get("db") and not node.args.get("catalog")
        yield node, known.get(_key(node.this, language)) if bare else None
    for child in node.iter_expressions():
        if child is not clause:
            yield from _relations(child, known, language, numbers)


def _key(identifier: exp.Expr, language: Dialect) -> str:
    """What two spellings of one name share in a dialect."""
    name = str(identifier.name)
    return name if language.quoted_names_differ and identifier.args.get("quoted") else name.lower()


def _point_to(table: exp.Table, cte: str) -> None:
    """Read the expression under its new name, and call it as before."""
    if not table.args.get("alias"):
        table.set("alias", exp.TableAlias(this=table.this.copy()))
    elif not table.args["alias"].args.get("this"):
        table.args["alias"].set("this", table.this.copy())
    table.set("this", exp.to_identifier(cte))


def _facts(table: exp.Table, language: Dialect, tenant: Filter) -> TableFacts:
    other = table.catalog if table.catalog != tenant.catalog else None
    ref = make_ref(table.db or None, table.name, catalog=other or None)
    if other and not language.catalogs_differ:
        raise _refused(f"write {make_ref(table.db or None, table.name)} without {other!r} before it")
    facts = tenant.facts.get(ref)
    if facts is not None and other and facts.catalog != other:
        facts = None
    if facts is None:
        raise _refused(f"no such table in this datasource: {ref}")
    if not facts.shared and facts.column is None:
        raise _refused(
            f"{ref} cannot be queried: this datasource shows one tenant only, and the table does not say whose its rows are"
        )
    return facts


def _write_in_full(table: exp.Table, facts: TableFacts) -> None:
    """The table by its schema and exact name; what it was called stays its alias."""
    alias = table.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        if not facts.wildcard:  # its name is in the facts as the statement has it
            table.set("alias", exp.TableAlias(this=table.this.copy()))
    elif not alias.args.get("this"):
        alias.set("this", table.this.copy())
    table.set("this", exp.to_identifier(facts.name, quoted=True))
    table.set("db", exp.to_identifier(facts.schema, quoted=True) if facts.schema else None)
    table.set("catalog", exp.to_identifier(facts.catalog, quoted=True) if facts.catalog else None)


def _filter(table: exp.Table, facts: TableFacts, language: Dialect, tenant: Filter) -> None:
    """Put `(SELECT * FROM table WHERE column = value) AS alias` in the place of a table, and on it what hung on the table."""
    outside = ("pivots", "joins", "laterals", *(("sample",) if language.subqueries_are_sampled else ()))
    moved = {part: table.args.pop(part) for part in outside if table.args.get(part)}
    alias = table.args.pop("alias")
    condition = own_rows(facts, value=tenant.value, datasource_id=tenant.datasource_id)
    rows = exp.Select(expressions=[exp.Star()], where=exp.Where(this=condition))
    subquery = exp.Subquery(this=rows, alias=alias)
    table.replace(subquery)
    rows.set("from_", exp.From(this=table))
    for part, value in moved.items():
        subquery.set(part, value)


def _shorten_columns(tree: exp.Expr, replaced: set[tuple[str, str]]) -> None:
    """`schema.table.column` as `table.column`: a subquery has no schema."""
    for column in tree.find_all(exp.Column):
        if column.args.get("db") and (column.db.lower(), column.table.lower()) in replaced:
            column.set("db", None)
            column.set("catalog", None)


# ------------------------------------------------------------------------------------------------------ proof


def _is_proven(table: exp.Table, facts: TableFacts, language: Dialect, tenant: Filter) -> bool:
    """Whether the SELECT that reads the table keeps only the tenant's rows of it: `alias.column = value AND …` in WHERE."""
    if facts.shared:
        return True
    select = _reader(table)
    given = table.args.get("alias")
    # Pivots and lists of column names change what a name means; a sample would be drawn from everybody's rows.
    sampled = language.subqueries_are_sampled and table.args.get("sample")
    changed = table.args.get("pivots") or sampled or (given and given.args.get("columns"))
    if select is None or facts.column is None or changed:
        return False
    where = select.args.get("where")
    alone = not select.args.get("joins") and not select.args.get("laterals") and not table.args.get("joins")
    called = _key(given.this if given and given.this else table.this, language)
    if where is None or sum(other == called for other in _names(select, language)) != 1:
        return False
    column = _OwnColumn(select=select, called=called, alone=alone, facts=facts, language=language)
    value = _value(facts, tenant)
    return any(_says(part, column, value) for part in _conjuncts(where.this))


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnColumn:
    """The tenant's column of one relation of a SELECT, where it is `called` so and may stand `alone`."""

    select: exp.Select
    called: str
    alone: bool
    facts: TableFacts
    language: Dialect

    def is_named_by(self, node: exp.Expr) -> bool:
        if (
            not isinstance(node, exp.Column)
            or not isinstance(node.this, exp.Identifier)
            or node.args.get("db")
        ):
            return False
        before = node.args.get("table")
        if before is not None:
            return _key(before, self.language) == self.called and self._is_same(node.this)
        # A bare name might mean another relation's column, or an output of that name.
        return self.alone and self._is_same(node.this) and not _is_output(self.select, node.name)

    def _is_same(self, identifier: exp.Identifier) -> bool:
        if self.language.quoted_names_differ:
            return _key(identifier, self.language) == self.facts.column
        return identifier.name.lower() == str(self.facts.column).lower()


def _says(part: exp.Expr, column: _OwnColumn, value: exp.Expr) -> bool:
    """Whether a condition is `column = value`, either way round."""
    if type(part) is not exp.EQ:
        return False
    sides = (part.this, part.expression)
    return any(
        column.is_named_by(one) and bool(other == value) for one, other in (sides, tuple(reversed(sides)))
    )


def _reader(table: exp.Table) -> exp.Select | None:
    """The SELECT in whose FROM or ordinary JOIN the table stands."""
    parent = table.parent
    if isinstance(parent, exp.Join):
        if (parent.args.get("method") or "") or str(parent.args.get("kind") or "").upper() not in _JOINED:
            return None
        select = parent.parent
    elif isinstance(parent, exp.From):
        select = parent.parent
    else:
        return None
    if not isinstance(select, exp.Select):
        return None
    joins = select.args.get("joins") or []
    # Where columns are merged, a name says less about whose row it is.
    unclear = any(join.args.get("using") or join.args.get("method") for join in joins)
    return None if unclear else select


def _names(select: exp.Select, language: Dialect) -> Iterator[str]:
    """What the relations of a SELECT are called."""
    source = select.args.get("from_")
    relations = [source.this] if source is not None else []
    relations += [join.this for join in select.args.get("joins") or []]
    relations += select.args.get("laterals") or []
    for relation in relations:
        alias = relation.args.get("alias")
        named = alias.this if isinstance(alias, exp.TableAlias) else None
        if named is None and isinstance(relation, exp.Table):
            named = relation.this
        if isinstance(named, exp.Identifier):
            yield _key(named, language)


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(condition, exp.And):
        yield from _conjuncts(condition.this)
        yield from _conjuncts(condition.expression)
    elif isinstance(condition, exp.Paren):
        yield from _conjuncts(condition.this)
    else:
        yield condition


def _is_output(select: exp.Select, name: str) -> bool:
    """Whether the SELECT gives some output this name: a bare name in WHERE might then mean the output."""
    return any(
        isinstance(item, exp.Alias) and item.alias.lower() == name.lower() for item in select.expressions
    )


def _value(facts: TableFacts, tenant: Filter) -> exp.Expr:
    """The tenant as a literal of the column's kind."""
    value = tenant.value
    if facts.kind in ("INT64", "FLOAT64"):
        if not _NUMBER.fullmatch(value):
            raise ConfigError(
                f"datasource {tenant.datasource_id}: filter_value {value!r} is no number, but {facts.column} of "
                f"{facts.name} holds numbers; correct filter_value or name another column in tenant_columns"
            )
        number = exp.Literal.number(value.removeprefix("-"))
        return exp.Neg(this=number) if value.startswith("-") else number
    if facts.kind == "BOOL":
        if value.lower() not in ("true", "false"):
            raise ConfigError(
                f"datasource {tenant.datasource_id}: filter_value {value!r} must be true or false for {facts.column}"
            )
        return exp.Boolean(this=value.lower() == "true")
    return exp.Literal.string(value)


def _refused(reason: str) -> QueryError:
    return QueryError(f"Refused before execution: {reason}.", kind="tenant")
