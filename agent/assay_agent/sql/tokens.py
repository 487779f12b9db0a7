"""What a text must satisfy before the parser may see it, and what its tokens must satisfy before it may run. Pure.

Used by the guard alone. The parser reads tokens and nothing else, so what is proven of the tokens of a text is proven of
every reading of it: one statement, a query's first word, bounded nesting, no look-alike letters, no unlisted call.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

import sqlglot
from sqlglot import Token, TokenType

from assay_agent.sql.dialects import Dialect, tokenize
from assay_agent.sql.functions import names
from assay_core.errors import QueryError

MAX_NESTING = 200
MAX_LITERAL_NESTING = 8
"""`[`, `{` and brackets after a type's name that are open at once: `date(array[{…`."""
MAX_SUBSCRIPTS = 50
"""Subscripts in a row, `a[1][2]…`, or casts, `a::int::text…`: one dialect's parser takes them in quadratic time."""

_STARTS = frozenset({"select", "with", "from", "values", "table", "pivot", "unpivot", "("})
_QUOTED = frozenset(
    {
        TokenType.STRING,
        TokenType.IDENTIFIER,
        TokenType.NATIONAL_STRING,
        TokenType.RAW_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.UNICODE_STRING,
        TokenType.BYTE_STRING,
    }
)
_TYPE_TOKENS = frozenset(sqlglot.Parser.TYPE_TOKENS)
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
# Words that may stand before a parenthesis without being a function.
_STRUCTURE = names("""
    all and any array as asof between by case cross cube distinct else end escape except exclude exists filter following
    from full glob group having ilike in inner intersect interval is join lateral left like limit materialized not
    offset on only or order outer over overlaps partition pivot preceding qualify recursive replace right rollup row rows
    select sets similar some struct system bernoulli reservoir tablesample then to union unpivot using values when where
    window with within positional semi anti natural name map table lambda return cast try_cast approximate
    """)
_TYPES = names("""
    decimal numeric varchar char bpchar character varying text timestamp timestamptz time timetz bit varbit float double
    bigint int integer smallint tinyint hugeint struct map union enum nvarchar interval dec real string blob timestamp_ns
    timestamp_s timestamp_ms
    """)
_FOREIGN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\'")
"""A quote that only a backslash keeps inside the text."""


def refused(reason: str) -> QueryError:
    return QueryError(f"Refused before execution: {reason}.", kind="guard")


INTERNAL_ERRORS = (TypeError, AttributeError, IndexError, KeyError)
"""How the compiled parser meets some malformed texts; to us they are texts it cannot read."""


def unreadable(language: Dialect) -> QueryError:
    return refused(f"the statement cannot be parsed as {language.title}")


def check_characters(sql: str) -> None:
    """No control characters but white space, no half of a surrogate pair."""
    if not sql.isprintable():
        for char in sql:
            if char < " " and char not in "\t\n\r":
                raise refused(f"the statement holds the control character U+{ord(char):04X}; remove it")
            if "\ud800" <= char <= "\udfff":
                raise refused("the statement holds half of a surrogate pair; remove it")
    if not sql.strip():
        raise refused("the statement is empty")


def tokens_of(sql: str, language: Dialect) -> list[Token]:
    try:
        return tokenize(sql, dialect=language.name)
    except INTERNAL_ERRORS as error:
        raise unreadable(language) from error


def same_tokens(tokens: list[Token], others: list[Token]) -> bool:
    """Whether two texts give the same tokens; only keywords and bare names may differ in case."""
    return len(tokens) == len(others) and all(
        a.token_type is b.token_type
        and (a.text == b.text or (a.token_type not in _QUOTED and a.text.lower() == b.text.lower()))
        for a, b in zip(tokens, others, strict=True)
    )


def check_tokens(tokens: list[Token], language: Dialect) -> None:
    """One statement, a query's first word, nesting within what the parser bears, letters that can be seen."""
    words = list(tokens)
    while words and words[-1].token_type is TokenType.SEMICOLON:
        words.pop()
    if not words:
        raise refused("the statement is empty")
    first = words[0].text.lower()
    if first not in _STARTS or words[0].token_type in _QUOTED:
        stacked = any(token.token_type is TokenType.SEMICOLON for token in words)
        raise (
            _stacked()
            if stacked
            else refused(
                f"only a query may run, starting with SELECT or WITH; this starts with {words[0].text[:30]!r}"
            )
        )
    _check_nesting(words)
    previous: TokenType | None = None
    for token in words:
        kind = token.token_type
        if kind is TokenType.SEMICOLON:
            raise _stacked()
        if kind is TokenType.L_BRACE and (not language.struct_literals or previous is TokenType.L_BRACE):
            raise refused("braces have no meaning here; a template must be filled in before")
        previous = kind
        if kind not in _QUOTED:
            _check_word(token.text, language)
        elif (
            kind is TokenType.IDENTIFIER
            and language.plain_names
            and ("\\" in token.text or "`" in token.text)
        ):
            raise refused("a name may hold neither a backslash nor a backtick; engines read them differently")


