"""What the scout holds worth asking and worth telling, one rule a test, on tables and results made for it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import duckdb
import pytest

from assay_agent.scout.questions.joins import join_questions, namings
from assay_agent.scout.questions.profiles import profile_questions, read_profiles
from assay_agent.scout.questions.table import table_questions
from assay_agent.scout.roles import Profile, Roles, named_table, roles_of
from assay_agent.scout.situation import Column, Table
from assay_agent.scout.sql_text import Sql
from assay_agent.scout.writer.analysis import analysis_reply
from assay_agent.scout.writer.evidence import mean_of, said, sentence
from assay_agent.sql.guard import check


def a_table(ref: str, rows: int, **columns: str) -> Table:
    """A table; a type that ends in a star makes its column the primary key."""
    made = tuple(
        Column(name, kind.rstrip("*"), "primary_key" if kind.endswith("*") else "dimension")
        for name, kind in columns.items()
    )
    return Table(ref=ref, rows=rows, columns=made)


def known(table: Table, rows: int, *, tables: Sequence[str] = (), **profiles: Any) -> Roles:
    """Roles from (distinct, low, high) per column; a whole number stands for the distinct values alone."""
    read = {}
    for name, given in profiles.items():
        distinct, low, high = given if isinstance(given, tuple) else (given, None, None)
        read[name] = Profile(filled=rows, distinct=distinct, low=low, high=high)
    return roles_of(table, read, rows, tables=tables)


def told(area: str, **exhibits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the scout says of an area; exhibits by key, `__` for a colon."""
    digests = [
        {"step": number, "purpose": f"x [{key.replace('__', ':')}]", "rows": rows, "row_count": len(rows)}
        for number, (key, rows) in enumerate(exhibits.items(), start=1)
    ]
    reply = analysis_reply(f"Task: analysis\nArea: {area}\nAt most 12 insights\n{json.dumps(digests)}")
    return list(json.loads(reply)["insights"])


# ---- columns


def test_number_that_points_at_a_table_is_not_averaged() -> None:
    table = a_table("main.track", 3_000, album="INTEGER", genre_id="INTEGER", bytes="INTEGER")
    others = ["main.album", "main.genres", "main.track"]
    roles = known(table, 3_000, tables=others, album=340, genre_id=25, bytes=2_900)
    assert roles.measures == ("bytes",)
    assert roles.dimensions == ("genre_id",)


def test_measure_named_as_a_table_is_still_a_measure() -> None:
    assert named_table("sales", ["main.sales"]) is None
    assert named_table("sales_id", ["main.sales"]) == "main.sales"
    assert named_table("categoryId", ["main.categories"]) == "main.categories"


def test_hr_beyond_a_day_is_a_measure_and_not_an_hour() -> None:
    table = a_table("main.batting", 9_000, HR="INTEGER", hour="INTEGER")
    roles = known(table, 9_000, HR=(60, 0, 73), hour=(24, 0, 23))
    assert (roles.measures, roles.seasons) == (("HR",), ("hour",))


def test_year_is_known_by_name_and_range() -> None:
    table = a_table("main.salaries", 9_000, yearID="INTEGER", salary="INTEGER")
    assert known(table, 9_000, yearID=(32, 1985, 2016), salary=3_000).year == "yearID"
    assert known(table, 9_000, yearID=(32, 1, 32), salary=3_000).year is None


def test_contacts_are_no_groups_and_birthdays_no_time() -> None:
    table = a_table("main.staff", 900, fax="VARCHAR", birth_date="DATE", hired="DATE", team="VARCHAR")
    roles = known(table, 900, fax=40, birth_date=800, hired=700, team=12)
    assert roles.dimensions == ("team",)
    assert roles.times == ("hired",)


def test_sparse_column_makes_no_groups() -> None:
    table = a_table("main.t", 1_000, rare="VARCHAR", kind="VARCHAR")
    profiles = {"rare": Profile(filled=20, distinct=8), "kind": Profile(filled=1_000, distinct=8)}
    assert roles_of(table, profiles, 1_000).dimensions == ("kind",)


# ---- questions


STAFF = a_table("main.staff", 8, id="INTEGER*", fax="VARCHAR", first_name="VARCHAR", label="VARCHAR")
BUYERS = a_table(
    "main.buyers", 500, buyer_id="INTEGER*", fax="VARCHAR", first_name="VARCHAR", staff="INTEGER"
)


def test_names_and_numbers_of_phones_are_no_keys_but_a_column_named_as_a_table_is() -> None:
    staff = known(STAFF, 8, id=8, fax=8, first_name=8, label=8)
    buyers = known(BUYERS, 500, buyer_id=500, fax=90, first_name=300, staff=5)
    asked = [question.key for question in join_questions(BUYERS, buyers, [(STAFF, staff)], Sql("duckdb"))]
    assert asked == ["orphan:main.buyers:staff:main.staff"]


