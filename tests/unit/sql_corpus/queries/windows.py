"""Window functions over every frame that all dialects have, as questions about flights."""

from __future__ import annotations

from collections.abc import Iterator

_AGGREGATES = ("sum", "avg", "min", "max", "count", "first_value", "last_value")
_FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 FOLLOWING AND 5 FOLLOWING",
    "ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ROWS 2 PRECEDING",
)
_PARTITIONS = ("", "PARTITION BY origin ", "PARTITION BY origin, dest ")
_RANKS = ("row_number()", "rank()", "dense_rank()", "ntile(4)", "lag(arr_delay)", "lead(arr_delay, 2)")


def windows() -> Iterator[str]:
    for number, (function, frame) in enumerate((f, w) for f in _AGGREGATES for w in _FRAMES):
        partition = _PARTITIONS[number % len(_PARTITIONS)]
        yield (
            f"SELECT id, {function}(arr_delay) OVER ({partition}ORDER BY id {frame}) AS measure "
            f"FROM flights ORDER BY id LIMIT {20 + number}"
        )
    for function in _RANKS:
        for partition in _PARTITIONS:
            yield (
                f"SELECT id, x FROM (SELECT id, {function} OVER ({partition}ORDER BY dep_delay DESC, id) AS x "
                f"FROM flights WHERE dep_delay IS NOT NULL) AS ranked WHERE x >= 1 ORDER BY id LIMIT 30"
            )
