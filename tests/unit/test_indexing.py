"""The pure parts of the schema index: structure, rules, what is left to do, what may fail, freshness, and a model's reply."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from assay_agent.agentserver import check
from assay_agent.discovery.schema import Schema
from assay_agent.evidence.catalog import Catalog
from assay_agent.indexing.asking import description_messages, read_description
from assay_agent.indexing.describer import Description, ModelDescriber
from assay_agent.indexing.freshness import why_not_fresh
from assay_agent.indexing.job import Tally
from assay_agent.indexing.plan import Wanted, failures_allowed, what_is_left
from assay_agent.indexing.rules import describe_by_rules, in_words
from assay_agent.indexing.structure import structure_of
from assay_agent.llm.layers import description_choice
from assay_agent.llm.scripted import ScriptedLlm
from assay_agent.policy import IndexPolicy, estimate_tokens
from assay_agent.ports import Completion
from assay_core.errors import ConfigError, ModelOutputError, ModelRefusal, TransientError
from assay_core.model.project import Project
from assay_core.model.table import ColumnSchema, TableSchema
from assay_core.store.schema import IndexProgress, KnownTable
from tests.builders import NOON

POLICY = IndexPolicy()
WANTED = Wanted(described_by="rules", embedded_by="m", index_id="i2")
GOOD = '{"description": "One row is one  order.", "keywords": ["orders", "sales"]}'


def a_table(ref: str = "main.order_items", *columns: str, **fields: Any) -> TableSchema:
    made = [ColumnSchema(name=name, type="INTEGER") for name in columns or ("id", "unitPrice")]
    return TableSchema(**{"ref": ref, "columns": made, "row_count": 7, **fields})


def known(table: TableSchema, **fields: Any) -> KnownTable:
    given: dict[str, Any] = {
        "structure": structure_of(table), "described_by": "rules", "index_id": "i1", "embedded_by": "m",
        "problem": None, "row_count": 7, "cached_at": NOON,
    }  # fmt: skip
    return KnownTable(**given | fields)


def left(table: TableSchema, found: KnownTable | None, wanted: Wanted = WANTED) -> str:
    cache = {} if found is None else {("default", table.ref): found}
    plan = what_is_left([table], cache, wanted)
    [name] = [name for name in ("describe", "embed", "unchanged") if getattr(plan, name)]
    return name


# --------------------------------------------------------------------------------------------------- structure and rules


def test_rows_samples_and_datasource_are_no_part_of_the_structure() -> None:
    table = a_table()
    other = table.model_copy(update={"row_count": 9, "sample": [{"id": 1}], "datasource_id": "second"})
    assert structure_of(table) == structure_of(other)


@pytest.mark.parametrize(
    "changed",
    [
        a_table("main.other"),
        a_table("main.order_items", "id"),
        a_table("main.order_items", "unitPrice", "id"),
        a_table(comment="now with a comment"),
        a_table(
            columns=[ColumnSchema(name="id", type="BIGINT"), ColumnSchema(name="unitPrice", type="INTEGER")]
        ),
    ],
)
def test_every_change_of_name_comment_or_columns_is_one_of_the_structure(changed: TableSchema) -> None:
    assert structure_of(changed) != structure_of(a_table())


def test_description_by_rules_names_columns_by_use_and_is_the_same_for_more_rows() -> None:
    columns = [
        ColumnSchema(name="order_id", type="INTEGER", category="primary_key"),
        ColumnSchema(name="orderedOn", type="DATE", category="time"),
        ColumnSchema(name="amount", type="DOUBLE", category="metric"),
    ]
    table = TableSchema(ref="sales.OrderItems", columns=columns, row_count=1, comment="Lines\nof orders")
    said = describe_by_rules(table)
    assert (
        said == "order items: 3 columns. Key: order id. Time: ordered on. Measures: amount. Lines of orders"
    )
    assert describe_by_rules(table.model_copy(update={"row_count": 10**9})) == said


def test_names_are_read_as_words() -> None:
    assert [in_words(name) for name in ("customer_id", "orderDate", '"a-b"', "ID")] == [
        "customer id",
        "order date",
        "a b",
        "id",
    ]


# -------------------------------------------------------------------------------------------------------- what is left


def test_what_is_left_of_a_table() -> None:
    table = a_table()
    by_model = Wanted(described_by="openai/m1", embedded_by="m", index_id="i2")
    again = Wanted(described_by="rules", embedded_by="m", index_id="i2", refresh=True)
    assert left(table, None) == "describe"
    assert left(table, known(table)) == "unchanged"
    assert left(table, known(table, structure="old")) == "describe"
    assert left(table, known(table, problem="locked")) == "describe"
    assert left(table, known(table, embedded_by="")) == "embed"
    assert left(table, known(table, embedded_by="another model")) == "embed"
    assert left(table, known(table), by_model) == "describe"
    assert left(table, known(table, described_by="openai/m0"), by_model) == "unchanged"
    assert left(table, known(table, described_by="openai/m0")) == "unchanged"
    assert left(table, known(table), again) == "describe"
    assert left(table, known(table, index_id="i2"), again) == "unchanged"


@pytest.mark.parametrize(
    ("total", "allowed"), [(0, 0), (1, 0), (2, 1), (20, 1), (39, 1), (40, 2), (10_000, 500)]
)
def test_a_twentieth_of_the_tables_may_fail_at_least_one_never_all(total: int, allowed: int) -> None:
    assert failures_allowed(total, POLICY.failures_allowed) == allowed


def test_one_failure_too_many_ends_the_index_in_one_line_that_names_the_first() -> None:
    tally = Tally(total=40, policy=POLICY)
    tally.fail(("default", "a"), "first\nreason")
    tally.fail(("default", "b"), "second", lost=True)
    assert [(item.ref, item.error) for item in tally.failures] == [("a", "first reason"), ("b", "second")]
    assert tally.lost == {("default", "b")}
    with pytest.raises(ConfigError) as error:
        tally.fail(("default", "c"), "third")
    assert str(error.value) == (
        "3 of 40 tables could not be indexed, more than the 5% that may fail; the first, a: first reason"
    )


# ----------------------------------------------------------------------------------------------------------- freshness


def a_progress(**fields: Any) -> IndexProgress:
    given: dict[str, Any] = {
        "project_id": "p", "run_id": "i1", "status": "completed", "warehouse_hash": "h", "embedding_model": "m",
        "tables_done": 3, "started_at": NOON, "completed_at": NOON,
    }  # fmt: skip
    return IndexProgress(**given | fields)


def why(progress: IndexProgress | None, **fields: Any) -> str | None:
    given: dict[str, Any] = {
        "warehouse_hash": "h", "cached": 3, "vectors": 3, "embedding_model": "m", "now": NOON + timedelta(days=1),
        "fresh_s": POLICY.fresh_s,
    }  # fmt: skip
    return why_not_fresh(progress, **given | fields)


def test_a_whole_young_index_of_this_warehouse_is_fresh() -> None:
    assert why(a_progress()) is None
    assert why(a_progress(), vectors=None, embedding_model="another") is None  # nobody can search anyway
    assert why(None) == "nothing was indexed yet"
    assert why(a_progress(status="running")) == "the last index was not finished"
    assert why(a_progress(), warehouse_hash="h2") == "the project's datasources have changed since"
    assert why(a_progress(), now=NOON + timedelta(days=7)) == "the last index is older than 6 days"
    assert why(a_progress(), cached=2) == "1 of 3 tables have expired"
    assert why(a_progress(), vectors=2) == "the tables cannot be searched"
    assert why(a_progress(), embedding_model="another") == "the tables cannot be searched"


# ------------------------------------------------------------------------------------------------------ asking a model


def test_a_reply_becomes_one_line_and_its_keywords() -> None:
    assert read_description(Completion(text=f"<think>hm</think> Here: {GOOD}"), POLICY) == (
        "One row is one order.",
        ["orders", "sales"],
    )
    long = read_description(Completion(text='{"description": "' + "x" * 9_000 + '"}'), POLICY)
    assert (len(long[0]), long[1]) == (POLICY.description_chars, [])


@pytest.mark.parametrize("text", ["", "It holds orders.", '{"keywords": ["a"]}', '{"description": " "}', "{"])
def test_a_reply_without_a_description_is_an_error(text: str) -> None:
    with pytest.raises(ModelOutputError):
        read_description(Completion(text=text), POLICY)


def test_a_cut_reply_is_an_error_though_it_could_be_read_and_a_refusal_is_one_of_its_own() -> None:
    with pytest.raises(ModelOutputError, match="cut off"):
        read_description(Completion(text=GOOD, finish="length"), POLICY)
    with pytest.raises(ModelRefusal):
        read_description(Completion(text="", finish="refusal"), POLICY)


def test_the_question_about_the_widest_table_is_bounded() -> None:
    wide = TableSchema(
        ref="a." + "t" * 5_000,
        columns=[ColumnSchema(name="c" * 300, type="T" * 300, comment="z" * 3_000) for _ in range(2_000)],
        comment="y" * 90_000,
        sample=[{"c" * 300: "v" * 10_000}] * 50,
    )
    [message] = description_messages(wide, POLICY)
    assert estimate_tokens(message.content) < 10_000
    assert "… and 1900 more columns" in message.content


def described(*replies: Any) -> tuple[Description, ScriptedLlm]:
    model = ScriptedLlm({"table_descriptions": list(replies)})
    return ModelDescriber(model=model, by="openai/m1", policy=POLICY).describe(a_table()), model


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_with_more_room() -> None:
    description, model = described(Completion(text='{"descr', finish="length"), GOOD)
    assert (description.text, description.by, description.problem) == (
        "One row is one order.",
        "openai/m1",
        None,
    )
    assert [request.max_output_tokens for request in model.requests] == [512, 2_048]
    assert "cut off" in model.requests[1].messages[-1].content


def test_a_table_that_the_model_does_not_describe_is_described_by_rules_and_says_why() -> None:
    for replies, asked in ((["no", "no"], 2), ([Completion(text="", finish="refusal")], 1)):
        description, model = described(*replies)
        assert (description.by, len(model.requests)) == ("rules", asked)
        assert description.text.startswith("order items: 2 columns")
        assert description.problem


def test_a_model_that_is_away_is_no_fault_of_the_table() -> None:
    with pytest.raises(TransientError):
        described(TransientError("away", dependency="model"))


# ------------------------------------------------------------------------------------------------ which model, which flags


def test_which_model_describes() -> None:
    def choice(inherited: bool, **fields: Any) -> str | None:
        found = description_choice(Project.model_validate({"id": "p", **fields}), inherited=inherited)
        return found.name if found else None

    main = {"provider": "openai", "model": "m1"}
    own = {"llm": main, "blurb_llm": {"provider": "openai", "model": "small"}, "llm_config_version": 1}
    assert choice(True) is None
    assert choice(True, llm=main, llm_config_version=1) == "openai/m1"
    assert choice(False, llm=main, llm_config_version=1) is None
    assert choice(True, **own) == choice(False, **own) == "openai/small"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--mode", "index-schema", "--run-id", "r"], "--run-id is of --mode discovery"),
        (["--mode", "index-schema", "--max-steps", "5"], "--max-steps is of --mode discovery"),
        (["--mode", "index-schema", "--max-rows", "5"], "--max-rows is of --mode discovery"),
        (["--job-id", "j", "--run-id", "r"], "--job-id is of --mode index-schema"),
        (["--refresh", "--run-id", "r"], "--refresh is of --mode index-schema"),
        ([], "required: --run-id"),
        (["--mode", "index-schema", "--job-id", "a b"], "argument --job-id"),
        (["--mode", "all"], "argument --mode"),
    ],
)
def test_flags_of_the_other_mode_are_refused(argv: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check(["--project-id", "p", *argv])


def test_an_index_needs_no_run() -> None:
    check(
        ["--project-id", "p", "--mode", "index-schema", "--job-id", "j.1", "--refresh", "--max-tokens", "9"]
    )


# --------------------------------------------------------------------------------------------------- samples in a run


def test_samples_are_read_when_a_table_is_looked_up_and_missed_where_the_cache_is_away() -> None:
    table = a_table()
    asked: list[Any] = []

    def read(keys: Any) -> Any:
        asked.append(list(keys))
        if len(asked) > 1:
            raise TransientError("away", dependency="mongodb")
        return {("default", table.ref): [{"id": 1}]}

    schema = Schema(
        tables={}, catalog=Catalog(text="", tokens=0, table_count=0, omitted=0), read_samples=read
    )
    assert schema.sampled([]) == []
    assert schema.sampled([table])[0].sample == [{"id": 1}]
    assert schema.sampled([table]) == [table]
    assert asked == [[("default", table.ref)]] * 2
