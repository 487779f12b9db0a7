"""What BigQuery says of its own tables: names and counts from INFORMATION_SCHEMA, columns and rights from the tables' metadata.

Called by `bigquery`. Metadata costs nothing and holds what INFORMATION_SCHEMA scatters: nested fields with their
descriptions, declared keys, and the column that partitions a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from google.api_core.exceptions import GoogleAPICallError, NotFound
from google.cloud import bigquery

from assay_agent.adapters.bigquery_credentials import Identity
from assay_agent.adapters.bigquery_failures import dataset_error
from assay_agent.adapters.bigquery_jobs import CALL_TIMEOUT_S, ONCE, POLLING, Jobs
from assay_agent.adapters.bigquery_names import (
    SUFFIX,
    Named,
    Shards,
    called,
    group_of,
    grouped,
    place_of,
    ref_of,
)
from assay_agent.adapters.bigquery_values import comment_of, label_of
from assay_agent.adapters.catalog import CatalogColumn, CatalogTable, no_such_table
from assay_agent.ports import Grant, Grants
from assay_agent.sql.dialects import parts_of
from assay_core.errors import ConfigError, QueryError

READERS = 8
"""Tables whose metadata is read at once."""
MAX_DATASETS = 200
PARTITIONS_TABLES = 1_000
"""Tables that BigQuery lets one query on PARTITIONS name."""
PROVEN_TABLES = 100
"""Tables asked for what the credential may do; rights are mostly given to datasets and projects."""
WRITING = [
    f"bigquery.tables.{right}"
    for right in ("updateData", "update", "delete", "setIamPolicy", "createSnapshot")
]
_STORED = ("BASE TABLE", "CLONE", "SNAPSHOT")
_Answer = TypeVar("_Answer")


class Metadata:
    """Reads the metadata of one project's datasets, and of others that are named with theirs.

    Of the tables listed last, `stored` are those that hold rows of their own, `shards` those that stand for one a day.
    """

    def __init__(self, jobs: Jobs, *, identity: Identity) -> None:
        self._jobs = jobs
        self._client = jobs.client
        self._identity = identity
        self.stored: set[Named] = set()
        self.shards: dict[Named, Shards] = {}

    def datasets(self) -> tuple[str, ...]:
        """Every dataset of the project, sorted."""
        with self._jobs.asking():
            listed = self._client.list_datasets(max_results=MAX_DATASETS, retry=ONCE, timeout=CALL_TIMEOUT_S)
            found = tuple(sorted(entry.dataset_id for entry in listed))
        if not found:
            raise ConfigError(f"project {self._client.project} shows no dataset to {self._identity.user}")
        return found

    def location(self, dataset: str) -> str:
        """Where a dataset is. Raises ConfigError for one that is not there, or not for this credential."""
        with self._jobs.asking():
            reference = self.dataset(dataset)
            try:
                return str(self._client.get_dataset(reference, retry=ONCE, timeout=CALL_TIMEOUT_S).location)
            except GoogleAPICallError as error:
                wrong = dataset_error(
                    error, project=reference.project, dataset=reference.dataset_id, user=self._identity.user
                )
                raise wrong or error from error

    def tables(self, datasets: Sequence[str]) -> Iterable[CatalogTable]:
        found: list[CatalogTable] = []
        stored: set[Named] = set()
        shards: dict[Named, Shards] = {}
        for dataset in datasets:
            place = self.dataset(dataset)
            views = f"`{place.project}`.`{place.dataset_id}`.INFORMATION_SCHEMA"
            rows = self._jobs.catalogue(
                f"SELECT t.table_name, t.table_type, c.n, o.option_value FROM {views}.TABLES AS t "
                f"LEFT JOIN (SELECT table_name, COUNT(*) AS n FROM {views}.COLUMNS "
                "WHERE is_hidden = 'NO' GROUP BY table_name) AS c ON c.table_name = t.table_name "
                f"LEFT JOIN {views}.TABLE_OPTIONS AS o ON o.table_name = t.table_name "
                "AND o.option_name = 'description'"
            )
            kept = {row[0] for row in rows if row[1] in _STORED}
            counts = self._counted(views, sorted(kept))
            tables = {
                name: CatalogTable(
                    schema=dataset,
                    name=name,
                    column_count=columns or 0,
                    row_count=counts.get(name),
                    comment=_text(comment),
                )
                for name, _, columns, comment in rows
            }
            cut, _ = grouped(kept)
            for group in cut:
                members = [tables.pop(name) for name in group.members]
                tables[group.name] = _as_one(group, members, others=_caught(group, kept))
                shards[dataset, group.name] = group
            stored |= {(dataset, name) for name in tables if name in kept or (dataset, name) in shards}
            found += tables.values()
        self.stored, self.shards = stored, shards
        return found

    def listed_as(self, ref: str) -> str:
        """How the table of a reference is listed: without the datasource's own project, a day's under all days' name."""
        home = self._client.project
        datasets = list(dict.fromkeys(dataset for dataset, _ in self.shards))
        group = group_of(ref, self.shards, datasets=datasets, home=home)
        *before, name = parts_of(ref)
        return group or (ref_of(called(before, home=home), name) if len(before) == 2 else ref)

    def columns(self, tables: Sequence[Named]) -> Iterable[CatalogColumn]:
        return [
            column
            for table, named in zip(self._each(self._table, tables), tables, strict=True)
            for column in self._described(table, named)
        ]

    def grants(self) -> Grants | None:
        """What the credential may do to tables, whoever gave it: on the table, its dataset or the project."""
        asked = sorted(self.stored)[:PROVEN_TABLES]
        if not asked:
            return None
        try:
            answers = self._each(self._rights, asked)
        except QueryError:  # the question itself is not answered here
            return None
        return Grants(
            user=self._identity.user,
            privileges=tuple(
                Grant(on=f"table {dataset}.{name}", names=rights)
                for (dataset, name), rights in zip(asked, answers, strict=True)
                if rights
            ),
            proof=f"IAM permissions to write tested on {len(asked)} of {len(self.stored)} tables",
        )

    def dataset(self, dataset: str) -> bigquery.DatasetReference:
        place = place_of(dataset, home=self._client.project)
        return bigquery.DatasetReference(place.project, place.dataset)

    def reference(self, named: Named) -> bigquery.TableReference:
        """The table itself; the newest of those that stand for one a day."""
        group = self.shards.get(named)
        return self.dataset(named[0]).table(group.newest if group else named[1])

    def _described(self, table: bigquery.Table, named: Named) -> Iterator[CatalogColumn]:
        yield from _columns(table, *named)
        if named in self.shards:
            yield CatalogColumn(
                schema=named[0],
                table=named[1],
                name=SUFFIX,
                type="STRING",
                nullable=False,
                comment="the day of the row's table, as in its name; a filter on it reads less",
            )

    def _counted(self, views: str, names: Sequence[str]) -> dict[str, int]:
        """Rows by table; one without partitions has none. Who may not ask knows no counts."""
        counts: dict[str, int] = {}
        with suppress(QueryError):
            for start in range(0, len(names), PARTITIONS_TABLES):
                batch = list(names[start : start + PARTITIONS_TABLES])
                rows = self._jobs.catalogue(
                    f"SELECT table_name, SUM(total_rows) FROM {views}.PARTITIONS "
                    "WHERE table_name IN UNNEST(@names) GROUP BY table_name",
                    bigquery.ArrayQueryParameter("names", "STRING", batch),
                )
                counts |= dict.fromkeys(batch, 0) | {name: int(count or 0) for name, count in rows}
        return counts

    def _each(self, ask: Callable[[Named], _Answer], tables: Sequence[Named]) -> list[_Answer]:
        with self._jobs.asking(), ThreadPoolExecutor(READERS) as pool:
            return list(pool.map(ask, tables))

    def _table(self, named: Named) -> bigquery.Table:
        try:
            return self._client.get_table(self.reference(named), retry=POLLING, timeout=CALL_TIMEOUT_S)
        except NotFound as error:
            raise no_such_table(ref_of(*named)) from error

    def _rights(self, named: Named) -> tuple[str, ...]:
        answer = self._client.test_iam_permissions(
            self.reference(named), WRITING, retry=POLLING, timeout=CALL_TIMEOUT_S
        )
        return tuple(answer.get("permissions", ()))


