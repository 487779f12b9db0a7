"""What the agent knows about each SQL dialect: a frozen table, one row per dialect.

The guard reads the allow-lists and system names, repair reads the hints, adapters and prompts read the quoting. A
further dialect is a further row here and lists in `functions`; no other module compares dialect names. Pure.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from sqlglot import Token, Tokenizer
from sqlglot.dialects.dialect import Dialect as Grammar

from assay_agent.sql import functions
from assay_core.errors import ConfigError

_SESSION_VALUES = functions.names(
    "user current_user session_user system_user current_role current_catalog current_schema"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """`name` is also sqlglot's name for it. All name sets are lower-case."""

    name: str
    title: str
    functions: frozenset[str]
    table_functions: frozenset[str]
    system_schemas: frozenset[str]
    system_prefixes: tuple[str, ...]
    """An unqualified table name that starts so is the system's; a qualified one too if `system_names_anywhere`."""
    system_names_anywhere: bool
    function_schemas: frozenset[str]
    """Schemas whose name may stand before a function's, because nobody can add to them."""
    system_values: frozenset[str]
    """Words that read as a column and answer about the session when they are not quoted."""
    files_as_tables: bool
    """A table name may be taken for a file name."""
    hints: tuple[str, ...]
    """Common mistakes and what to write instead, for the repair prompt."""
    system_tables: frozenset[str] = frozenset()
    """Table names that are the system's in whole, where the prefixes would catch too much."""
    system_schema_prefixes: tuple[str, ...] = ()
    """Schemas that start so are the system's, and nobody can create one."""
    dots_split_names: bool = False
    """One quoted name with dots in it is read as several."""
    struct_literals: bool = False
    """`{'a': 1}` is a value."""
    catalogs_differ: bool = False
    """What stands before the schema tells tables apart; elsewhere it can only be the one there is."""
    row_kinds: bool = False
    """SELECT AS STRUCT and SELECT AS VALUE exist."""
    in_reads_a_table: bool = False
    """`x IN name` reads the table `name`."""
    catalogue_types: bool = False
    """Types exist whose input looks a name up in the catalogue, as regclass does."""
    backticks: bool = False
    """Names are quoted in backticks; double quotes make a text."""
    plain_names: bool = False
    """A backslash in a quoted name escapes for the engine, and not for the parser."""
    doubled_quotes: bool = False
    """Whether a backslash escapes in a text is a setting of the server: a quote must be doubled."""
    quoted_names_differ: bool = False
    """A quoted name is taken as it is, an unquoted one in lower case."""
    subqueries_are_sampled: bool = False
    """TABLESAMPLE may follow a subquery."""
    paths_in_from: bool = False
    """In FROM, `alias.column` reads an array, and looks as a table does."""
    unfaithful: Mapping[str, str] = field(default_factory=dict)
    """Words that the parser turns into something of another meaning, and what to write instead."""


_WORD = re.compile(r"[a-z_][a-z0-9_]*")
_QUOTED = re.compile(r'"((?:[^"]|"")+)"|`([^`]+)`')

# Words that need quotes as a name in at least one of the dialects.
_RESERVED = functions.names("""
    all analyse analyze and any array as asc asof assert_rows_modified asymmetric at authorization between binary both by
    case cast check collate collation column columns concurrently constraint contains create cross cube current
    current_catalog current_date current_role current_schema current_time current_timestamp current_user default
    deferrable define delete desc describe distinct do drop else end enum escape except exclude exists extract false fetch
    filter first following for foreign freeze from full generated glob grant group grouping groups hash having if ignore
    ilike in index initially inner insert intersect interval into is isnull join key lambda last lateral leading left like
    limit localtime localtimestamp lookup map match merge natural new no not notnull null nulls of offset on only or order
    outer over overlaps partition percent pivot placing positional preceding primary proto qualify range recursive
    references regexp replace respect returning right rollup row rows select semi session_user set show similar some
    struct summarize symmetric system_user table tablesample temp temporary then ties to trailing treat trigger true
    try_cast unbounded union unique unnest unpivot update user using values variadic verbose view virtual when where
    window with within without
    """)

