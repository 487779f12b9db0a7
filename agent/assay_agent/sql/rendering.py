"""From a checked tree to the text that runs, with the same meaning. Pure; used by the guard alone.

The parser's own generator changes a few things on the way; each is undone here, and a test runs every query of a corpus
in both forms on the real engine. Rendering the parse of a rendering gives that rendering again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from assay_agent.sql.dialects import grammar

# Functions of DuckDB whose arrow argument is a lambda; in any other the arrow takes a part of a JSON value.
_TAKES_LAMBDA = frozenset(
    [
        "apply",
        "array_apply",
        "array_filter",
        "array_reduce",
        "array_transform",
        "columns",
        "filter",
        "list_apply",
        "list_filter",
        "list_reduce",
        "list_transform",
        "reduce",
        "transform",
    ]
)


def render(tree: exp.Expr, *, dialect: str, source: str) -> str:
    """The statement as text, without comments, function names as written. Raises sqlglot's UnsupportedError.

    `source` is the text that was parsed to `tree`. The tree is used up: what it holds afterwards is no longer its meaning.
    """
    for sign, rewrite in _REWRITES.get(dialect, ()):
        if sign.search(source):
            rewrite(tree)
    text = tree.sql(
        dialect=grammar(dialect),
        copy=False,
        comments=False,
        normalize_functions=False,
        unsupported_level=ErrorLevel.RAISE,
    )
    return _doubled(text) if dialect in _DOUBLED_QUOTES and "\\'" in text else text


def _doubled(text: str) -> str:
    """`'it\\'s'` as `'it''s'`: read alike whether or not the server lets a backslash escape."""
    parts: list[str] = []
    inside = ""
    index = 0
    while index < len(text):
        pair = text[index : index + 2]
        if inside == "'" and pair[0] == "\\" and len(pair) == 2:
            parts.append("''" if pair == "\\'" else pair)
            index += 2
            continue
        if pair[0] in "'\"":
            inside = pair[0] if not inside else "" if pair[0] == inside else inside
        parts.append(pair[0])
        index += 1
    return "".join(parts)


def _json_arrows(tree: exp.Expr) -> None:
    """`f(x -> 'a')` is read as a lambda; and an arrow that stands bare as an argument would be read so again."""
    for arrow in list(tree.find_all(exp.Lambda)):
        if not isinstance(arrow.parent, exp.Func) or _name(arrow.parent) in _TAKES_LAMBDA:
            continue
        if len(arrow.expressions) != 1 or arrow.args.get("colon"):
            continue
        arrow.replace(_extraction(arrow.expressions[0], arrow.this))
    for extract in list(tree.find_all(exp.JSONExtract, exp.JSONExtractScalar)):
        parent = extract.parent
        if isinstance(parent, exp.Func) and not isinstance(
            parent, (exp.JSONExtract, exp.JSONExtractScalar, exp.Cast)
        ):
            extract.replace(exp.paren(extract.copy(), copy=False))


def _extraction(name: exp.Expr, body: exp.Expr) -> exp.Expr:
    """`name -> body`, where `body` is a path, or further arrows whose first step is a path."""
    column = exp.Column(this=name.copy()) if isinstance(name, exp.Identifier) else name.copy()
    whole = body.copy()
    first = whole
    while isinstance(first, (exp.JSONExtract, exp.JSONExtractScalar)):
        first = first.this
    if not isinstance(first, exp.Literal):
        raise UnsupportedError("write json_extract(x, path) instead of x -> path inside a function")
    step = exp.JSONExtract(this=column, expression=first.copy())
    if first is whole:
        return step
    first.replace(step)
    return whole


def _name(node: exp.Func) -> str:
    return str(node.name if isinstance(node, exp.Anonymous) else type(node).sql_names()[0]).lower()


def _numeric_affinity(tree: exp.Expr) -> None:
    """`CAST(x AS NUMERIC)` keeps integers whole; as REAL, which the generator writes, it would not."""
    for cast in tree.find_all(exp.Cast):
        if cast.to.is_type(exp.DType.DECIMAL):
            cast.set("to", exp.DataType(this=exp.DType.USERDEFINED, kind="NUMERIC"))


_REWRITES: dict[str, tuple[tuple[re.Pattern[str], Callable[[exp.Expr], None]], ...]] = {
    "duckdb": ((re.compile("->"), _json_arrows),),
    "sqlite": ((re.compile("(?i)numeric|decimal"), _numeric_affinity),),
}
"""What to undo, and the sign in a text without which there is nothing to undo."""
_DOUBLED_QUOTES = frozenset({"redshift"})
