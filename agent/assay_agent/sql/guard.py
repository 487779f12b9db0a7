"""The first gate of a statement that a model wrote: one read-only query of known parts, or a QueryError.

`check` is pure and total: any text gives `Guarded` or `QueryError(kind="guard")`, whose words tell the model what to
change. Everything is denied unless listed: node classes here, functions and table functions in `functions`. What is
returned for execution is not the model's text but the rendering of the checked tree, parsed and checked once more, so
that what was checked is what runs. `query.run_query` and the validators call it; a read-only session stands behind it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ErrorLevel, SqlglotError

from assay_agent.sql.dialects import Dialect, dialect_of, make_ref
from assay_agent.sql.functions import names
from assay_agent.sql.nodes import LISTED_NODES, REFUSED_FUNCTIONS, TABLE_PARTS
from assay_agent.sql.rendering import render
from assay_core.errors import QueryError

MAX_NESTING = 200
MAX_LITERAL_NESTING = 8
"""`[`, `{` and brackets after a type's name that are open at once: `date(array[{…`."""
MAX_SUBSCRIPTS = 50
"""Subscripts in a row: `a[1][2]…`."""
MAX_CHARS = 100_000
MAX_NODES = 50_000
MAX_RENDERINGS = 3
"""Rounds of rendering and parsing within which a statement must come to rest; most do in the first."""
MAX_SERIES_ROWS = 10_000_000
"""Rows a series with literal bounds may make."""

