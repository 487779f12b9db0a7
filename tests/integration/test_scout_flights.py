"""What the scout says of the flights of 2013, held against SQL that was written for this test alone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assay_agent.adapters.nycflights import load_nycflights
from assay_core.model.discovery import DiscoveryResult
from assay_core.model.insight import Figure, Insight
from assay_core.model.project import Datasource, LLMConfig
from assay_core.store.client import Store
from tests.integration.discovery import open_bench

RUNS: dict[str, DiscoveryResult] = {}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return load_nycflights(tmp_path_factory.mktemp("flights"))


@pytest.fixture
def found(store: Store, tmp_path: Path, warehouse: Path) -> DiscoveryResult:
    """One discovery of 60 steps, made once."""
    if "first" not in RUNS:
        RUNS["first"] = discover(store, tmp_path, warehouse)
    return RUNS["first"]


def discover(store: Store, home: Path, warehouse: Path) -> DiscoveryResult:
    source = Datasource(id="default", provider="duckdb", config={"path": str(warehouse)})
    bench = open_bench(store, home, datasources=[source], llm=LLMConfig(provider="scout"))
    with bench.resources:
        run = bench.new_run()
        assert bench.go(run, "--max-steps", "60") == 0
        return bench.result(run)


@pytest.fixture(scope="module")
def sql(warehouse: Path) -> Iterator[Any]:
    own = shutil.copy(warehouse, warehouse.with_name("own.duckdb"))
    with duckdb.connect(str(own)) as connection:
        yield lambda text: connection.execute(text).fetchall()


def insight(found: DiscoveryResult, pattern: str) -> Insight:
    matching = [item for item in found.insights if re.search(pattern, item.name)]
    assert matching, f"no insight like {pattern!r} among {[item.name for item in found.insights]}"
    return matching[0]


def values(item: Insight, column: str) -> list[Any]:
    return [figure.computed for figure in item.figures if figure.column == column]


def test_every_number_is_a_checked_figure(found: DiscoveryResult) -> None:
    assert len(found.insights) >= 15
    for item in found.insights:
        assert not item.figures_unresolved, item.name
        assert not item.unchecked_numbers, (item.name, item.unchecked_numbers)
        assert item.figures
        assert all(figure.checked for figure in item.figures)
        assert "{{" not in item.name + item.description
        assert "[?]" not in item.name + item.description


def test_share_of_flights_without_departure_time(found: DiscoveryResult, sql: Any) -> None:
    [(share, count)] = sql(
        "SELECT avg(CASE WHEN dep_time IS NULL THEN 1.0 ELSE 0 END), count(*) FILTER (dep_time IS NULL) FROM flights"
    )
    item = insight(found, r"rows in flights have no .* gaps too")
    assert any(value == pytest.approx(share) for value in values(item, "share_missing"))
    assert count == 8255
    assert count in values(item, "n_missing")
    assert "8,255 of 336,776 rows have no dep delay and dep time (2.5%)" in item.description


def test_most_delayed_origin(found: DiscoveryResult, sql: Any) -> None:
    [(origin, mean), *_] = sql("SELECT origin, avg(dep_delay) FROM flights GROUP BY origin ORDER BY 2 DESC")
    item = insight(found, r"Mean dep delay by origin")
    assert f"{origin} is highest" in item.name
    assert values(item, "mean_dep_delay")[0] == pytest.approx(mean)


def test_most_delayed_hour_of_day(found: DiscoveryResult, sql: Any) -> None:
    [(hour, mean), *_] = sql(
        "SELECT hour, avg(dep_delay) FROM flights WHERE dep_delay IS NOT NULL GROUP BY hour HAVING count(*) >= 1000 ORDER BY 2 DESC"
    )
    item = insight(found, r"Mean dep delay by hour")
    assert f"highest at {hour} " in item.name
    assert values(item, "mean_dep_delay")[0] == pytest.approx(mean)


def test_carriers_with_the_worst_mean_arrival_delay_among_the_large(found: DiscoveryResult, sql: Any) -> None:
    worst = sql(
        "SELECT carrier, avg(arr_delay) FROM flights GROUP BY carrier HAVING count(arr_delay) >= 1000 AND count(*) >= 1000 ORDER BY 2 DESC LIMIT 3"
    )
    item = insight(found, r"Mean arr delay by carrier")
    named = [value for value in values(item, "carrier") if isinstance(value, str)]
    assert named[0] == worst[0][0]
    assert {carrier for carrier, _ in worst} <= set(named)
    assert values(item, "mean_arr_delay")[0] == pytest.approx(worst[0][1])


def test_month_to_month_trend(found: DiscoveryResult, sql: Any) -> None:
    months = sql("SELECT month, avg(arr_delay), count(*) FROM flights GROUP BY month ORDER BY 2")
    item = insight(found, r"Mean arr delay in flights per month")
    assert f"2013-{months[-1][0]:02d}" in item.name
    assert f"2013-{months[0][0]:02d}" in item.name
    assert values(item, "mean_arr_delay")[:2] == [pytest.approx(months[-1][1]), pytest.approx(months[0][1])]


def test_planes_without_a_record(found: DiscoveryResult, sql: Any) -> None:
    [(share, rows, keys)] = sql(
        "SELECT avg(CASE WHEN tailnum NOT IN (SELECT tailnum FROM planes) THEN 1.0 ELSE 0 END), count(*) FILTER (tailnum NOT IN (SELECT tailnum FROM planes)), "
        "count(DISTINCT tailnum) FILTER (tailnum NOT IN (SELECT tailnum FROM planes)) FROM flights WHERE tailnum IS NOT NULL"
    )
    item = insight(found, r"tailnum without a record in planes")
    assert values(item, "share_without_match")[0] == pytest.approx(share)
    assert item.affected_count == rows
    assert keys in values(item, "n_keys_without_match")


def test_explained_variance_is_that_of_an_analysis_of_variance(found: DiscoveryResult, sql: Any) -> None:
    [(between, total)] = sql(
        "WITH d AS (SELECT carrier, arr_delay AS y FROM flights WHERE arr_delay IS NOT NULL), m AS (SELECT avg(y) AS mu FROM d), "
        "g AS (SELECT carrier, avg(y) AS gm FROM d GROUP BY carrier) "
        "SELECT (SELECT sum((gm - mu) * (gm - mu)) FROM d JOIN g USING (carrier) CROSS JOIN m), (SELECT sum((y - mu) * (y - mu)) FROM d CROSS JOIN m)"
    )
    assert values(insight(found, r"Mean arr delay by carrier"), "eta_squared")[0] == pytest.approx(
        between / total
    )


def test_far_values_are_those_beyond_three_quartile_distances(found: DiscoveryResult, sql: Any) -> None:
    [(count, highest)] = sql(
        "WITH q AS (SELECT quantile_cont(dep_delay, 0.25) AS a, quantile_cont(dep_delay, 0.75) AS b FROM flights) "
        "SELECT count(*) FILTER (dep_delay > b + 3 * (b - a)), max(dep_delay) FROM flights CROSS JOIN q"
    )
    item = insight(found, r"dep delay in flights lie far above")
    assert values(item, "n_far_above")[0] == count
    assert values(item, "highest")[0] == highest


def test_correlation_and_concentration_agree(found: DiscoveryResult, sql: Any) -> None:
    [(r,)] = sql("SELECT corr(dep_delay, arr_delay) FROM flights")
    assert values(insight(found, r"[Dd]ep delay and arr delay rise together"), "pearson_r")[
        0
    ] == pytest.approx(r)
    [(share,)] = sql(
        "SELECT sum(n) FROM (SELECT count(*) / (SELECT count(*) FROM flights) AS n FROM flights GROUP BY carrier ORDER BY 1 DESC LIMIT 3)"
    )
    assert values(insight(found, r"three largest carrier"), "cumulative_share")[0] == pytest.approx(share)


def test_uneven_gap_names_the_extremes(found: DiscoveryResult, sql: Any) -> None:
    rows = sql(
        "SELECT carrier, avg(CASE WHEN dep_time IS NULL THEN 1.0 ELSE 0 END) FROM flights GROUP BY carrier HAVING count(*) >= 1000 ORDER BY 2 DESC"
    )
    item = insight(found, r"Missing dep time in flights is unevenly spread: .* for carrier")
    shares: list[Figure] = [figure for figure in item.figures if figure.column == "share_missing"]
    assert [figure.computed for figure in shares] == [pytest.approx(rows[0][1]), pytest.approx(rows[-1][1])]


def test_recommendations_answer_insights_and_promise_no_number(found: DiscoveryResult) -> None:
    ids = {item.id for item in found.insights}
    assert 3 <= len(found.recommendations) <= 8
    for recommendation in found.recommendations:
        assert set(recommendation.related_insight_ids) <= ids
        assert recommendation.actions
        assert not re.search(r"\d", recommendation.expected_impact.estimated_improvement)


def test_the_same_warehouse_gives_the_same_findings(
    found: DiscoveryResult, store: Store, tmp_path: Path, warehouse: Path
) -> None:
    again = discover(store, tmp_path / "again", warehouse)
    assert [(item.slug, item.name, item.description) for item in again.insights] == [
        (item.slug, item.name, item.description) for item in found.insights
    ]
