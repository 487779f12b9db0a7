"""Findings about the data itself: gaps, where gaps sit, duplicates, keys without a partner. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from assay_agent.scout.roles import humanised, is_key_name, named_table
from assay_agent.scout.writer.evidence import (
    Draft,
    Exhibit,
    number,
    said,
    sentence,
    table_name,
    where,
    with_article,
)

_SMALL_GAP = 0.001
_TOLD_GAPS = 6
_FEW_ROWS = 30
_LEAST_PARTNERS, _LEAST_KEY_PARTNERS = 0.5, 0.05
"""Share of rows that must find a partner before a column counts as a pointer; less where its name says that it is a key."""


def missing(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """The gaps of a table in one finding. Columns that lack exactly as many values are told together: they go missing as one."""
    groups: dict[float, list[str]] = {}
    for row in exhibit.rows:
        count = number(row, "n_missing")
        if count > 0 and number(row, "share_missing") >= _SMALL_GAP:
            groups.setdefault(count, []).append(str(row["column_name"]))
    if not groups or number(exhibit.rows[0], "n_rows") < _FEW_ROWS:
        return
    shares = {count: number(_row(exhibit, names[0]), "share_missing") for count, names in groups.items()}
    ordered = sorted(groups, key=lambda count: (-_gap_effect(shares[count]), count))
    first = ordered[0]
    share = shares[first]
    draft = Draft(
        exhibit, effect=_gap_effect(share), sample=number(_row(exhibit, groups[first][0]), "n_rows")
    )
    table, names = table_name(exhibit.table), _together(groups[first])
    part = draft.share("share_missing", where("column_name", groups[first][0]))
    others = sum(len(groups[count]) for count in ordered[1:])
    more = f", {'another column has' if others == 1 else 'other columns have'} gaps too" if others else ""
    details = [_gap_line(draft, groups[count]) for count in ordered[:_TOLD_GAPS]]
    if any(len(groups[count]) > 1 for count in ordered[:_TOLD_GAPS]):
        details.append(
            "columns told together lack a value in the same number of rows: they seem to go missing as one"
        )
    details.append(
        "an empty value may mean that something did not happen; means over these columns leave such rows out"
    )
    yield draft.insight(
        name=f"{part} of the rows in {table} have no {names}{more}",
        takeaway=f"{part} of the rows of {table} have no {names}{more}.",
        details=details,
        affected=first,
        segment=f"rows of {table} without {said(groups[first][0])}",
        metrics={"share_missing": share},
    )


def other_than_numbers(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """Values that are not numbers in columns of numbers, in one finding; the most affected column first."""
    rows = [row for row in exhibit.rows if number(row, "n_not_numbers") > 0]
    if not rows:
        return
    count, share = number(rows[0], "n_not_numbers"), number(rows[0], "share_not_numbers")
    draft = Draft(exhibit, effect=min(0.25 + share, 0.7), sample=number(rows[0], "n_values"))
    table, column = table_name(exhibit.table), str(rows[0]["column_name"])
    at = where("column_name", column)
    how_many = draft.cell("n_not_numbers", at, unit="count")
    value, are = ("value", "is no number") if count == 1 else ("values", "are no numbers")
    yield draft.insight(
        name=f"In {said(column)} of {table}, {how_many} {value} {are}",
        takeaway=f"{sentence(said(column))} of {table} is a column of numbers, but {how_many} of its "
        f"{draft.cell('n_values', at, unit='count')} values {are}.",
        details=[
            *(_other_line(draft, str(row["column_name"])) for row in rows[:_TOLD_GAPS]),
            "such values are left out of every mean, quartile and extreme told here; a sum in SQLite takes them for 0",
        ],
        affected=count,
        segment=f"rows of {table} whose {said(column)} is no number",
        metrics={"share_not_numbers": share},
    )


def _other_line(draft: Draft, column: str) -> str:
    at = where("column_name", column)
    n, of = draft.cell("n_not_numbers", at, unit="count"), draft.cell("n_values", at, unit="count")
    return f"{said(column)}: {n} of {of} values, such as {draft.cell('first_of_them', at)}"


def _row(exhibit: Exhibit, column: str) -> dict[str, Any]:
    return next(row for row in exhibit.rows if row["column_name"] == column)


def _together(columns: Sequence[str]) -> str:
    shown = [said(name) for name in columns[:3]]
    if len(columns) > 3:
        return f"{', '.join(shown)} and others"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _gap_line(draft: Draft, columns: Sequence[str]) -> str:
    at = where("column_name", columns[0])
    n, of = draft.cell("n_missing", at, unit="count"), draft.cell("n_rows", at, unit="count")
    return f"{n} of {of} rows have no {_together(columns)} ({draft.share('share_missing', at)})"


def _gap_effect(share: float) -> float:
    """A gap matters most where part of the column is used; a column that is nearly empty is simply not filled."""
    return 0.2 if share > 0.9 else 0.15 + 0.25 * min(share / 0.4, 1.0)


def gap(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """A gap that sits in some groups more than in others."""
    _, column, dimension = exhibit.parts
    rows = [row for row in exhibit.rows if number(row, "n_rows") > 0]
    if len(rows) < 2:
        return
    top, bottom = rows[0], rows[-1]
    high, low = number(top, "share_missing"), number(bottom, "share_missing")
    n_high, n_low = number(top, "n_rows"), number(bottom, "n_rows")
    spread = high - low
    if spread < 0.01 or not _differs(high, low, n_high, n_low):
        return
    draft = Draft(exhibit, effect=min(0.1 + 1.2 * spread, 0.7), sample=min(n_high, n_low))
    a, b = where(dimension, top[dimension]), where(dimension, bottom[dimension])
    worst, best = draft.label(dimension, top[dimension]), draft.label(dimension, bottom[dimension])
    high_text, low_text = draft.share("share_missing", a), draft.share("share_missing", b)
    table = table_name(exhibit.table)
    yield draft.insight(
        name=f"Missing {said(column)} in {table} is unevenly spread: {high_text} for {said(dimension)} {worst}, {low_text} for {best}",
        takeaway=f"{sentence(said(column))} is missing in {high_text} of the {table} rows of {said(dimension)} {worst}, but in {low_text} of those of {best}.",
        details=[
            f"{worst}: {draft.cell('n_missing', a, unit='count')} of {draft.cell('n_rows', a, unit='count')} rows",
            f"{best}: {draft.cell('n_missing', b, unit='count')} of {draft.cell('n_rows', b, unit='count')} rows",
            f"groups below {draft.cell('min_rows', a, unit='count')} rows are left out",
            "far beyond chance by a two-proportion z-test",
        ],
        affected=number(top, "n_missing"),
        segment=f"{said(dimension)} {worst}",
        metrics={"share_missing_highest": high, "share_missing_lowest": low},
    )


def _differs(a: float, b: float, n_a: float, n_b: float) -> bool:
    """Two-proportion z-test with a strict bound, since the groups were picked as the extremes of many."""
    pooled = (a * n_a + b * n_b) / (n_a + n_b)
    error = (pooled * (1 - pooled) * (1 / n_a + 1 / n_b)) ** 0.5
    return bool(error > 0 and abs(a - b) / error > 5)


def duplicates(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    row = exhibit.rows[0]
    count, share = number(row, "n_duplicate"), number(row, "share_duplicate")
    if not count > 0:
        return
    draft = Draft(exhibit, effect=min(0.25 + share * 2, 0.9), sample=number(row, "n_rows"))
    table = table_name(exhibit.table)
    yield draft.insight(
        name=f"{draft.cell('n_duplicate', unit='count')} rows of {table} repeat another row in every column",
        takeaway=f"{draft.share('share_duplicate')} of the rows of {table} are exact copies of another row.",
        details=[
            f"{draft.cell('n_rows', unit='count')} rows, {draft.cell('n_distinct', unit='count')} of them different",
            "counts and sums over this table count the copies too",
        ],
        affected=count,
        segment=f"repeated rows of {table}",
        metrics={"share_duplicate": share},
    )


def repeated_keys(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    """Values of a nearly unique column that stand in more than one row."""
    _, column = exhibit.parts
    row = exhibit.rows[0]
    count, share = number(row, "n_rows_repeated"), number(row, "share_repeated")
    if not count > 0:
        return
    draft = Draft(exhibit, effect=min(0.3 + share * 2, 0.7), sample=number(row, "n_rows"))
    table, key = table_name(exhibit.table), humanised(column)
    keys, rows = draft.cell("n_keys_repeated", unit="count"), draft.cell("n_rows_repeated", unit="count")
    yield draft.insight(
        name=f"{keys} values of {key} stand in more than one row of {table}",
        takeaway=f"{sentence(key)} looks like a key of {table}, but {keys} of its values occur more than once.",
        details=[
            f"{rows} of {draft.cell('n_rows', unit='count')} rows share their {key} with another row, {draft.share('share_repeated')} of them",
            f"at most {draft.cell('most_rows', unit='count')} rows have the same one",
            "a join by this column multiplies these rows",
        ],
        affected=count,
        segment=f"rows of {table} whose {key} is not unique",
        metrics={"share_repeated": share},
    )


def orphans(exhibit: Exhibit) -> Iterator[dict[str, Any]]:
    _, column, other = exhibit.parts
    row = exhibit.rows[0]
    count, share = number(row, "n_without_match"), number(row, "share_without_match")
    least = _LEAST_KEY_PARTNERS if is_key_name(column) or named_table(column, [other]) else _LEAST_PARTNERS
    if not count > 0 or share > 1 - least:
        return
    draft = Draft(exhibit, effect=min(0.25 + share * 1.5, 0.9), sample=number(row, "n_rows"))
    table, partner = table_name(exhibit.table), table_name(other)
    part = draft.share("share_without_match")
    yield draft.insight(
        name=f"{part} of the rows in {table} have {with_article(said(column))} without a record in {partner}",
        takeaway=f"{part} of the rows of {table} that name {with_article(said(column))} find no record in {partner}.",
        details=[
            f"{draft.cell('n_without_match', unit='count')} of {draft.cell('n_rows', unit='count')} rows",
            f"{draft.cell('n_keys_without_match', unit='count')} of {draft.cell('n_keys', unit='count')} different values of {said(column)} are unknown to {partner}",
            f"an inner join with {partner} silently drops these rows",
        ],
        affected=count,
        segment=f"rows of {table} whose {said(column)} is not in {partner}",
        metrics={"share_without_match": share},
    )