_STARTS = frozenset({"select", "with", "from", "values", "table", "pivot", "unpivot", "("})
_QUOTED_TOKENS = frozenset(
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
    offset on only or order outer over partition pivot preceding qualify recursive replace right rollup row rows select
    sets similar some struct system bernoulli reservoir tablesample then to union unpivot using values when where window
    with within positional semi anti natural name map table lambda return cast try_cast values overlaps
    """)
_TYPES = names("""
    decimal numeric varchar char bpchar character varying text timestamp timestamptz time timetz bit varbit float double
    bigint int integer smallint tinyint hugeint struct map union enum nvarchar interval dec real string blob timestamp_ns
    timestamp_s timestamp_ms
    """)
_FILE_LIKE = re.compile(
    r"(?i)\.(csv|tsv|txt|parquet|json|jsonl|ndjson|arrow|feather|ipc|xlsx?|db|duckdb|sqlite|gz|zst|avro|orc|geojson|shp)$"
    r"|[/\\*?]|://|^[a-z]+:"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A statement that may run: its tree, the text to execute, and the tables it names (CTEs left out), sorted."""

    expression: exp.Expr
    sql: str
    tables: tuple[str, ...]


def check(sql: str, *, dialect: str, max_chars: int = MAX_CHARS) -> Guarded:
    """Prove that `sql` is one allowed read-only query of `dialect`; raises QueryError(kind="guard")."""
    language = dialect_of(dialect)
    if len(sql) > max_chars:
        raise _refused(f"the statement has {len(sql):,} characters; at most {max_chars:,} are allowed")
    _check_characters(sql)
    try:
        return _check(sql.removeprefix("\ufeff"), language)
    except RecursionError:
        raise _refused("the statement is nested too deeply; use CTEs instead of nesting") from None
    except SqlglotError as error:
        raise _refused(f"the statement cannot be parsed as {language.title}: {_first_line(error)}") from None


def _check(sql: str, language: Dialect) -> Guarded:
    tokens = _tokens(sql, language)
    _check_tokens(tokens)
    tree = _parse(sql, language)
    _check_tree(tree, language)
    rendered = render(tree, dialect=language.name)
    rendered_tokens = _tokens(rendered, language)
    if _same(tokens, rendered_tokens):
        # The parser sees tokens only: the rendering would be parsed to the very tree that was checked.
        _check_calls(rendered_tokens, tree, language)
        return Guarded(expression=tree, sql=rendered, tables=tuple(sorted(_tables(tree))))
    for _ in range(MAX_RENDERINGS):
        tree = _parse(rendered, language)
        _check_tree(tree, language)
        again = render(tree, dialect=language.name)
        if again == rendered:
            _check_calls(_tokens(rendered, language), tree, language)
            return Guarded(expression=tree, sql=rendered, tables=tuple(sorted(_tables(tree))))
        rendered = again
    raise _refused("the statement cannot be read unambiguously; write it in a simpler form")


# ------------------------------------------------------------------------------------------------------- text


def _check_characters(sql: str) -> None:
    for char in sql:
        if char < " " and char not in "\t\n\r":
            raise _refused(f"the statement holds the control character U+{ord(char):04X}; remove it")
        if "\ud800" <= char <= "\udfff":
            raise _refused("the statement holds half of a surrogate pair; remove it")
    if not sql.strip():
        raise _refused("the statement is empty")


@contextmanager
def _parsing(language: Dialect) -> Iterator[None]:
    """The compiled parser meets some malformed texts with an internal error; to us they are texts it cannot read."""
    try:
        yield
    except (TypeError, AttributeError, IndexError, KeyError) as error:
        raise _refused(f"the statement cannot be parsed as {language.title}") from error


def _tokens(sql: str, language: Dialect) -> list[Token]:
    with _parsing(language):
        return list(sqlglot.tokenize(sql, read=language.name))


def _same(tokens: list[Token], others: list[Token]) -> bool:
    """Whether two texts give the same tokens; only keywords and bare names may differ in case."""
    return len(tokens) == len(others) and all(
        a.token_type is b.token_type
        and (a.text == b.text or (a.token_type not in _QUOTED_TOKENS and a.text.lower() == b.text.lower()))
        for a, b in zip(tokens, others, strict=True)
    )


def _check_tokens(tokens: list[Token]) -> None:
    """What must hold before the parser may see the text: one statement, a query's first word, bounded nesting."""
    words = list(tokens)
    while words and words[-1].token_type is TokenType.SEMICOLON:
        words.pop()
    if not words:
        raise _refused("the statement is empty")
    if any(token.token_type is TokenType.SEMICOLON for token in words):
        raise _refused("exactly one statement is allowed; remove everything after the first `;`")
    first = words[0].text.lower()
    if first not in _STARTS or words[0].token_type in _QUOTED_TOKENS:
        raise _refused(
            f"only a query may run, starting with SELECT or WITH; this starts with {words[0].text[:30]!r}"
        )
    _check_nesting(words)
    for token in words:
        if token.token_type not in _QUOTED_TOKENS:
            _check_word(token.text)


def _check_nesting(tokens: list[Token]) -> None:
    """Depths beyond which the parser fails; or needs exponential time, as inside `[`, `{` and after a type's name."""
    opened: list[bool] = []
    chain = 0
    previous: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            opened.append(previous in _TYPE_TOKENS or kind in (TokenType.L_BRACKET, TokenType.L_BRACE))
            chain = chain + 1 if kind is TokenType.L_BRACKET and previous is TokenType.R_BRACKET else 0
        elif kind in _CLOSING and opened:
            opened.pop()
        if len(opened) > MAX_NESTING or sum(opened) > MAX_LITERAL_NESTING or chain > MAX_SUBSCRIPTS:
            raise _refused("the statement is nested too deeply; use CTEs instead of nesting")
        previous = kind


def _check_word(text: str) -> None:
    """Outside quotes: letters that can be seen, digits, ASCII signs. `ﬁ`, zero-width and look-alike signs are none."""
    if text.startswith("$") and len(text) > 1:
        raise _refused("parameters and variables have no value here; write the value itself")
    if text.isascii():
        return
    for char in text:
        if not char.isascii() and unicodedata.category(char)[0] not in "LMN":
            raise _refused(f"the character U+{ord(char):04X} may stand only inside quotes")
    if unicodedata.normalize("NFKC", text) != unicodedata.normalize("NFC", text):
        raise _refused(f"{text[:30]!r} holds look-alike characters; write plain letters or quote the name")


def _first_line(error: Exception) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    text = re.sub(r"^Required keyword: .*?>\.", "something is missing.", text)
    return (text.splitlines() or ["syntax error"])[0][:200]


def _refused(reason: str) -> QueryError:
    return QueryError(f"Refused before execution: {reason}.", kind="guard")


# ------------------------------------------------------------------------------------------------------- tree


def _parse(sql: str, language: Dialect) -> exp.Expr:
    with _parsing(language):
        parsed = sqlglot.parse(sql, read=language.name, error_level=ErrorLevel.IMMEDIATE)
    statements = [tree for tree in parsed if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(statements) != 1:
        raise _refused("exactly one statement is allowed")
    tree = statements[0]
    if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.Pivot)):
        raise _refused(f"only a SELECT query may run, not {tree.key.upper()}")
    return tree


