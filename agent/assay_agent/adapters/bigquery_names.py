"""Names at BigQuery: datasets of other projects, and tables that are cut into one a day. Pure; called by `bigquery_catalog`.

A dataset is written `dataset`, or `project.dataset` where another project holds it: the datasource's own project runs and pays
for the queries, the other one only shows its rows. Tables `events_20260101`, `events_20260102`, … are one table `events_*`,
as queries name them (https://cloud.google.com/bigquery/docs/querying-wildcard-tables).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from assay_agent.sql.dialects import make_ref, parts_of
from assay_core.errors import ConfigError

SUFFIX = "_TABLE_SUFFIX"
SHARDS_LEAST = 2
"""Tables that must share a name before the day for it to stand for all of them."""
_SHARD = re.compile(r"(?P<before>.+?)(?P<day>(?:19|20)\d{6})")
_DATASET = re.compile(r"(?:(?P<project>[A-Za-z0-9-]+)\.)?(?P<dataset>[^.]+)")
Named = tuple[str, str]
"""Dataset, with its project where that is another one, and table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a dataset is."""

    project: str
    dataset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Tables that differ by their day only. `days` are as in the names, oldest first."""

    before: str
    days: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.before}*"

    @property
    def newest(self) -> str:
        return f"{self.before}{self.days[-1]}"

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(f"{self.before}{day}" for day in self.days)

    def told(self, others: int) -> str:
        """What a reader must know, in one line. `others` are tables that the name catches besides."""
        first, last = _date(self.days[0]), _date(self.days[-1])
        missing = (last - first).days + 1 - len(self.days)
        gaps = f", {missing} day{'s' if missing > 1 else ''} missing" if 0 < missing < len(self.days) else ""
        also = f" It also catches {others} other tables." if others else ""
        return (
            f"{len(self.days)} tables, {self.days[0]} to {self.days[-1]}{gaps}. Say which days: "
            f"WHERE {SUFFIX} BETWEEN '{self.days[-1]}' AND '{self.days[-1]}'; others are not read.{also}"
        )


def place_of(dataset: str, *, home: str) -> Place:
    """The place of a dataset as the settings write it. Raises ConfigError where that is no name."""
    found = _DATASET.fullmatch(dataset)
    if found is None:
        raise ConfigError(f"datasets: {dataset[:60]!r} is no dataset; write dataset or project.dataset")
    return Place(project=found["project"] or home, dataset=found["dataset"])


def known_as(dataset: str, *, home: str) -> str:
    """The dataset as it is called here: without the project where that is the datasource's own."""
    place = place_of(dataset, home=home)
    return place.dataset if place.project == home else f"{place.project}.{place.dataset}"


def called(before: Sequence[str], *, home: str) -> str:
    """What stands before a table's name, as a dataset is called here; whether there is one is not asked."""
    own = len(before) > 1 and before[0] == home
    return ".".join(before[1:] if own else before)


def ref_of(dataset: str, table: str) -> str:
    """How queries and lookups name a table."""
    project, _, name = dataset.rpartition(".")
    return make_ref(name, table, catalog=project or None)


def grouped(names: Iterable[str]) -> tuple[list[Shards], list[str]]:
    """The tables that are cut by day, each as one, and the names that are not among them. Both sorted."""
    days: dict[str, list[str]] = {}
    rest: list[str] = []
    for name in names:
        found = _SHARD.fullmatch(name)
        if found is not None and _is_day(found["day"]):
            days.setdefault(found["before"], []).append(found["day"])
        else:
            rest.append(name)
    cut = [
        Shards(before=before, days=tuple(sorted(found)))
        for before, found in sorted(days.items())
        if len(found) >= SHARDS_LEAST
    ]
    single = [
        f"{before}{day}" for before, found in days.items() if len(found) < SHARDS_LEAST for day in found
    ]
    return cut, sorted([*rest, *single])


def group_of(ref: str, shards: Mapping[Named, Shards], *, datasets: Sequence[str], home: str) -> str | None:
    """The table under which a single day's is listed; None for any other name."""
    *before, name = parts_of(ref)
    found = _SHARD.fullmatch(name)
    if found is None:
        return None
    asked = [called(before, home=home)] if before else datasets
    for dataset in asked:
        group = shards.get((dataset, f"{found['before']}*"))
        if group is not None and found["day"] in group.days:
            return ref_of(dataset, group.name)
    return None


def _is_day(text: str) -> bool:
    try:
        _date(text)
    except ValueError:
        return False
    return True


def _date(text: str) -> date:
    return datetime.strptime(text, "%Y%m%d").date()  # noqa: DTZ007  # a day has no zone
