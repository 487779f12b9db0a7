"""What was planted in the sample of pack system-test."""

from __future__ import annotations

from tests.warehouses.facts import Fact

FACTS = (
    Fact(
        id="rows_of_every_table",
        areas=("connectivity",),
        purpose="Smoke test: count(*) of the largest, the smallest and the empty table",
        sql="""
SELECT (SELECT count(*) FROM children) AS n_children, (SELECT count(*) FROM numbers) AS n_numbers, (SELECT count(*) FROM nested) AS n_nested, (SELECT count(*) FROM empty_table) AS n_empty
""",
        sentence="Tables answer: children {n_children} rows, numbers {n_numbers}, nested {n_nested}, empty_table {n_empty}.",
    ),
    Fact(
        id="children_without_parents",
        areas=("schema_discovery", "query_patterns"),
        purpose="Join: children without a match in parents by parent_id",
        sql="""
SELECT count(*) AS n_children, count(*) - count(p.parent_id) AS n_orphans, count(DISTINCT CASE WHEN p.parent_id IS NULL THEN c.parent_id END) AS n_keys
FROM children AS c LEFT JOIN parents AS p ON p.parent_id = c.parent_id
""",
        sentence="{n_orphans} of {n_children} children point at {n_keys} parents that are not there.",
        scout=r"children have a parent without a record in parents",
        scout_shows=("n_orphans",),
    ),
    Fact(
        id="children_written_twice",
        areas=("data_profiling", "schema_discovery"),
        purpose="Duplicate rows of table children",
        sql="SELECT count(*) AS n_rows, count(*) - count(DISTINCT label) AS n_repeated FROM children",
        sentence="{n_repeated} of {n_rows} rows of children are there twice.",
        scout=r"rows of children repeat another row",
        scout_shows=("n_repeated",),
    ),
    Fact(
        id="quarter_missing",
        areas=("data_profiling",),
        purpose="Share of missing values of a column that lacks every fourth",
        sql="SELECT avg(CASE WHEN quarter_missing IS NULL THEN 1.0 ELSE 0 END) AS share_missing, count(*) - count(quarter_missing) AS n_missing FROM numbers",
        sentence="numbers.quarter_missing is empty in {n_missing} rows, {share_missing}.",
        scout=r"rows in numbers have no quarter missing",
        scout_shows=("share_missing", "n_missing"),
    ),
    Fact(
        id="decimal_sum",
        areas=("type_mapping", "data_profiling"),
        purpose="Decimal precision: the sum of price, and of the same values as whole eighths",
        sql="SELECT sum(price) AS sum_price, sum(CAST(price * 8 AS BIGINT)) / 8.0 AS sum_eighths FROM numbers",
        sentence="The decimals of price add up to {sum_price}, as whole eighths to {sum_eighths}.",
        units={"sum_price": "plain", "sum_eighths": "plain"},
    ),
    Fact(
        id="floats_that_are_no_number",
        areas=("edge_cases", "type_mapping"),
        purpose="Edge: NaN and infinite values of a float column",
        sql="""
SELECT sum(CASE WHEN CAST(float_number AS VARCHAR) = 'nan' THEN 1 ELSE 0 END) AS n_nan, sum(CASE WHEN CAST(float_number AS VARCHAR) IN ('inf', '-inf') THEN 1 ELSE 0 END) AS n_infinite FROM numbers
""",
        sentence="float_number holds {n_nan} values that are no number and {n_infinite} that are infinite.",
    ),
    Fact(
        id="empty_text_and_null",
        areas=("edge_cases", "type_mapping"),
        purpose="Edge: empty text against null in a text column",
        sql="SELECT count(*) FILTER (content = '') AS n_empty, count(*) FILTER (content IS NULL) AS n_null, count(DISTINCT content) AS n_distinct FROM texts",
        sentence="texts.content is the empty text {n_empty} times and null {n_null} times, and has {n_distinct} distinct values.",
    ),
    Fact(
        id="names_that_must_be_quoted",
        areas=("edge_cases", "schema_discovery"),
        purpose="Edge: a table and columns whose names are reserved words or not Latin",
        sql='SELECT count(*) AS n_rows, sum("select") AS sum_select, count(DISTINCT "group by") AS n_groups, max("größe") AS greatest FROM "Odd Name"',
        sentence='"Odd Name" has {n_rows} rows, its "select" adds up to {sum_select}, its "group by" has {n_groups} values, its "größe" at most {greatest}.',
    ),
    Fact(
        id="window_and_grouping_agree",
        areas=("query_patterns",),
        purpose="Query pattern: a running sum by window against the plain sum",
        sql="""
WITH running AS (SELECT sum(amount) OVER (ORDER BY label, parent_id ROWS UNBOUNDED PRECEDING) AS so_far FROM children)
SELECT max(so_far) AS by_window, (SELECT sum(amount) FROM children) AS by_sum FROM running
""",
        sentence="The amounts of children add up to {by_window} by a window and to {by_sum} by a sum.",
    ),
)