def _check_tree(tree: exp.Expr, language: Dialect) -> None:
    for count, node in enumerate(tree.walk()):
        if count > MAX_NODES:
            raise _refused(f"the statement has more than {MAX_NODES:,} parts; make it smaller")
        _check_node(node, language)


def _check_node(node: exp.Expr, language: Dialect) -> None:
    name = type(node).__name__
    if isinstance(node, exp.Func):
        if name in REFUSED_FUNCTIONS:
            raise _refused(f"the function {_call_name(node)} is not allowed")
        if isinstance(node, exp.Anonymous):
            _check_anonymous(node, language)
        if isinstance(node, exp.GenerateSeries):
            _check_series(node)
    elif name not in LISTED_NODES:
        raise _refused(_why_not(node))
    if isinstance(node, exp.Select):
        _check_select(node)
    elif isinstance(node, exp.Table):
        _check_table(node, language)
    elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        prefix = node.this
        if not (isinstance(prefix, exp.Identifier) and prefix.name.lower() in language.function_schemas):
            raise _refused(f"write {_call_name(node.expression)}(…) without anything before the name")
    elif isinstance(node, exp.Column):
        _check_column(node, language)


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


def _check_select(node: exp.Select) -> None:
    if not node.expressions and not node.args.get("from_"):
        raise _refused("the query selects nothing")
    for part in (
        "into",
        "locks",
        "connect",
        "match",
        "hint",
        "kind",
        "prewhere",
        "options",
        "settings",
        "format",
    ):
        value = node.args.get(part)
        if isinstance(value, exp.Expr):
            raise _refused(_why_not(value))
        if value:
            reason = _why_not(value[0]) if isinstance(value, list) else f"{part.upper()} is not allowed"
            raise _refused(reason)


def _call_name(node: exp.Func) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.name)
    if isinstance(node, exp.ExplodingGenerateSeries):
        return "generate_series"
    return str(type(node).sql_names()[0]).lower()


def _check_anonymous(node: exp.Anonymous, language: Dialect) -> None:
    if not isinstance(node.this, str):
        raise _refused(f"write the function name {node.name!r} without quotes")
    name = node.this.lower()
    if not name.isascii() or name not in language.functions | language.table_functions:
        raise _refused(
            f"the function {node.this[:60]} is not on the list of allowed {language.title} functions"
        )


def _check_series(node: exp.GenerateSeries) -> None:
    start, end, step = (_number(node.args.get(part)) for part in ("start", "end", "step"))
    if start is not None and end is not None and abs(end - start) / abs(step or 1) > MAX_SERIES_ROWS:
        raise _refused(f"a series may have at most {MAX_SERIES_ROWS:,} rows")


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