DUCKDB = Dialect(
    name="duckdb",
    title="DuckDB",
    functions=functions.DUCKDB,
    table_functions=functions.TABLE_FUNCTIONS["duckdb"],
    system_schemas=frozenset({"information_schema", "pg_catalog", "system", "temp"}),
    system_prefixes=("duckdb_", "sqlite_master", "sqlite_schema", "sqlite_temp", "pragma_", "pg_"),
    system_values=_SESSION_VALUES,
    system_names_anywhere=True,
    function_schemas=frozenset(),
    files_as_tables=True,
    struct_literals=True,
    subqueries_are_sampled=True,
    hints=(
        "A name that is not all lower-case letters, digits and underscores, or is a keyword, needs double quotes.",
        "A text column must be cast before arithmetic or date functions: TRY_CAST(x AS DOUBLE), TRY_CAST(x AS DATE).",
        "Dates: date_trunc('month', ts), date_diff('day', a, b), ts + INTERVAL 7 DAY, strftime(ts, '%Y-%m').",
        "`/` divides as floating point; `//` is integer division.",
        "Every selected column is in GROUP BY or inside an aggregate; GROUP BY ALL groups by the rest.",
        "Window results are filtered in QUALIFY, aggregates in HAVING, neither in WHERE.",
        "Percentiles: quantile_cont(x, 0.9) or median(x). Conditional counts: count(*) FILTER (WHERE …).",
        "A table not found: use the exact `schema.table` of the catalogue. Files cannot be read.",
    ),
)

SQLITE = Dialect(
    name="sqlite",
    title="SQLite",
    functions=functions.SQLITE,
    table_functions=functions.TABLE_FUNCTIONS["sqlite"],
    system_schemas=frozenset({"temp", "information_schema"}),
    system_prefixes=("sqlite_", "pragma_", "dbstat"),
    system_tables=frozenset({"bytecode", "tables_used", "fsdir", "zipfile", "completion", "carray"}),
    system_values=frozenset(),
    in_reads_a_table=True,
    system_names_anywhere=True,
    function_schemas=frozenset(),
    files_as_tables=False,
    hints=(
        "There is no DATE type, dates are text or numbers: strftime('%Y-%m', d), date(d, '+7 days'), "
        "julianday(a) - julianday(b).",
        "There is no date_trunc, extract, interval, to_char, ILIKE, QUALIFY, median or percentile function here.",
        "Integer divided by integer is an integer: multiply by 1.0 first.",
        "`||` joins text; concat() may be missing. LIKE already ignores case for ASCII letters.",
        "A window result must be filtered in an outer query.",
        "Cast text before arithmetic: CAST(x AS REAL). Text that is no number casts to 0, so check it.",
        "A name with spaces, capitals that matter, or a keyword needs double quotes; text needs single quotes.",
        "Booleans are 0 and 1.",
    ),
)

POSTGRES = Dialect(
    name="postgres",
    title="PostgreSQL",
    functions=functions.POSTGRES,
    table_functions=functions.TABLE_FUNCTIONS["postgres"],
    system_schemas=frozenset({"information_schema", "pg_catalog", "pg_toast", "pg_temp"}),
    system_prefixes=("pg_",),
    system_values=_SESSION_VALUES,
    system_schema_prefixes=("pg_",),
    catalogue_types=True,
    quoted_names_differ=True,
    system_names_anywhere=False,
    function_schemas=frozenset({"pg_catalog"}),
    files_as_tables=False,
    hints=(
        'Unquoted names are folded to lower case: a column created as "OrderId" must be written with the quotes.',
        "round(x, n) needs numeric: round(x::numeric, 2).",
        "Integer divided by integer is an integer: write x * 1.0 / y or cast; guard zero with NULLIF(y, 0).",
        "Text must be cast before arithmetic or date functions: x::numeric, x::date, to_date(x, 'YYYY-MM-DD').",
        "Dates: date_trunc('month', ts), ts + interval '7 days', a::date - b::date is a number of days, "
        "extract(epoch from a - b) is seconds.",
        "Every selected column is in GROUP BY or inside an aggregate.",
        "There is no QUALIFY: filter a window result in an outer query. An alias of SELECT is not known in WHERE or HAVING.",
        "Percentiles: percentile_cont(0.9) WITHIN GROUP (ORDER BY x). Conditional counts: count(*) FILTER (WHERE …).",
        "There is no median, date_diff, strftime, IFNULL or IF: use percentile_cont, subtraction, to_char, COALESCE, CASE.",
        "UNION branches need the same column types; cast them.",
        "A table not found: qualify it with its schema as in the catalogue.",
    ),
)

