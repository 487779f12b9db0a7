"""The tenant filter as a pure function: what it adds, what it takes as proven, what it refuses, in each dialect."""

from __future__ import annotations

import pytest
from sqlglot import exp

from assay_agent.sql.dialects import dialect_of
from assay_agent.sql.guard import check, parsed
from assay_agent.sql.rendering import render
from assay_agent.sql.tenant import Filter, TableFacts, confine, unproven
from assay_core.errors import ConfigError, QueryError

DIALECTS = ("duckdb", "sqlite", "postgres", "bigquery", "redshift")


def _facts(*, kind: str = "STRING", schema: str = "shop") -> dict[str, TableFacts]:
    known = {
        "orders": TableFacts(schema=schema, name="orders", column="tenant", kind=kind),
        "customers": TableFacts(schema=schema, name="customers", column="tenant", kind=kind),
        "Visits": TableFacts(schema=schema, name="Visits", column="Owner", kind=kind),
        "plans": TableFacts(schema=schema, name="plans", shared=True),
        "ledger": TableFacts(schema=schema, name="ledger"),
        "events_*": TableFacts(schema=schema, name="events_*", column="tenant", kind=kind, wildcard=True),
    }
    return known | {f"{schema}.{name}": facts for name, facts in known.items()}


def _confined(sql: str, *, dialect: str = "duckdb", value: str = "acme", kind: str = "STRING") -> str:
    tenant = Filter(value=value, facts=_facts(kind=kind))
    language = dialect_of(dialect)
    guarded = check(sql, dialect=dialect)
    tree = confine(parsed(guarded, dialect=dialect), language=language, tenant=tenant)
    text = check(render(tree, dialect=dialect, source=guarded.sql), dialect=dialect)
    assert unproven(parsed(text, dialect=dialect), language=language, tenant=tenant) == []
    return text.sql