def _check_column(node: exp.Column, language: Dialect) -> None:
    identifier = node.this
    if not isinstance(identifier, exp.Identifier) or identifier.quoted or node.table:
        return
    if identifier.name.lower() in language.system_values:
        raise _refused(f"{identifier.name} asks about the session; if it is a column, quote it")


def _check_table(node: exp.Table, language: Dialect) -> None:
    extra = sorted(name for name, value in node.args.items() if value and name not in TABLE_PARTS)
    if extra:
        raise _refused(f"{extra[0].upper().replace('_', ' ')} is not allowed on a table")
    parts = [part.name for part in node.parts if isinstance(part, exp.Identifier)]
    if isinstance(node.this, exp.Func):
        _check_table_function(node.this, parts, language)
        return
    if not isinstance(node.this, exp.Identifier) or not all(parts):
        raise _refused("a table must be given by its name")
    lowered = [part.lower() for part in parts]
    system = any(part in language.system_schemas or part.startswith("pg_toast") for part in lowered[:-1])
    own = len(parts) > 1 and not language.system_names_anywhere
    if system or (not own and lowered[-1].startswith(language.system_prefixes)):
        raise _refused(f"{'.'.join(parts)} belongs to the system; the schema of the data is given to you")
    if language.files_as_tables and _names_a_file(node, parts):
        raise _refused(
            f"{'.'.join(parts)[:60]!r} reads as a file; only tables of the catalogue can be queried"
        )


def _names_a_file(node: exp.Table, parts: list[str]) -> bool:
    """A name without schema, or with one that looks like a path, can be taken for a file; a quoted one with cannot."""
    if len(parts) == 1:
        return bool(_FILE_LIKE.search(parts[0]))
    if any(_FILE_LIKE.search(part) or part.startswith(".") for part in parts[:-1]):
        return True
    quoted = isinstance(node.this, exp.Identifier) and node.this.quoted
    return not quoted and bool(_FILE_LIKE.search("." + parts[-1]))


def _check_table_function(function: exp.Func, qualifiers: list[str], language: Dialect) -> None:
    aliases = () if isinstance(function, exp.Anonymous) else type(function).sql_names()
    known = {_call_name(function).lower(), *(alias.lower() for alias in aliases)}
    if qualifiers or not known & language.table_functions:
        raise _refused(f"the table function {_call_name(function)[:60]} is not allowed; query tables by name")


# ------------------------------------------------------------------------------------------- what is executed


def _check_calls(tokens: list[Token], tree: exp.Expr, language: Dialect) -> None:
    """Every word before a parenthesis in the text that will run is structure, a type, an alias or a listed function."""
    aliases = {
        alias.name.lower()
        for alias in tree.find_all(exp.TableAlias)
        if alias.args.get("columns") and alias.this
    }
    for previous, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        if following.token_type is not TokenType.L_PAREN or token.token_type is TokenType.STRING:
            continue
        word = token.text.lower().rsplit(maxsplit=1)[-1] if token.text.strip() else ""
        if not word or not (word[0].isalpha() or word[0] == "_" or token.token_type is TokenType.IDENTIFIER):
            continue
        after_as = previous is not None and previous.text.lower() in ("as", "with", "recursive", ",")
        if after_as and word in aliases:
            continue
        if token.token_type is TokenType.IDENTIFIER:
            raise _refused(
                f"{token.text[:60]!r} stands before a parenthesis in quotes; write a function name plainly"
            )
        known = (
            word in _STRUCTURE
            or word in _TYPES
            or word in language.functions
            or word in language.table_functions
        )
        if not known:
            raise _refused(
                f"the function {token.text[:60]} is not on the list of allowed {language.title} functions"
            )


def _tables(tree: exp.Expr) -> Iterator[str]:
    seen: set[str] = set()
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            continue
        if not table.db and _is_cte(table):
            continue
        ref = make_ref(table.db or None, table.name)
        if ref not in seen:
            seen.add(ref)
            yield ref


def _is_cte(table: exp.Table) -> bool:
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
