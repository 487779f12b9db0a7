"""Any text in: a guarded statement or a QueryError out, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay_agent.sql.dialects import make_ref, quote_ref, split_ref
from assay_agent.sql.guard import check
from assay_agent.sql.limits import limited
from assay_agent.sql.repair import extract_sql
from assay_core.errors import QueryError
from tests.unit.sql_corpus.attacks.all import DIALECTS, attacks
from tests.unit.sql_corpus.queries.all import queries

_WORDS = st.sampled_from(
    [
        "select",
        "from",
        "where",
        "(",
        ")",
        ",",
        ";",
        "*",
        ".",
        "'",
        '"',
        "--",
        "/*",
        "*/",
        "with",
        "as",
        "join",
        "on",
        "group",
        "by",
        "order",
        "limit",
        "union",
        "all",
        "case",
        "when",
        "then",
        "end",
        "over",
        "partition",
        "in",
        "not",
        "null",
        "is",
        "and",
        "or",
        "::",
        "->",
        "->>",
        "[",
        "]",
        "{",
        "}",
        "=",
        "<",
        ">",
        "+",
        "-",
        "/",
        "%",
        "||",
        "1",
        "'a'",
        '"b"',
        "t",
        "x",
        "count",
        "sum",
        "pg_sleep",
        "read_csv",
        "delete",
        "insert",
        "into",
        "update",
        "drop",
        "lateral",
        "unnest",
        "values",
        "cast",
        "interval",
        "date",
        "?",
        "$1",
        ":p",
        "@v",
    ]
)
_SOUP = st.lists(_WORDS, max_size=40).map(" ".join)
_MUTATED = st.builds(
    lambda sql, at, text: sql[: at % (len(sql) + 1)] + text + sql[at % (len(sql) + 1) :],
    st.sampled_from([*(sql for _, sql in attacks("duckdb")), *(q for d in DIALECTS for q in queries(d))]),
    st.integers(0, 500),
    st.text(max_size=4) | _WORDS,
)


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.text(max_size=200) | _SOUP | _MUTATED)
def test_any_text_is_guarded_or_refused(dialect: str, text: str) -> None:
    try:
        guarded = check(text, dialect=dialect)
    except QueryError as error:
        assert error.kind == "guard"
        return
    assert guarded.sql
    assert ";" not in guarded.sql or "'" in guarded.sql or '"' in guarded.sql


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_an_attack_inside_a_query_is_still_refused(dialect: str, data: st.DataObject) -> None:
    call = data.draw(
        st.sampled_from(["load_extension('x')", "pg_sleep(1)", "read_text('/etc/passwd')", "no_such(1)"])
    )
    frame = data.draw(
        st.sampled_from(
            [
                "SELECT {} FROM t",
                "SELECT * FROM t WHERE a = {}",
                "SELECT count(*) FROM t GROUP BY {}",
                "WITH a AS (SELECT {}) SELECT * FROM a",
                "SELECT 1 UNION ALL SELECT {}",
                "SELECT * FROM (SELECT {} AS x) s",
                "SELECT CASE WHEN a THEN {} END FROM t",
                "SELECT sum({}) OVER (ORDER BY a) FROM t",
                "SELECT a FROM t ORDER BY {}",
                "SELECT (SELECT {})",
            ]
        )
    )
    with pytest.raises(QueryError):
        check(frame.format(call), dialect=dialect)


@given(name=st.text(min_size=1, max_size=20), schema=st.text(min_size=1, max_size=20) | st.none())
def test_a_reference_can_be_split_again(name: str, schema: str | None) -> None:
    ref = make_ref(schema, name)
    if ref.strip() == ref and "" not in ref.split("."):
        assert split_ref(ref) == (schema, name)
    assert split_ref(quote_ref(ref)) == split_ref(ref)


@given(text=st.text(max_size=300))
def test_any_reply_gives_a_statement_or_none(text: str) -> None:
    found = extract_sql(text)
    assert found is None or found.strip()


@settings(deadline=None)
@given(text=_SOUP, rows=st.integers(1, 1000))
def test_limiting_any_text_keeps_its_beginning(text: str, rows: int) -> None:
    assert limited(text, dialect="duckdb", rows=rows).startswith(text[:4].rstrip())