ORDERS = '(SELECT * FROM "shop"."orders" WHERE "tenant" = \'acme\')'
CUSTOMERS = '(SELECT * FROM "shop"."customers" WHERE "tenant" = \'acme\')'


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM orders", f"SELECT * FROM {ORDERS} AS orders"),
        ("SELECT o.id FROM orders AS o", f"SELECT o.id FROM {ORDERS} AS o"),
        ("SELECT shop.orders.id FROM shop.orders", f"SELECT orders.id FROM {ORDERS} AS orders"),
        ("SELECT 1 FROM orders, plans AS p", f'SELECT 1 FROM {ORDERS} AS orders, "shop"."plans" AS p'),
        (
            "SELECT 1 FROM orders AS o LEFT JOIN customers AS c USING (id)",
            f"SELECT 1 FROM {ORDERS} AS o LEFT JOIN {CUSTOMERS} AS c USING (id)",
        ),
        (
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.id = 1)",
            f"SELECT 1 WHERE EXISTS(SELECT 1 FROM {ORDERS} AS o WHERE o.id = 1)",
        ),
        (
            "WITH orders AS (SELECT * FROM orders) SELECT * FROM orders",
            f"WITH assay_cte_1 AS (SELECT * FROM {ORDERS} AS orders) SELECT * FROM assay_cte_1 AS orders",
        ),
        (
            "SELECT * FROM (WITH x AS (SELECT 1 AS a) SELECT a FROM x) AS s, orders",
            f"SELECT * FROM (WITH assay_cte_1 AS (SELECT 1 AS a) SELECT a FROM assay_cte_1 AS x) AS s, {ORDERS} AS orders",
        ),
        (
            "SELECT id FROM orders UNION SELECT id FROM customers",
            f"SELECT id FROM {ORDERS} AS orders UNION SELECT id FROM {CUSTOMERS} AS customers",
        ),
        ("SELECT 1 FROM orders AS o(a, b)", f"SELECT 1 FROM {ORDERS} AS o(a, b)"),
        ("PIVOT orders ON state USING count(*)", f"PIVOT {ORDERS} AS orders ON state USING COUNT(*)"),
        (
            'SELECT "Id" FROM "Visits"',
            'SELECT "Id" FROM (SELECT * FROM "shop"."Visits" WHERE "Owner" = \'acme\') AS "Visits"',
        ),
        ("SELECT g FROM range(3) AS r(g)", "SELECT g FROM RANGE(0, 3) AS r(g)"),
    ],
)
def test_the_filter_is_added_to_every_relation(sql: str, expected: str) -> None:
    assert _confined(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM orders WHERE tenant = 'acme'",
        "SELECT id FROM orders AS o WHERE o.id > 3 AND (o.tenant = 'acme' AND o.id < 9)",
        "SELECT id FROM orders AS o WHERE 'acme' = o.tenant",
        "SELECT o.id FROM orders AS o JOIN customers AS c ON c.id = o.customer_id WHERE o.tenant = 'acme' AND c.tenant = 'acme'",
        "SELECT o.id FROM orders AS o LEFT JOIN customers AS c ON c.id = o.id WHERE c.tenant = 'acme' AND o.tenant = 'acme'",
        "SELECT (SELECT MAX(id) FROM customers AS c WHERE c.tenant = 'acme' AND c.id = p.id) FROM plans AS p",
    ],
)
def test_what_already_keeps_to_the_tenant_is_left_as_it_is(sql: str) -> None:
    assert "(SELECT * FROM" not in _confined(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM orders WHERE tenant = 'acme' OR id > 0",
        "SELECT id FROM orders WHERE NOT tenant = 'acme'",
        "SELECT id FROM orders WHERE tenant <> 'acme'",
        "SELECT id FROM orders WHERE tenant = 'globex'",
        "SELECT id FROM orders WHERE tenant = 'ACME'",
        "SELECT id FROM orders WHERE tenant IN ('acme', 'globex')",
        "SELECT id FROM orders WHERE tenant LIKE 'acme'",
        "SELECT id FROM orders WHERE lower(tenant) = 'acme'",
        "SELECT id FROM orders WHERE tenant IS NOT DISTINCT FROM 'acme'",
        "SELECT id FROM orders WHERE (tenant = 'acme') = false",
        "SELECT id FROM orders WHERE (tenant = 'acme') IS NULL",
        "SELECT id FROM orders WHERE CASE WHEN tenant = 'acme' THEN true ELSE true END",
        "SELECT id FROM orders -- WHERE tenant = 'acme'",
        "SELECT id, 'tenant = ''acme''' FROM orders",
        "SELECT 'acme' AS tenant FROM orders WHERE tenant = 'acme'",
        "SELECT id FROM orders GROUP BY id HAVING max(tenant) = 'acme'",
        "SELECT id FROM orders QUALIFY tenant = 'acme'",
        "SELECT o.id FROM orders AS o JOIN customers AS c ON c.tenant = 'acme' AND o.tenant = 'acme'",
        "SELECT o.id FROM orders AS o, customers AS c WHERE o.tenant = 'acme'",
        "SELECT o.id FROM orders AS o, customers AS c WHERE tenant = 'acme'",
        "SELECT o.id FROM orders AS o JOIN customers AS c USING (tenant) WHERE o.tenant = 'acme' AND c.tenant = 'acme'",
        "SELECT id FROM orders AS o(id, tenant, customer_id) WHERE o.tenant = 'acme'",
        "SELECT o.id FROM orders AS o ANTI JOIN customers AS c ON c.id = o.id WHERE o.tenant = 'acme'",
        "SELECT o.id FROM orders AS o POSITIONAL JOIN plans AS p WHERE o.tenant = 'acme'",
        "SELECT * FROM orders PIVOT (count(*) FOR state IN ('a')) WHERE tenant = 'acme'",
        "SELECT id FROM orders TABLESAMPLE reservoir(5 ROWS) WHERE tenant = 'acme'",
        "SELECT s.id FROM (SELECT id, 'acme' AS tenant FROM orders) AS s WHERE s.tenant = 'acme'",
        "SELECT id FROM plans AS p WHERE p.id IN (SELECT id FROM orders) AND p.tenant = 'acme'",
        "SELECT 1 FROM orders AS o, (SELECT 1 AS x) AS o WHERE o.tenant = 'acme'",
    ],
)
def test_what_only_looks_like_the_filter_is_filtered_again(sql: str) -> None:
    assert "(SELECT * FROM" in _confined(sql)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM ledger", "does not say whose its rows are"),
        ("SELECT * FROM shop.ledger AS l", "does not say whose its rows are"),
        ("SELECT (SELECT count(*) FROM ledger)", "does not say whose"),
        ("SELECT * FROM unheard_of", "no such table"),
        ("SELECT * FROM other.orders", "no such table"),
        ("SELECT * FROM warehouse.shop.orders", "without 'warehouse' before it"),
        ("WITH x AS (SELECT * FROM y), y AS (SELECT 1 AS a) SELECT * FROM x", "no such table"),
        ("SELECT * FROM (WITH x AS (SELECT 1 AS a) SELECT * FROM x) AS s, x", "no such table"),
        ("WITH x AS (SELECT 1 AS a) SELECT * FROM main.x", "no such table"),
    ],
)
def test_what_cannot_be_the_tenants_is_refused(sql: str, words: str) -> None:
    with pytest.raises(QueryError, match=words) as refused:
        _confined(sql)
    assert refused.value.kind == "tenant"