def test_numbered_groups_are_shown_by_their_names() -> None:
    staff = known(STAFF, 8, id=8, fax=8, first_name=8, label=8)
    spent = a_table("main.buyers", 500, staff="INTEGER", amount="DOUBLE")
    roles = known(spent, 500, tables=["main.staff"], staff=5, amount=400)
    names = namings(spent, [(STAFF, staff)])
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE staff AS SELECT i AS id, 'f' AS fax, 'Ann ' || i AS first_name FROM range(8) t(i)"
        )
        connection.execute(
            "CREATE TABLE buyers AS SELECT i % 5 AS staff, i * 1.0 AS amount FROM range(500) t(i)"
        )
        for question in table_questions(spent, roles, Sql("duckdb"), names=names):
            if question.key in ("group:main.buyers:staff:amount", "conc:main.buyers:staff"):
                check(question.sql, dialect="duckdb")
                rows = connection.execute(question.sql).fetchall()
                assert rows
                assert all(str(row[0]).startswith("Ann ") for row in rows)


def test_small_table_is_not_asked_for_a_movement_over_time() -> None:
    table = a_table("main.staff", 8, hired="DATE", pay="DOUBLE")
    roles = known(table, 8, hired=(8, "2001-01-01", "2009-01-01"), pay=8)
    assert not [q for q in table_questions(table, roles, Sql("duckdb")) if q.key.startswith("trend:")]


def test_many_years_are_asked_for_by_decade() -> None:
    table = a_table("main.salaries", 9_000, year="INTEGER", salary="DOUBLE")
    roles = known(table, 9_000, year=(130, 1880, 2010), salary=3_000)
    keys = [question.key for question in table_questions(table, roles, Sql("sqlite"))]
    assert "trend:main.salaries:decade" in keys


WIDE = a_table("main.wide", 600, kind="VARCHAR", **{f"m{i}": "DOUBLE" for i in range(6)})


def wide_roles() -> Roles:
    return known(WIDE, 600, kind=3, m0=500, m1=500, m2=500, m3=500, m4=500, m5=500)


def test_of_many_measures_the_ones_that_differ_are_looked_at_first() -> None:
    results = {
        "sep:main.wide:kind": [
            {"column_name": "m1", "eta_squared": 0.97, "n_rows": 600, "n_groups": 3},
            {"column_name": "m4", "eta_squared": 0.5, "n_rows": 600, "n_groups": 3},
        ]
    }
    questions = table_questions(WIDE, wide_roles(), Sql("duckdb"), results=results)
    groups = [question.key for question in questions if question.key.startswith("group:")]
    assert groups[0] == "group:main.wide:kind:m4"
    assert "group:main.wide:kind:m1" not in groups[:2]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_statistics_equal_those_of_the_engine(dialect: str) -> None:
    values = "SELECT i, 'k' || (i % 3), i * 1.0 + (i * i) % 7, CAST((i * 37) % 101 + 0.5 AS DOUBLE), -i / 3.0, CASE WHEN i % 4 > 0 THEN (i * 13) % 17 END, 1e9 + i, i % 10"
    with duckdb.connect() as truth, sqlite3.connect(":memory:") as lite:
        truth.execute(
            f"CREATE TABLE wide AS SELECT * FROM ({values} FROM range(600) t(i)) AS v(i, kind, m0, m1, m2, m3, m4, m5)"
        )
        rows = truth.execute("SELECT kind, m0, m1, m2, m3, m4, m5 FROM wide").fetchall()
        lite.execute("CREATE TABLE wide (kind TEXT, m0 REAL, m1 REAL, m2 REAL, m3 REAL, m4 REAL, m5 REAL)")
        lite.executemany(
            "INSERT INTO wide VALUES (?, ?, ?, ?, ?, ?, ?)",
            [[c if c is None or isinstance(c, str) else float(c) for c in row] for row in rows],
        )
        run = truth if dialect == "duckdb" else lite
        questions = {q.key: q.sql for q in table_questions(WIDE, wide_roles(), Sql(dialect))}

        def ask(key: str) -> list[tuple[Any, ...]]:
            check(questions[key], dialect=dialect)
            return [tuple(row) for row in run.execute(questions[key].replace('"main".', "main.")).fetchall()]

        for a, b, r, n in ask("corr:main.wide"):
            [expected] = truth.execute(f"SELECT corr({a}, {b}), regr_count({a}, {b}) FROM wide").fetchall()
            assert (r, n) == (pytest.approx(expected[0], abs=1e-9), expected[1])
        [outliers] = ask("outlier:main.wide:m1")
        [expected] = truth.execute(
            "SELECT count(m1), min(m1), quantile_cont(m1, 0.25), median(m1), quantile_cont(m1, 0.75), quantile_cont(m1, 0.99), max(m1) FROM wide"
        ).fetchall()
        assert outliers[:7] == pytest.approx([float(value) for value in expected])
        for name, eta, n, groups in ask("sep:main.wide:kind"):
            [(between, total, count)] = truth.execute(
                f"WITH d AS (SELECT kind, {name} AS y FROM wide WHERE {name} IS NOT NULL), g AS (SELECT kind, avg(y) AS gm FROM d GROUP BY kind) "
                "SELECT sum((gm - mu) ** 2), sum((y - mu) ** 2), count(*) FROM d JOIN g USING (kind) CROSS JOIN (SELECT avg(y) AS mu FROM d)"
            ).fetchall()
            assert (n, groups) == (count, 3)
            assert eta == pytest.approx(between / total, abs=1e-5)