BIGQUERY = Dialect(
    name="bigquery",
    title="BigQuery",
    functions=functions.BIGQUERY,
    table_functions=functions.TABLE_FUNCTIONS["bigquery"],
    system_schemas=frozenset({"information_schema"}),
    system_prefixes=("__tables",),
    system_values=_SESSION_VALUES,
    system_names_anywhere=True,
    function_schemas=frozenset(),
    files_as_tables=False,
    dots_split_names=True,
    catalogs_differ=True,
    row_kinds=True,
    plain_names=True,
    backticks=True,
    unfaithful={"::": "write CAST(x AS type)"},
    hints=(
        "Table names go in backticks: `dataset.table` or `project.dataset.table`; text goes in single quotes.",
        "`/` on integers gives FLOAT64 and fails on zero: SAFE_DIVIDE(a, b). Whole division is DIV(a, b).",
        "DATE, DATETIME and TIMESTAMP do not mix: DATE(ts), TIMESTAMP(d), or CAST one of them.",
        "Differences and sums have a part: DATE_DIFF(a, b, DAY), DATE_ADD(d, INTERVAL 7 DAY), TIMESTAMP_TRUNC(ts, HOUR).",
        "Arrays are joined with UNNEST: FROM t, UNNEST(t.items) AS item; an empty array drops the row, LEFT JOIN keeps it.",
        "Fields of a STRUCT are read with a dot; a repeated record must be unnested first.",
        "Every selected column is in GROUP BY or inside an aggregate; STRUCT and ARRAY cannot be grouped.",
        "Window results are filtered in QUALIFY (it needs a WHERE, GROUP BY or HAVING too), aggregates in HAVING.",
        "Percentiles: APPROX_QUANTILES(x, 100)[OFFSET(90)]. Conditional counts: COUNTIF(c).",
        "Every column of a result has a name of its own, whatever its case: alias one of two that are called the same.",
        "SAFE_CAST(x AS INT64) gives NULL where CAST fails. Date shards: `events_*` with _TABLE_SUFFIX in WHERE.",
        "A table not found: use the exact name of the catalogue; names are case-sensitive.",
    ),
)

REDSHIFT = Dialect(
    name="redshift",
    title="Redshift",
    functions=functions.REDSHIFT,
    table_functions=functions.TABLE_FUNCTIONS["redshift"],
    system_schemas=frozenset({"information_schema", "pg_catalog", "pg_internal", "catalog_history", "sys"}),
    system_prefixes=("pg_", "stl_", "stv_", "svl_", "svv_", "svcs_", "stcs_", "sys_", "padb_", "sysh_"),
    system_values=_SESSION_VALUES | {"current_user_id", "current_namespace", "current_aws_account"},
    system_names_anywhere=False,
    system_schema_prefixes=("pg_",),
    function_schemas=frozenset({"pg_catalog"}),
    files_as_tables=False,
    catalogue_types=True,
    doubled_quotes=True,
    paths_in_from=True,
    unfaithful={"add_months": "write DATEADD(month, n, d)"},
    hints=(
        "Unquoted and quoted names alike are folded to lower case.",
        "Integer divided by integer is an integer: write x::float / y; guard zero with NULLIF(y, 0).",
        "Dates: DATE_TRUNC('month', ts), DATEADD(day, 7, d), DATEDIFF(day, a, b), TO_CHAR(ts, 'YYYY-MM').",
        "Text is joined over rows with LISTAGG(x, ', ') WITHIN GROUP (ORDER BY x); there is no STRING_AGG or ARRAY_AGG.",
        "There is no FILTER clause on an aggregate: SUM(CASE WHEN c THEN 1 ELSE 0 END).",
        "Distinct counts of large columns: APPROXIMATE COUNT(DISTINCT x). Percentiles: PERCENTILE_CONT(0.9) WITHIN GROUP "
        "(ORDER BY x) or MEDIAN(x); at most one such order per SELECT.",
        "There is no generate_series over tables and no DISTINCT ON; number rows with ROW_NUMBER() and filter in QUALIFY.",
        "A correlated subquery is allowed only in simple forms; rewrite it as a join.",
        "SUPER values are navigated with dots and [0]; JSON in text needs JSON_EXTRACT_PATH_TEXT(x, 'key').",
        "A table not found: qualify it with its schema as in the catalogue.",
    ),
)