def _stacked() -> QueryError:
    return refused("exactly one statement is allowed; remove everything after the first `;`")


def _check_nesting(tokens: list[Token]) -> None:
    """Depths beyond which the parser fails; or needs exponential time, as inside `[`, `{` and after a type's name."""
    opened: list[bool] = []
    literals = chain = casts = 0
    previous: TokenType | None = None
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.DCOLON:
            casts = casts + 1 if before is TokenType.DCOLON else 0
            if casts > MAX_SUBSCRIPTS:
                raise refused("the statement casts one value too often; a single cast is enough")
        if kind in _OPENING:
            literal = previous in _TYPE_TOKENS or kind in (TokenType.L_BRACKET, TokenType.L_BRACE)
            opened.append(literal)
            literals += literal
            chain = chain + 1 if kind is TokenType.L_BRACKET and previous is TokenType.R_BRACKET else 0
            if len(opened) > MAX_NESTING or literals > MAX_LITERAL_NESTING or chain > MAX_SUBSCRIPTS:
                raise refused("the statement is nested too deeply; use CTEs instead of nesting")
        elif kind in _CLOSING and opened:
            literals -= opened.pop()
        before, previous = previous, kind


def _check_word(text: str, language: Dialect) -> None:
    """Outside quotes: letters that can be seen, digits, ASCII signs. `ﬁ`, zero-width and look-alike signs are none."""
    if text.isascii():
        if text.startswith("$") and len(text) > 1:
            raise refused("parameters and variables have no value here; write the value itself")
        if language.unfaithful and text.lower() in language.unfaithful:
            raise refused(f"{text} is not available here; {language.unfaithful[text.lower()]}")
        return
    for char in text:
        # A Kelvin sign is a `k` in lower case: no name may become another one by folding.
        if not char.isascii() and (unicodedata.category(char)[0] not in "LMN" or char.lower().isascii()):
            raise refused(f"the character U+{ord(char):04X} may stand only inside quotes")
    if unicodedata.normalize("NFKC", text) != unicodedata.normalize("NFC", text):
        raise refused(f"{text[:30]!r} holds look-alike characters; write plain letters or quote the name")


# ------------------------------------------------------------------------------------------- what is executed


def check_calls(
    tokens: list[Token], aliases: Collection[str], language: Dialect, *, rendered: bool = True
) -> None:
    """Every word before a parenthesis is structure, a type, an alias or a listed function.

    `aliases` are the lower-case names that stand with a list of columns, as in `t(a, b)`; in a rendering they follow AS.
    """
    opening, string, quoted = TokenType.L_PAREN, TokenType.STRING, TokenType.IDENTIFIER
    for index in range(1, len(tokens)):
        if tokens[index].token_type is not opening:
            continue
        token = tokens[index - 1]
        kind, text = token.token_type, token.text
        word = text.lower().rsplit(maxsplit=1)[-1] if text.strip() else ""
        if kind is string or not word or not (word[0].isalpha() or word[0] == "_" or kind is quoted):
            continue
        previous = tokens[index - 2].text.lower() if index > 1 else ""
        if word in aliases and (not rendered or previous in ("as", "with", "recursive", ",")):
            continue
        if kind is quoted:
            raise refused(
                f"{text[:60]!r} stands before a parenthesis in quotes; write a function name plainly"
            )
        if not (
            word in language.functions
            or word in _STRUCTURE
            or word in _TYPES
            or word in language.table_functions
            or (previous == "." and f"{tokens[index - 3].text.lower()}.{word}" in language.functions)
        ):
            raise not_listed(text, language)


def not_listed(name: str, language: Dialect) -> QueryError:
    return refused(f"the function {name[:60]} is not on the list of allowed {language.title} functions")


def check_escapes(sql: str, language: Dialect) -> None:
    """Where servers differ in whether a backslash escapes, no text may end differently for the one and the other."""
    if language.doubled_quotes and "\\'" in sql and _FOREIGN_ESCAPE.search(sql):
        raise refused("a quote inside a text is written twice ('it''s'), not with a backslash")
