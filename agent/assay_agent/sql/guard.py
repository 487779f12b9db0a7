"""The first gate of a statement that a model wrote: one read-only query of known parts, or a QueryError.

`check` is pure and total: any text gives `Guarded` or `QueryError(kind="guard")`, whose words tell the model what to
change. Everything is denied unless listed: see `tokens` for the text, `tree` for the nodes. What is returned for
execution is not the model's text but the rendering of the checked tree, parsed and checked once more unless both texts
have the same tokens, so that what was checked is what runs. `query.run_query`, the tenant filter and the validators call
it; a read-only session stands behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import Token, exp
from sqlglot.errors import ErrorLevel, SqlglotError

from assay_agent.sql.dialects import Dialect, dialect_of, grammar
from assay_agent.sql.rendering import render
from assay_agent.sql.tokens import (
    INTERNAL_ERRORS,
    check_calls,
    check_characters,
    check_escapes,
    check_tokens,
    refused,
    same_tokens,
    tokens_of,
    unreadable,
)
from assay_agent.sql.tree import check_tree

MAX_CHARS = 100_000
MAX_RENDERINGS = 3
"""Rounds of rendering and parsing within which a statement must come to rest; most do in the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A statement that may run: the text to execute, and the tables it names (CTEs left out), sorted."""

    sql: str
    tables: tuple[str, ...]


Proof = Callable[[exp.Expr], None]
"""A further question to the tree of a statement; raises QueryError when the answer is no, and changes nothing."""


def check(sql: str, *, dialect: str, max_chars: int = MAX_CHARS, proof: Proof | None = None) -> Guarded:
    """Prove that `sql` is one allowed read-only query of `dialect`; raises QueryError(kind="guard").

    `proof` is asked of every tree on the way, and so of the tree of the text that is returned.
    """
    language = dialect_of(dialect)
    if len(sql) > max_chars:
        raise refused(f"the statement has {len(sql):,} characters; at most {max_chars:,} are allowed")
    check_characters(sql)
    try:
        return _check(sql.removeprefix("\ufeff"), language, proof)
    except RecursionError:
        raise refused("the statement is nested too deeply; use CTEs instead of nesting") from None
    except SqlglotError as error:
        raise refused(f"the statement cannot be parsed as {language.title}: {_first_line(error)}") from None


def parsed(guarded: Guarded, *, dialect: str) -> exp.Expr:
    """The tree of a statement that has passed, for the caller to change."""
    language = dialect_of(dialect)
    return _parse(tokens_of(guarded.sql, language), guarded.sql, language)


def _check(sql: str, language: Dialect, proof: Proof | None) -> Guarded:
    tokens = tokens_of(sql, language)
    check_tokens(tokens, language)
    tree = _parse(tokens, sql, language)
    seen = check_tree(tree, language)
    if proof is not None:
        proof(tree)
    rendered = render(tree, dialect=language.name, source=sql)
    rendered_tokens = tokens if rendered == sql else tokens_of(rendered, language)
    # The parser sees tokens only: with the same tokens the rendering would be parsed to the very tree that was checked.
    settled = rendered_tokens is tokens or same_tokens(tokens, rendered_tokens)
    if not settled:
        # The parser may have taken a call for something else and rendered that.
        check_calls(tokens, seen.aliases, language, rendered=False)
    for _ in range(MAX_RENDERINGS):
        if settled:
            check_escapes(rendered, language)
            check_calls(rendered_tokens, seen.aliases, language)
            return Guarded(sql=rendered, tables=tuple(sorted(seen.tables)))
        tree = _parse(rendered_tokens, rendered, language)
        seen = check_tree(tree, language)
        if proof is not None:
            proof(tree)
        again = render(tree, dialect=language.name, source=rendered)
        settled = again == rendered
        if not settled:
            rendered, rendered_tokens = again, tokens_of(again, language)
    raise refused("the statement cannot be read unambiguously; write it in a simpler form")


def _parse(tokens: list[Token], sql: str, language: Dialect) -> exp.Expr:
    """The one query of a text, from its tokens."""
    parser = grammar(language.name).parser(error_level=ErrorLevel.IMMEDIATE)
    try:
        found = parser.parse(tokens, sql)
    except INTERNAL_ERRORS as error:
        raise unreadable(language) from error
    statements = [tree for tree in found if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(statements) != 1:
        raise refused("exactly one statement is allowed")
    tree = statements[0]
    if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.Pivot)):
        raise refused(f"only a SELECT query may run, not {tree.key.upper()}")
    return tree


def _first_line(error: Exception) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    text = re.sub(r"^Required keyword: .*?>\.", "something is missing.", text)
    return (text.splitlines() or ["syntax error"])[0][:200]