def _columns(table: bigquery.Table, dataset: str, name: str) -> Iterator[CatalogColumn]:
    keys = table.table_constraints.primary_key if table.table_constraints else None
    partition = table.time_partitioning or table.range_partitioning
    cut = partition.field if partition else None
    advice = "a filter on it is required" if table.require_partition_filter else "a filter on it reads less"
    for field in table.schema:
        told = [comment_of(field), f"partitions the table: {advice}" if field.name == cut else ""]
        yield CatalogColumn(
            schema=dataset,
            table=name,
            name=field.name,
            type=label_of(field),
            nullable=field.mode != "REQUIRED",
            primary_key=field.name in (keys.columns if keys else ()),
            comment="; ".join(text for text in told if text),
        )


def _as_one(group: Shards, members: Sequence[CatalogTable], *, others: int) -> CatalogTable:
    """The tables of a group as one: the newest's columns, everybody's rows."""
    counts = [table.row_count for table in members]
    newest = members[-1]
    return CatalogTable(
        schema=newest.schema,
        name=group.name,
        column_count=newest.column_count + 1,
        row_count=None if None in counts else sum(count or 0 for count in counts),
        comment=" ".join(text for text in (group.told(others), newest.comment) if text),
    )


def _caught(group: Shards, names: Iterable[str]) -> int:
    """Tables besides that a query of the group reads where it does not say which days."""
    return sum(name.startswith(group.before) for name in names) - len(group.days)


def _text(literal: str | None) -> str:
    """The text of an option, which the catalogue shows as a literal."""
    if not literal:
        return ""
    with suppress(ValueError):
        return str(json.loads(literal))
    return literal.strip("\"'")
