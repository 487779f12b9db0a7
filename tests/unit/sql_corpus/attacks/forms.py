"""Ways to hide a forbidden part in a statement: each takes parts and gives whole statements, all of them different."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

PLACES = (
    "SELECT {}",
    "SELECT a FROM t WHERE {} IS NOT NULL",
    "SELECT a FROM t ORDER BY {}",
    "SELECT count(*) FROM t GROUP BY {}",
    "SELECT sum(a) FROM t HAVING max({}) > 1",
    "WITH x AS (SELECT {} AS y) SELECT y FROM x",
    "SELECT CASE WHEN a = 1 THEN {} ELSE 0 END FROM t",
    "SELECT t.a FROM t JOIN u ON t.a = {}",
    "SELECT a FROM t UNION ALL SELECT {}",
    "SELECT (SELECT {})",
    "SELECT coalesce(a, {}) FROM t",
    "SELECT row_number() OVER (ORDER BY {}) FROM t",
    "SELECT a FROM t LIMIT (SELECT {})",
    "SELECT EXISTS (SELECT 1 FROM t WHERE a = {})",
    "SELECT a FROM t WHERE a IN (SELECT {})",
    "SELECT s.x FROM (SELECT {} AS x) s",
    "SELECT max(abs({})) FROM t",
    "SELECT count(*) FROM t WHERE a BETWEEN {} AND 2",
    "SELECT t.a, {} AS note FROM t",
    "SELECT sum(CASE WHEN {} = a THEN 1 ELSE 0 END) OVER (PARTITION BY b) FROM t",
)
"""Where a value may stand."""

SOURCES = (
    "SELECT * FROM {}",
    "SELECT count(*) FROM {} AS x",
    "SELECT t.a FROM t, {} AS x",
    "SELECT t.a FROM t CROSS JOIN {} AS x",
    "SELECT t.a FROM t LEFT JOIN {} AS x ON true",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM {} AS x)",
    "SELECT a FROM t WHERE a IN (SELECT x.a FROM {} AS x)",
    "WITH x AS (SELECT * FROM {}) SELECT * FROM x",
    "SELECT (SELECT max(x.a) FROM {} AS x)",
    "SELECT a FROM t UNION ALL SELECT a FROM {}",
    "SELECT * FROM (SELECT * FROM {}) AS x",
    "WITH RECURSIVE r AS (SELECT a FROM {} UNION ALL SELECT a FROM r) SELECT * FROM r",
)
"""Where something that gives rows may stand."""

HARMLESS = (
    "SELECT 1",
    "SELECT count(*) FROM t",
    "WITH x AS (SELECT a FROM t) SELECT a FROM x",
    "SELECT a, b FROM t WHERE a > 1 ORDER BY b",
    "(SELECT 1)",
    "SELECT ';'",
    "SELECT 1 /* ; */",
)


def values(calls: Iterable[str], *, each: int = 3) -> Iterator[str]:
    """Every call in `each` places, taken in turn, so that all places are used alike."""
    for number, call in enumerate(calls):
        for offset in range(each):
            yield PLACES[(number * each + offset) % len(PLACES)].format(call)


def sources(names: Iterable[str], *, each: int = 3) -> Iterator[str]:
    for number, name in enumerate(names):
        for offset in range(each):
            yield SOURCES[(number * each + offset) % len(SOURCES)].format(name)


def stacked(statements: Iterable[str]) -> Iterator[str]:
    """Every statement behind a harmless one, and before one."""
    for number, statement in enumerate(statements):
        first = HARMLESS[number % len(HARMLESS)]
        yield f"{first}; {statement}"
        yield f"{first}\n;\n{statement};"
        yield f"{statement}; {first}"


def commented(statements: Iterable[str]) -> Iterator[str]:
    """Every statement behind a comment that looks like a query, or around one."""
    forms = (
        "-- SELECT 1\n{}",
        "/* SELECT * FROM t */ {}",
        "/* WITH x AS (\n */ {}",
        "--\n--\n\t{}",
        "/**/{}/**/",
        "{} -- SELECT 1",
    )
    for number, statement in enumerate(statements):
        yield forms[number % len(forms)].format(statement)


def spellings(names: Iterable[str], *, argument: str = "'x'") -> Iterator[str]:
    """A call of every name, written in ways that a search in the text would miss."""
    forms = (
        "SELECT {upper}({argument})",
        "SELECT {mixed} ({argument})",
        "SELECT {name}/**/({argument})",
        "SELECT {name} -- (\n({argument})",
        'SELECT "{name}"({argument})',
        "SELECT\t{name}\n(\n{argument}\n)",
        "SELECT main.{name}({argument})",
        "SELECT ((({name}({argument}))))",
    )
    for number, name in enumerate(names):
        for offset in range(2):
            form = forms[(number * 2 + offset) % len(forms)]
            yield form.format(
                name=name, upper=name.upper(), mixed=name.title().replace("_", "_"), argument=argument
            )


def in_ctes(writes: Iterable[str]) -> Iterator[str]:
    """A writing statement as a common table expression, used, unused, second, nested."""
    forms = (
        "WITH x AS ({}) SELECT * FROM x",
        "WITH a AS (SELECT 1 AS n), x AS ({}) SELECT n FROM a",
        "WITH x AS MATERIALIZED ({}) SELECT 1",
        "SELECT * FROM (WITH x AS ({}) SELECT * FROM x) AS y",
        "WITH RECURSIVE x AS ({}) SELECT count(*) FROM x",
        "SELECT (WITH x AS ({}) SELECT max(a) FROM x)",
        "SELECT * FROM ({}) AS x",
    )
    for number, write in enumerate(writes):
        for offset in range(3):
            yield forms[(number * 3 + offset) % len(forms)].format(write)
