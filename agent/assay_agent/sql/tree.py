"""What the nodes of a parsed statement must satisfy: everything is denied that is not listed. Pure; used by the guard alone.

Node classes are listed in `nodes`, functions in `functions`. One walk proves the tree and collects what the guard needs
later: the tables it names, and the aliases that stand before a list of columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from assay_agent.sql.dialects import Dialect, make_ref
from assay_agent.sql.nodes import LISTED_NODES, REFUSED_FUNCTIONS, TABLE_PARTS
from assay_agent.sql.tokens import not_listed, refused

MAX_NODES = 50_000
MAX_SERIES_ROWS = 10_000_000
"""Rows a series with literal bounds may make."""
MAX_REPEATED_CHARS = 1_000_000
"""Characters that a literal length may ask of `repeat`, `lpad` and `rpad`."""

_FILE_LIKE = re.compile(
    r"(?i)\.(csv|tsv|txt|parquet|json|jsonl|ndjson|arrow|feather|ipc|xlsx?|db|duckdb|sqlite|gz|zst|avro|orc|geojson|shp)$"
    r"|[/\\*?]|://|^[a-z]+:"
)
_SELECT_PARTS = (
    *("into", "locks", "connect", "match", "hint", "kind", "prewhere", "options", "settings", "format"),
)
_ROW_KINDS = frozenset({"STRUCT", "VALUE"})
_CATALOGUE_TYPE = re.compile(
    r"(?i)(^|\.)(reg[a-z]+|oid|oidvector|xid8?|cid|tid|pg_[a-z0-9_]+|aclitem|refcursor)$"
)


@dataclass(slots=True)
class Seen:
    """What a walk found. `tables` are in the order met, CTEs left out."""

    tables: list[str] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)


Rule = Callable[[exp.Expr, Dialect, Seen], None]
_rules: dict[type, Rule | None] = {}


def check_tree(tree: exp.Expr, language: Dialect) -> Seen:
    """Raise QueryError for the first node that is not allowed."""
    seen = Seen()
    for count, node in enumerate(tree.walk()):
        if count > MAX_NODES:
            raise refused(f"the statement has more than {MAX_NODES:,} parts; make it smaller")
        kind = type(node)
        if kind not in _rules:
            _rules[kind] = _rule(kind)
        rule = _rules[kind]
        if rule is not None:
            rule(node, language, seen)
    return seen


def _rule(kind: type[exp.Expr]) -> Rule | None:
    """What is asked of nodes of a class; None when being listed is enough."""
    if issubclass(kind, exp.Func):
        if kind.__name__ in REFUSED_FUNCTIONS:
            return _refuse_function
        return next((rule for known, rule in _FUNCTION_RULES.items() if issubclass(kind, known)), None)
    if kind.__name__ not in LISTED_NODES:
        return _refuse_node
    return _NODE_RULES.get(kind)


def _refuse_function(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    del language, seen
    raise refused(f"the function {call_name(node)} is not allowed")


def _refuse_node(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    del language, seen
    raise refused(_why_not(node))


def _why_not(node: exp.Expr) -> str:
    if isinstance(node, (exp.Placeholder, exp.Parameter, exp.SessionParameter)):
        return "parameters and variables have no value here; write the value itself"
    if isinstance(node, exp.Lock):
        return "FOR UPDATE and FOR SHARE are not allowed"
    if isinstance(node, exp.Into):
        return "SELECT INTO is not allowed; select the rows only"
    if isinstance(node, (exp.DML, exp.DDL, exp.Command)) and not isinstance(node, exp.Query):
        return f"{node.key.upper()} is not allowed; only reading is"
    if isinstance(node, exp.ObjectIdentifier):
        return f"the type {node.name} asks the system catalogue; the schema is given to you"
    return f"{node.key.upper()} is not allowed in a query here"


def call_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.name)
    if isinstance(node, exp.ExplodingGenerateSeries):
        return "generate_series"
    return str(type(node).sql_names()[0]).lower() if isinstance(node, exp.Func) else node.key


# ------------------------------------------------------------------------------------------------------ nodes


def _select(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    del seen
    if not node.args.get("expressions") and not node.args.get("from_"):
        raise refused("the query selects nothing")
    for part in _SELECT_PARTS:
        value = node.args.get(part)
        if not value:
            continue
        if part == "kind" and language.row_kinds and str(value).upper() in _ROW_KINDS:
            continue
        if isinstance(value, exp.Expr):
            raise refused(_why_not(value))
        raise refused(_why_not(value[0]) if isinstance(value, list) else f"{part.upper()} is not allowed")


def _dot(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    del seen
    called = node.expression
    if not isinstance(called, exp.Func):
        return
    prefix = node.this
    if isinstance(prefix, exp.Identifier) and not prefix.quoted:
        before = prefix.name.lower()
        if (
            before in language.function_schemas
            or f"{before}.{call_name(called).lower()}" in language.functions
        ):
            return
    raise refused(f"write {call_name(called)}(…) without anything before the name")


def _column(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    del seen
    identifier = node.this
    if not isinstance(identifier, exp.Identifier) or identifier.quoted or node.args.get("table"):
        return
    if identifier.name.lower() in language.system_values:
        raise refused(f"{identifier.name} asks about the session; if it is a column, quote it")


def _membership(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    del seen
    if language.in_reads_a_table and node.args.get("field") is not None:
        raise refused(
            "write IN (SELECT … FROM …) or a list in brackets; a bare name after IN is a table here"
        )


def _data_type(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    """A type by name: one of the user's, but none whose input looks names up in the system catalogue."""
    del seen
    kind = node.args.get("kind")
    if kind is None or not language.catalogue_types:
        return
    parts = (
        [part.name for part in kind.find_all(exp.Identifier)] if isinstance(kind, exp.Expr) else [str(kind)]
    )
    if any(_CATALOGUE_TYPE.search(part) for part in parts):
        raise refused(f"the type {'.'.join(parts)} asks the system catalogue; the schema is given to you")