# ---- findings


def test_gaps_of_a_table_are_one_finding_and_small_tables_have_none() -> None:
    rows = [
        {"column_name": "company", "n_rows": 590, "n_missing": 490, "share_missing": 490 / 590},
        {"column_name": "state", "n_rows": 590, "n_missing": 290, "share_missing": 290 / 590},
        {"column_name": "phone", "n_rows": 590, "n_missing": 10, "share_missing": 10 / 590},
    ]
    [finding] = told("data_quality", **{"missing__main.buyers": rows})
    assert "other columns have gaps too" in finding["name"]
    assert finding["description"].count("rows have no") >= 3
    few = [{"column_name": "boss", "n_rows": 8, "n_missing": 1, "share_missing": 0.125}]
    assert told("data_quality", **{"missing__main.staff": few}) == []


def an_orphan(without: int) -> list[dict[str, Any]]:
    return [
        {
            "n_rows": 100,
            "n_without_match": without,
            "share_without_match": without / 100,
            "n_keys_without_match": 3,
            "n_keys": 9,
        }
    ]


def test_column_whose_values_hardly_occur_elsewhere_points_nowhere() -> None:
    assert told("data_quality", **{"orphan__main.t__word__main.u": an_orphan(60)}) == []
    assert told("data_quality", **{"orphan__main.t__word__main.u": an_orphan(20)})
    assert told("data_quality", **{"orphan__main.t__order_id__main.u": an_orphan(60)})
    assert told("data_quality", **{"orphan__main.t__order_id__main.u": an_orphan(100)}) == []


def test_movement_that_chance_explains_is_not_told() -> None:
    even: list[dict[str, Any]] = [
        {"period": f"2020-{month:02d}-01", "n_rows": 19 + month % 3} for month in range(1, 13)
    ]
    assert told("trends", **{"trend__main.t__month": even}) == []
    steep = [{"period": f"2020-{month:02d}-01", "n_rows": 100 + 40 * month} for month in range(1, 13)]
    assert told("trends", **{"trend__main.t__month": steep})
    noise = [{**row, "mean_price": 5 + row["n_rows"] % 3, "squares_price": 900.0} for row in even]
    assert told("trends", **{"trend__main.t__month": noise}) == []


def test_cut_decade_at_the_end_is_no_fall() -> None:
    counts = (500, 700, 1_000, 1_000, 1_300, 1_290, 400)
    rows = [{"period": 1950 + 10 * i, "n_rows": n} for i, n in enumerate(counts)]
    found = told("trends", **{"trend__main.t__decade": rows})
    assert all("per whole decade" in item["name"] and "left out" in item["description"] for item in found)
    assert found


def an_outlier(far: int, highest: float) -> list[dict[str, Any]]:
    return [
        {
            "n_rows": 569,
            "lowest": 1,
            "p25": 10.0,
            "median": 15.0,
            "p75": 20.0,
            "p99": 30.0,
            "highest": highest,
            "n_far_above": far,
            "n_far_below": 0,
            "share_far_above": far / 569,
        }
    ]


def test_one_value_just_beyond_the_bound_is_not_told_and_a_far_one_in_the_singular() -> None:
    assert told("anomalies", **{"outlier__main.t__size": an_outlier(1, 55.0)}) == []
    [finding] = told("anomalies", **{"outlier__main.t__size": an_outlier(1, 900.0)})
    assert "value of size in t lies far above" in finding["name"]
    assert finding["severity"] in ("low", "medium")