def test_a_quoted_name_of_another_case_is_no_cte_where_the_case_counts() -> None:
    sql = 'WITH "Orders" AS (SELECT 1 AS a) SELECT * FROM "orders" AS o'
    assert "shop" not in _confined(sql, dialect="duckdb")
    with pytest.raises(QueryError):
        _confined('WITH "X" AS (SELECT 1 AS a) SELECT * FROM x', dialect="postgres")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_writes_the_filter_its_own_way(dialect: str) -> None:
    written = _confined("SELECT o.id FROM orders AS o", dialect=dialect)
    quote = "`" if dialect == "bigquery" else '"'
    table = f"{quote}shop{quote}.{quote}orders{quote}"
    assert written == f"SELECT o.id FROM (SELECT * FROM {table} WHERE {quote}tenant{quote} = 'acme') AS o"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("value", ["o'brien", "a''b", "'; --", "x' OR '1'='1", "emoji 🛒", "100%"])
def test_any_value_stays_one_text(dialect: str, value: str) -> None:
    written = _confined("SELECT id FROM orders", dialect=dialect, value=value)
    tree = parsed(check(written, dialect=dialect), dialect=dialect)
    assert [literal.name for literal in tree.find_all(exp.Literal)] == [value]


@pytest.mark.parametrize(
    ("kind", "value", "literal"),
    [
        ("INT64", "7", "7"),
        ("INT64", "-7", "-7"),
        ("FLOAT64", "1.5", "1.5"),
        ("BOOL", "TRUE", "TRUE"),
        ("STRING", "7", "'7'"),
    ],
)
def test_the_value_is_written_as_the_column_holds_it(kind: str, value: str, literal: str) -> None:
    assert _confined("SELECT id FROM orders", value=value, kind=kind).endswith(
        f'"tenant" = {literal}) AS orders'
    )
    proven = f"SELECT id FROM orders WHERE tenant = {literal}"
    assert "(SELECT * FROM" not in _confined(proven, value=value, kind=kind)


@pytest.mark.parametrize(("kind", "value"), [("INT64", "acme"), ("INT64", "1 OR 1=1"), ("BOOL", "maybe")])
def test_a_value_that_the_column_cannot_hold_is_the_settings_fault(kind: str, value: str) -> None:
    with pytest.raises(ConfigError, match="datasource default: filter_value"):
        _confined("SELECT id FROM orders", value=value, kind=kind)


def test_a_name_for_many_tables_must_be_filtered_by_the_query_itself() -> None:
    own = "SELECT COUNT(*) FROM `shop.events_*` WHERE tenant = 'acme' AND _TABLE_SUFFIX > '2025'"
    assert "(SELECT * FROM" not in _confined(own, dialect="bigquery")
    with pytest.raises(QueryError, match="write WHERE tenant = 'acme'"):
        _confined("SELECT COUNT(*) FROM `shop.events_*`", dialect="bigquery")


def test_the_proof_does_not_rest_on_the_rewriting() -> None:
    tenant = Filter(value="acme", facts=_facts())
    for sql, left in (
        ('SELECT * FROM "shop"."orders"', ["shop.orders"]),
        ("SELECT * FROM orders WHERE tenant = 'acme'", ["orders"]),
        ('SELECT * FROM "shop"."orders" WHERE tenant = \'globex\'', ["shop.orders"]),
        ("WITH x AS (SELECT 1) SELECT * FROM x", ["a common table expression under a name of its own"]),
    ):
        tree = parsed(check(sql, dialect="duckdb"), dialect="duckdb")
        assert unproven(tree, language=dialect_of("duckdb"), tenant=tenant) == left


def test_a_path_in_from_that_could_be_a_table_is_not_proven_in_redshift() -> None:
    tenant = Filter(value="acme", facts=_facts())
    language = dialect_of("redshift")
    guarded = check("SELECT i.sku FROM orders AS hidden, hidden.lines AS i", dialect="redshift")
    tree = confine(parsed(guarded, dialect="redshift"), language=language, tenant=tenant)
    assert unproven(tree, language=language, tenant=tenant) == ["hidden.lines in FROM"]