def _table_alias(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    del language
    if node.args.get("columns") and node.args.get("this"):
        seen.aliases.add(node.name.lower())


def _table(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    assert isinstance(node, exp.Table)
    extra = [name for name, value in node.args.items() if value and name not in TABLE_PARTS]
    if extra:
        raise refused(f"{min(extra).upper().replace('_', ' ')} is not allowed on a table")
    parts = [part.name for part in node.parts if isinstance(part, exp.Identifier)]
    this = node.this
    if isinstance(this, exp.Func):
        _check_table_function(this, parts, language)
        return
    if not isinstance(this, exp.Identifier) or not all(parts):
        raise refused("a table must be given by its name")
    _check_name(parts, quoted=bool(this.quoted), language=language)
    if language.files_as_tables and _names_a_file(parts, quoted=bool(this.quoted)):
        raise refused(
            f"{'.'.join(parts)[:60]!r} reads as a file; only tables of the catalogue can be queried"
        )
    if not node.db and is_cte(node):
        return
    catalog = node.catalog if language.catalogs_differ else ""
    ref = make_ref(node.db or None, node.name, catalog=catalog or None)
    if ref not in seen.tables:
        seen.tables.append(ref)


def _unnested(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    """A path in FROM that the parser takes for an array may be a table to the engine: it may not name a system one."""
    del seen
    if language.paths_in_from:
        for column in node.expressions:
            if isinstance(column, exp.Column):
                _check_name([part.name for part in column.parts], quoted=True, language=language)


def _check_name(parts: list[str], *, quoted: bool, language: Dialect) -> None:
    """`parts` as the engine splits them: some take the dots of one quoted name for separators."""
    split = (
        [piece for part in parts for piece in part.lower().split(".")] if language.dots_split_names else None
    )
    lowered = split or [part.lower() for part in parts]
    last = lowered[-1]
    system = any(
        part in language.system_schemas or part.startswith(language.system_schema_prefixes)
        for part in (lowered if split else lowered[:-1])
    )
    own = len(lowered) > 1 and not language.system_names_anywhere
    if not own and (last.startswith(language.system_prefixes) or last in language.system_tables):
        system = True
    if len(lowered) == 1 and not quoted and last in language.system_values:
        raise refused(f"{parts[0]} asks about the session; if it is a table, quote it")
    if system:
        raise refused(f"{'.'.join(parts)} belongs to the system; the schema of the data is given to you")


def _names_a_file(parts: list[str], *, quoted: bool) -> bool:
    """A name without schema, or with one that looks like a path, can be taken for a file; a quoted one with cannot."""
    if len(parts) == 1:
        return parts[0].startswith(".") or bool(_FILE_LIKE.search(parts[0]))
    if any(_FILE_LIKE.search(part) or part.startswith(".") for part in parts[:-1]):
        return True
    return not quoted and bool(_FILE_LIKE.search("." + parts[-1]))


def _check_table_function(function: exp.Func, qualifiers: list[str], language: Dialect) -> None:
    aliases = () if isinstance(function, exp.Anonymous) else type(function).sql_names()
    known = {call_name(function).lower(), *(alias.lower() for alias in aliases)}
    if qualifiers or not known & language.table_functions:
        raise refused(f"the table function {call_name(function)[:60]} is not allowed; query tables by name")


def is_cte(table: exp.Table) -> bool:
    """Whether the bare name is a common table expression where it stands (an inner `x` of CTE `x` is the table)."""
    name = table.name.lower()
    child: exp.Expr = table
    while child.parent is not None:
        parent = child.parent
        clause = parent.args.get("with_")
        if isinstance(parent, exp.With):
            recursive = bool(parent.args.get("recursive"))
            for cte in parent.expressions:
                if cte is child and not recursive:
                    break
                if cte.alias.lower() == name:
                    return True
        elif (
            clause is not None
            and clause is not child
            and any(cte.alias.lower() == name for cte in clause.expressions)
        ):
            return True
        child = parent
    return False


# -------------------------------------------------------------------------------------------------- functions


def _anonymous(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    del seen
    if not isinstance(node.this, str):
        raise refused(f"write the function name {node.name!r} without quotes")
    name = node.this.lower()
    parent = node.parent
    if isinstance(parent, exp.Dot) and isinstance(parent.this, exp.Identifier):
        dotted = f"{parent.this.name.lower()}.{name}"
        if dotted in language.functions:
            return
    if not name.isascii() or name not in language.functions | language.table_functions:
        raise not_listed(node.this, language)


def _series(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    del language, seen
    start, end, step = (_number(node.args.get(part)) for part in ("start", "end", "step"))
    if start is not None and end is not None and abs(end - start) / abs(step or 1) > MAX_SERIES_ROWS:
        raise refused(f"a series may have at most {MAX_SERIES_ROWS:,} rows")


def _repeated(node: exp.Expr, language: Dialect, seen: Seen) -> None:
    del language, seen
    length = _number(node.args.get("times") or node.args.get("expression"))
    if length is not None and length > MAX_REPEATED_CHARS:
        raise refused(f"a text may be repeated or padded to at most {MAX_REPEATED_CHARS:,} characters")


def _number(node: exp.Expr | None) -> float | None:
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        try:
            return float(node.name)
        except ValueError:
            return None
    return None


_FUNCTION_RULES: dict[type[exp.Expr], Rule] = {
    exp.Anonymous: _anonymous,
    exp.GenerateSeries: _series,
    exp.Repeat: _repeated,
    exp.Pad: _repeated,
    exp.Unnest: _unnested,
}
_NODE_RULES: dict[type[exp.Expr], Rule] = {
    exp.Select: _select,
    exp.Table: _table,
    exp.TableAlias: _table_alias,
    exp.Dot: _dot,
    exp.Column: _column,
    exp.In: _membership,
    exp.DataType: _data_type,
}