def test_measures_that_are_nearly_one_are_told_once() -> None:
    pairs = [
        ("radius", "perimeter", 0.998),
        ("area", "radius", 0.987),
        ("area", "perimeter", 0.986),
        ("area", "dents", 0.8),
        ("dents", "radius", 0.79),
    ]
    rows = [{"column_a": a, "column_b": b, "pearson_r": r, "n_rows": 500} for a, b, r in pairs]
    found = told("relationships", **{"corr__main.t": rows})
    assert ["move as one" in item["name"] for item in found] == [True, False]
    assert "Area, perimeter and radius" in found[0]["name"]


def a_group(dimension: str, measure: str, labels: Sequence[Any], eta: float) -> list[dict[str, Any]]:
    return [
        {
            dimension: label,
            "n_rows": 300,
            f"mean_{measure}": 90.0 - 20 * place,
            "overall_mean": 60.0,
            "eta_squared": eta,
            "n_all": 900,
            "n_groups": len(labels),
            "min_rows": 10,
        }
        for place, label in enumerate(labels)
    ]


def test_same_group_on_top_for_another_measure_or_table_is_told_once() -> None:
    found = told(
        "relationships",
        group__t__origin__arrival=a_group("origin", "arrival", ["E", "J", "L"], 0.3),
        group__t__origin__departure=a_group("origin", "departure", ["E", "L", "J"], 0.2),
        group__u__origin__arrival=a_group("origin", "arrival", ["E", "J", "L"], 0.2),
        group__t__origin__length=a_group("origin", "length", ["J", "E", "L"], 0.2),
    )
    assert [item["name"].split(" by ")[0] for item in found] == ["Mean arrival", "Mean length"]


def test_measure_a_grouping_defines_is_not_the_one_that_differs_most() -> None:
    rows = [
        {"column_name": name, "eta_squared": eta, "n_rows": 900, "n_groups": 3}
        for name, eta in (("code", 0.98), ("height", 0.4), ("width", 0.1), ("depth", 0.01))
    ]
    [finding] = told("relationships", **{"sep__main.t__kind": rows})
    assert "height differs most by kind" in finding["name"]
    assert "leaving out code" in finding["name"]


def test_highest_of_the_large_groups_is_called_that() -> None:
    rows = a_group("kind", "size", ["a", "b", "c"], 0.3)
    [plain] = told("relationships", group__t__kind__size=rows)
    assert "or more" not in plain["name"]
    [finding] = told("relationships", group__t__kind__size=[{**row, "n_groups": 5} for row in rows])
    assert "rows or more" in finding["name"]
    assert "rows or more" in finding["description"].split("\n")[0]


def test_names_read_as_words() -> None:
    assert (mean_of("mean_radius"), mean_of("price")) == ("mean radius", "mean price")
    assert (said("genre_id"), said("id"), said("InnOuts")) == ("genre", "id", "InnOuts")
    assert sentence("InnOuts is") == "InnOuts is"


# ---- values of another type


def test_a_text_in_a_column_of_numbers_of_sqlite_counts_as_no_number_and_is_told() -> None:
    table = a_table("main.readings", 429, station="TEXT", amount="REAL")
    sql = Sql("sqlite")
    with closing(sqlite3.connect(":memory:")) as lite:
        lite.row_factory = sqlite3.Row
        lite.execute("CREATE TABLE readings (station TEXT, amount REAL)")
        values = [("abc"[n % 3], 10 + n % 50) for n in range(428)]
        lite.executemany("INSERT INTO readings VALUES (?, ?)", [*values, ("a", "oops")])

        def answer(statement: str) -> list[dict[str, Any]]:
            check(statement, dialect="sqlite")
            return [dict(row) for row in lite.execute(statement)]

        [profile] = profile_questions(table, sql, turn=1)
        read = read_profiles(table, {profile.key: answer(profile.sql)})
        assert read is not None
        assert (read[1]["amount"].low, read[1]["amount"].high, read[1]["amount"].not_numbers) == (10, 59, 1)
        questions = table_questions(table, roles_of(table, read[1], read[0]), sql)
        rows = {question.key.partition(":")[0]: answer(question.sql) for question in questions}
    assert (rows["outlier"][0]["highest"], rows["outlier"][0]["n_rows"]) == (59, 428)
    assert sum(row["n_rows"] for row in rows["group"]) == 428
    assert rows["group"][0]["overall_mean"] == pytest.approx(sum(value for _, value in values) / 428)
    [found] = told("data_quality", notnum__main_readings=rows["notnum"])
    assert "no number" in found["name"]
    assert [row["first_of_them"] for row in rows["notnum"]] == ["oops"]
    assert not told("anomalies", outlier__main_readings__amount=rows["outlier"])
