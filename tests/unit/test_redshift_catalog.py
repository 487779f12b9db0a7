"""What becomes of the rows of Redshift's system views: rows as its documentation shows them, and questions it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from assay_agent.adapters.column_kinds import kind_of
from assay_agent.adapters.redshift_catalog import Cluster, Rows, Schemas, columns, schemas_of, tables
from assay_core.errors import ConfigError

SORTED = "sorts the table: a filter on it reads less"
PARTITIONED = "partitions the table: a filter on it reads less"
VIEWS = (
    "svv_redshift_tables",
    "svv_redshift_columns",
    "svv_table_info",
    "svv_external_tables",
    "svv_external_columns",
    "pg_get_late_binding_view_cols",
    "pg_constraint",
    "pg_external_schema",
)


class Canned:
    """A cluster of rows by system view, counted ones by `count <view>`; one without rows refuses the question."""

    def __init__(self, **rows: Rows) -> None:
        self.rows = {name.replace("count_", "count "): found for name, found in rows.items()}
        self.probed: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    def ask(self, statement: str, values: Sequence[Any]) -> Rows:
        found = self.try_ask(statement, values)
        assert found is not None, statement
        return found

    def try_ask(self, statement: str, values: Sequence[Any]) -> Rows | None:
        assert statement.count("%s") == len(values)
        (view,) = (name for name in VIEWS if name in statement)
        key = f"count {view}" if "GROUP BY" in statement else view
        self.asked.append((key, tuple(values)))
        return self.rows.get(key)

    @property
    def cluster(self) -> Cluster:
        return Cluster(ask=self.ask, try_ask=self.try_ask, probe=lambda named: self.probed.get(named, []))


LOCAL = Schemas(database="tickit_db", local=("public",), external=())
LAKE = Schemas(database="tickit_db", local=(), external=("spectrum",))
TICKIT = (
    ("public", "tickit_sales", "TABLE", None),
    ("public", "tickit_venue", "TABLE", "where it happens"),
    ("public", "best_sellers", "VIEW", None),
    ("public", "mv_tbl__daily__0", "TABLE", None),
    ("public", "daily", "VIEW", None),
)


def test_schemas_are_told_apart_by_where_their_tables_are() -> None:
    canned = Canned(
        pg_external_schema=[
            ("tickit_db", "pg_catalog", False),
            ("tickit_db", "public", False),
            ("tickit_db", "spectrum", True),
        ]
    )
    found = schemas_of(canned.ask, ("spectrum", "public"), shown="u@h:5439/tickit_db")
    assert found == Schemas(database="tickit_db", local=("public",), external=("spectrum",))


def test_a_schema_that_is_not_there_is_named_with_those_that_are() -> None:
    rows = [("dev", name, False) for name in ("information_schema", "pg_internal", "public", "sales")]
    with pytest.raises(ConfigError) as wrong:
        schemas_of(Canned(pg_external_schema=rows).ask, ("public", "Sales"), shown="u@h:5439/dev")
    assert str(wrong.value) == "datasets names 'Sales', and u@h:5439/dev has these schemas: public, sales"


def test_tables_and_views_carry_widths_comments_and_counts_of_tables_alone() -> None:
    canned = Canned(
        svv_redshift_tables=TICKIT,
        count_svv_redshift_columns=[("public", row[1], 4) for row in TICKIT],
        svv_table_info=[("public", "tickit_sales", 172456)],
    )
    found = {table.name: table for table in tables(canned.cluster, LOCAL)}
    assert sorted(found) == ["best_sellers", "daily", "tickit_sales", "tickit_venue"]
    assert [(t.row_count, t.column_count) for t in found.values()] == [
        (172456, 4),
        (0, 4),
        (None, 4),
        (None, 4),
    ]
    assert found["tickit_venue"].comment == "where it happens"
    assert found["tickit_sales"].comment == ""
    assert "pg_get_late_binding_view_cols" not in [view for view, _ in canned.asked]
    assert all(values[0] == "tickit_db" for view, values in canned.asked)


@pytest.mark.parametrize("info", [None, []])
def test_who_may_not_read_table_info_knows_no_counts(info: Rows | None) -> None:
    canned = Canned(
        svv_redshift_tables=TICKIT[:2],
        count_svv_redshift_columns=[("public", "tickit_sales", 10), ("public", "tickit_venue", 5)],
        **({} if info is None else {"svv_table_info": info}),
    )
    assert [table.row_count for table in tables(canned.cluster, LOCAL)] == [None, None]


def test_a_late_binding_view_is_as_wide_as_its_function_says_and_listed_without_it_too() -> None:
    rows = {"svv_redshift_tables": TICKIT[2:3], "count_svv_redshift_columns": []}
    late = [("public", "best_sellers", 1, "id", "integer"), ("public", "best_sellers", 2, "n", "bigint")]
    known = tables(Canned(**rows, pg_get_late_binding_view_cols=late).cluster, LOCAL)
    assert [(table.name, table.column_count) for table in known] == [("best_sellers", 2)]
    refused = tables(Canned(**rows).cluster, LOCAL)
    assert [(table.name, table.column_count) for table in refused] == [("best_sellers", 0)]


def test_columns_come_in_the_tables_order_with_keys_nullability_and_the_sort_key() -> None:
    canned = Canned(
        svv_redshift_columns=[
            ("public", "tickit_sales", 4, "buyerid", "integer", "NO", 0, None),
            ("public", "tickit_sales", 1, "salesid", "integer", "NO", 0, "the sale"),
            ("public", "tickit_sales", 2, "saletime", "timestamp without time zone", "YES", 1, "when"),
            ("public", "tickit_sales", 3, "listid", "integer", "", -2, ""),
            ("public", "tickit_sales", 5, "padb_internal_txn_id_col", "bigint", "YES", 0, None),
            ("public", "tickit_sales", 6, "seen", "date", "YES", -1, None),
            ("public", "not_asked_for", 1, "x", "integer", "YES", 0, None),
        ],
        pg_constraint=[("public", "tickit_sales", "salesid"), ("public", "other", "buyerid")],
    )
    found = columns(canned.cluster, LOCAL, [("public", "tickit_sales")])
    assert [(c.name, c.nullable, c.primary_key, c.comment) for c in found] == [
        ("salesid", False, True, "the sale"),
        ("saletime", True, False, f"when; {SORTED}"),
        ("listid", True, False, ""),
        ("buyerid", False, False, ""),
        ("seen", True, False, SORTED),
    ]
    assert {(c.schema, c.table) for c in found} == {("public", "tickit_sales")}


def test_keys_that_may_not_be_read_are_no_keys() -> None:
    canned = Canned(svv_redshift_columns=[("public", "t", 1, "id", "integer", "NO", 0, None)])
    assert [column.primary_key for column in columns(canned.cluster, LOCAL, [("public", "t")])] == [False]


def test_views_without_binding_are_resolved_by_their_function_then_by_asking_each() -> None:
    named = [("public", "plain"), ("public", "late"), ("public", "later"), ("public", "broken")]
    canned = Canned(
        svv_redshift_columns=[("public", "plain", 1, "id", "integer", "YES", 0, None)],
        pg_get_late_binding_view_cols=[
            ("public", "late", 2, "name", "character varying(50)"),
            ("public", "late", 1, "id", "integer"),
            ("public", "plain", 1, "twice", "integer"),
        ],
    )
    canned.probed[("public", "later")] = [("a", "super")]
    found = columns(canned.cluster, LOCAL, named)
    assert [(c.table, c.name, c.type, c.nullable) for c in found] == [
        ("plain", "id", "integer", True),
        ("late", "id", "integer", True),
        ("late", "name", "character varying(50)", True),
        ("later", "a", "super", True),
    ]


def test_external_tables_count_what_their_parameters_say() -> None:
    parameters = (
        '{"EXTERNAL":"TRUE","numRows":"170000","transient_lastDdlTime":"1634306568"}',
        '{"recordCount":"12","classification":"parquet"}',
        '{"numRows":"-1"}',
        '{"numRows":"many"}',
        '["numRows"]',
        "not JSON",
        "",
        None,
    )
    canned = Canned(
        svv_external_tables=[("spectrum", f"t{n}", text) for n, text in enumerate(parameters)],
        count_svv_external_columns=[("spectrum", "t0", 10)],
    )
    found = tables(canned.cluster, LAKE)
    assert [table.row_count for table in found] == [170000, 12, None, None, None, None, None, None]
    assert [table.column_count for table in found][:2] == [10, 0]
    assert {view for view, _ in canned.asked} == {"svv_external_tables", "count svv_external_columns"}


def test_external_columns_keep_the_types_of_their_own_catalogue_and_say_what_partitions() -> None:
    labels = {
        "id": ("bigint", "INT64"),
        "name": ("string", "STRING"),
        "short": ("varchar(12)", "STRING"),
        "price": ("decimal(8,2)", "FLOAT64"),
        "rate": ("double", "FLOAT64"),
        "seen": ("timestamp", "TIMESTAMP"),
        "ok": ("boolean", "BOOL"),
        "raw": ("binary", "BYTES"),
        "tags": ("array<string>", "RECORD"),
        "place": ("struct<lat:double,lon:double>", "RECORD"),
        "pairs": ("map<string,int>", "RECORD"),
        "day": ("date", "DATE"),
    }
    rows = [
        ("spectrum", "events", n, name, label, "false" if name == "id" else "", 1 if name == "day" else 0)
        for n, (name, (label, _)) in enumerate(labels.items(), start=1)
    ]
    canned = Canned(svv_external_columns=list(reversed(rows)))
    found = columns(canned.cluster, LAKE, [("spectrum", "events")])
    assert [(c.name, c.type) for c in found] == [(name, label) for name, (label, _) in labels.items()]
    assert [kind_of(c.type) for c in found] == [kind for _, kind in labels.values()]
    assert [c.name for c in found if not c.nullable] == ["id"]
    assert [c.comment for c in found if c.comment] == [PARTITIONED]


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("super", "RECORD"),
        ("varbyte(64000)", "BYTES"),
        ("geometry", "STRING"),
        ("hllsketch", "STRING"),
        ("character varying(256)", "STRING"),
        ("timestamp with time zone", "TIMESTAMP"),
        ("time with time zone", "STRING"),
        ("numeric(18,2)", "FLOAT64"),
        ("double precision", "FLOAT64"),
        ("smallint", "INT64"),
    ],
)
def test_labels_of_local_columns_have_a_kind(label: str, kind: str) -> None:
    assert kind_of(label) == kind


def test_a_scope_of_both_kinds_asks_each_for_its_own() -> None:
    both = Schemas(database="d", local=("public",), external=("spectrum",))
    canned = Canned(
        svv_redshift_columns=[("public", "t", 1, "a", "integer", "YES", 0, None)],
        svv_external_columns=[("spectrum", "t", 1, "b", "int", "", 0)],
    )
    found = columns(canned.cluster, both, [("spectrum", "t"), ("public", "t")])
    assert [(c.schema, c.name) for c in found] == [("public", "a"), ("spectrum", "b")]
    assert ("svv_external_columns", ("d", "spectrum", "t")) in canned.asked