_DIALECTS = {dialect.name: dialect for dialect in (DUCKDB, SQLITE, POSTGRES, BIGQUERY, REDSHIFT)}


def dialect_of(name: str) -> Dialect:
    """The dialect named `name`; raises ConfigError naming those that are known."""
    found = _DIALECTS.get(name)
    if found is None:
        raise ConfigError(f"SQL dialect {name!r} is not known; known: {', '.join(_DIALECTS)}")
    return found


def dialect_names() -> tuple[str, ...]:
    return tuple(_DIALECTS)


# ------------------------------------------------------------------------------------------------- references


def make_ref(schema: str | None, table: str, *, catalog: str | None = None) -> str:
    """The display name of a table; a part that could not be split off again as it is gets quoted."""
    parts = [part for part in (catalog, schema, table) if part is not None]
    return ".".join(
        _quoted(part) if "." in part or '"' in part or part != part.strip() else part for part in parts
    )


def split_ref(ref: str) -> tuple[str | None, str]:
    """(schema, table) of a display name or of its quoted SQL form; the schema is None for a bare table name.

    Of more than two parts the last two count: a leading catalogue name is dropped.
    """
    parts = parts_of(ref)
    return (parts[-2] if len(parts) > 1 else None), parts[-1]


def parts_of(ref: str) -> tuple[str, ...]:
    """The parts of a display name or of its quoted SQL form, one at least. Dots split within backticks too."""
    parts: list[str] = []
    rest = ref.strip()
    while rest:
        quoted = _QUOTED.match(rest)
        if quoted and rest[quoted.end() : quoted.end() + 1] in ("", "."):
            parts += quoted[2].split(".") if quoted[2] else [quoted[1].replace('""', '"')]
            rest = rest[quoted.end() + 1 :]
        else:
            part, _, rest = rest.partition(".")
            parts.append(part)
    return tuple(parts) or (ref,)


def quote_name(name: str, *, dialect: str = "") -> str:
    """A name as SQL, quoted only when it must be. Double quotes serve every dialect but those with `backticks`."""
    if _WORD.fullmatch(name) and name not in _RESERVED:
        return name
    if dialect and dialect_of(dialect).backticks:
        escaped = name.replace("\\", "\\\\").replace("`", "\\`")
        return f"`{escaped}`"
    return _quoted(name)


def quote_ref(ref: str, *, dialect: str = "") -> str:
    """A table's display name as SQL."""
    return ".".join(quote_name(part, dialect=dialect) for part in parts_of(ref))


def sample_statement(ref: str, rows: int, *, dialect: str = "") -> str:
    """A statement for the first rows of a table, as the source gives them."""
    return f"SELECT * FROM {quote_ref(ref, dialect=dialect)} LIMIT {int(rows)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@cache
def grammar(name: str) -> Grammar:
    """The parser's own dialect. Made once: it keeps no state between texts, and making one costs as much as reading a text."""
    return Grammar.get_or_raise(name)


class _Tokenizers(threading.local):
    """Those of one thread, since a tokenizer holds the text it reads; at most one per dialect."""

    def __init__(self) -> None:
        self.by_name: dict[str, Tokenizer] = {}


_tokenizers = _Tokenizers()


def tokenize(sql: str, *, dialect: str) -> list[Token]:
    """The tokens of a text. Raises sqlglot's TokenError. The tokenizer is kept: making one costs as much as a short text."""
    tokenizer = _tokenizers.by_name.get(dialect)
    if tokenizer is None:
        tokenizer = _tokenizers.by_name[dialect] = grammar(dialect).tokenizer()
    return list(tokenizer.tokenize(sql))
