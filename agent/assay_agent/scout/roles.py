"""What each column is good for, from its name, type, samples and profile. Pure.

A measure can be averaged, a dimension groups, a time column orders, a key points at another table. What is none of these (free text,
coordinates, clock readings such as 1830) is left alone: an average of it would mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from assay_agent.evidence.filters import as_number
from assay_agent.scout.situation import Column, Table

_NUMERIC = re.compile(r"INT|DOUBLE|FLOAT|REAL|DECIMAL|NUMERIC|NUMBER|HUGEINT|MONEY")
_WHOLE = re.compile(r"INT(?!ERVAL)|HUGEINT|SERIAL")
_TIME_TYPE = re.compile(r"DATE|TIMESTAMP")
_TEXT_TYPE = re.compile(r"CHAR|TEXT|STRING|CLOB|ENUM")
_ID_NAME = re.compile(
    r"(?i:(^|_)(id|uuid|guid|key|code|no|nr|num|number|zip|zipcode|postal|phone|ssn|index|idx)$|^id_)|[a-z](Id|ID)$"
)
_PART_NAME = re.compile(
    r"(?i:(^|_)(year|yr|quarter|month|mon|week|day|dow|weekday|hour|hr|minute|min|second|sec)$|^year_?id$)|[a-z](Year|Month|Day|Hour)$"
)
_MOST_OF_PART = (
    ("quarter", 4),
    ("mon", 12),
    ("week", 53),
    ("dow", 7),
    ("day", 366),
    ("h", 24),
    ("m", 60),
    ("s", 60),
)
_YEAR_NAME = re.compile(r"(^|_)(year|yr)(_?id)?$", re.IGNORECASE)
_LIFE_NAME = re.compile(r"birth|death|(^|_)dob$", re.IGNORECASE)
"""Days of a life: they order nothing that the rows are about."""
_CONTACT_NAME = re.compile(r"phone|(^|_)fax$|e_?mail|url$|address|street", re.IGNORECASE)
_PLAIN_NAME = re.compile(
    r"name$|title$|city$|state$|province$|region$|country$|zip(_?code)?$|postal_?code$|comment|description|note|status$|(^|_)(type|kind|year|month|day|date|time)$",
    re.IGNORECASE,
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TIME_NAME = re.compile(r"(^|_)time$", re.IGNORECASE)
_CLOCK_NAME = re.compile(
    r"(^|_)(lat|latitude|lon|lng|long|longitude|alt|altitude|tz|timezone|dst|dir|direction|angle|heading|bearing)$",
    re.IGNORECASE,
)
_SEASON_NAME = re.compile(r"(^|_)(quarter|month|mon|dow|weekday|hour|hr)$", re.IGNORECASE)
_LIKELY = re.compile(
    r"delay|amount|price|revenue|sales|total|cost|profit|margin|value|duration|time_spent|score|rate|rating|quantity|qty|balance|income|"
    r"fare|tip|distance|speed|weight|length|temp|visib|precip|wind|usage|minutes|count|salary|discount|freight",
    re.IGNORECASE,
)
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
_MAX_GROUPS = 60
_LEAST_STEM = 3
_CALLED = 4
"""Letters from which a column's name can be told from the beginning of a table's."""
_LEAST_FILLED = 0.3
"""Share of rows that must have a value before a column is averaged: what is left would be a selection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a profile query found for one column; None where it was not asked."""

    filled: int | None = None
    distinct: int | None = None
    low: Any = None
    high: Any = None
    not_numbers: int = 0
    """Values of a column of numbers that are none, where the warehouse lets them in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Columns of one table by use, the most promising first."""

    rows: int
    profiles: Mapping[str, Profile]
    measures: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    year: str | None = None
    month: str | None = None

    def distinct(self, column: str) -> int:
        return self.profiles[column].distinct or 0 if column in self.profiles else 0


def is_numeric(column: Column) -> bool:
    return bool(_NUMERIC.search(column.type)) and "[" not in column.type and "STRUCT" not in column.type


def is_time(column: Column) -> bool:
    """A date or timestamp by type, or a text whose samples are ISO dates."""
    if _TIME_TYPE.search(column.type):
        return True
    texts = [value for value in column.samples if isinstance(value, str)]
    return (
        bool(texts)
        and bool(_TEXT_TYPE.search(column.type) or not column.type.strip())
        and all(_ISO.fullmatch(text) for text in texts)
    )


def is_simple(column: Column) -> bool:
    """Whether values can be compared and grouped: no lists, structs, blobs or JSON."""
    return not re.search(
        r"\[|STRUCT|MAP|LIST|BLOB|BYTEA|BYTES|JSON|RECORD|ARRAY|GEO|BINARY|UNION", column.type
    )


def is_key_name(column: str) -> bool:
    """Whether a column is named as keys are."""
    return bool(_ID_NAME.search(column))


def is_name(column: Column) -> bool:
    """Whether a column holds the name of a thing."""
    return bool(re.search(r"name$|title$|label$", column.name, re.IGNORECASE)) and bool(
        _TEXT_TYPE.search(column.type)
    )


def may_point(column: str) -> bool:
    """Whether a column may point at a record of another table; what describes (a name, a city, a phone) does not."""
    return not (_CONTACT_NAME.search(column) or _PLAIN_NAME.search(column))


def named_table(column: str, tables: Collection[str]) -> str | None:
    """The table a column is named after: `album`, `album_id` or `albumId` for `album` or `albums`."""
    stem = re.sub(r"(_id|_key|Id|ID)$", "", column)
    if len(stem) < _LEAST_STEM or (stem == column and _LIKELY.search(column)):
        return None
    word = stem.lower()
    forms = {word, f"{word}s", f"{word}es", f"{word[:-1]}ies", word.replace("_", "")}
    return next((table for table in sorted(tables) if table.rsplit(".", 1)[-1].lower() in forms), None)


def roles_of(
    table: Table, profiles: Mapping[str, Profile], rows: int, *, tables: Collection[str] = ()
) -> Roles:
    """Sort the columns of a profiled table; `tables` are the others a column may be named after."""
    others = [ref for ref in tables if ref != table.ref]
    measures: list[tuple[int, str]] = []
    dimensions: list[tuple[int, str]] = []
    seasons, keys, times = [], [], []
    year = month = None
    for column in table.columns:
        profile = profiles.get(column.name, Profile())
        distinct = profile.distinct or 0
        if not is_simple(column) or distinct < 1:
            continue
        name = column.name
        part = bool(_WHOLE.search(column.type) and _PART_NAME.search(name) and _fits(name, profile))
        if is_time(column):
            times.append(name)
        elif part:
            year = name if year is None and _is_year(name, profile) else year
            month = (
                name
                if re.search(r"(^|_)(month|mon)$", name, re.IGNORECASE) and distinct > 1 and month is None
                else month
            )
            if _SEASON_NAME.search(name) and 2 <= distinct <= _MAX_GROUPS:
                seasons.append(name)
        elif (
            _is_measure(column, profile, rows)
            and not _names_the_table(name, table.ref)
            and not (_WHOLE.search(column.type) and named_table(name, others))
        ):
            measures.append((0 if _LIKELY.search(name) else 1, name))
        elif (
            2 <= distinct <= _MAX_GROUPS
            and distinct * 4 <= rows
            and not is_fraction(column)
            and _is_filled(profile, rows)
            and not _CLOCK_NAME.search(name)
            and not _TIME_NAME.search(name)
            and not _CONTACT_NAME.search(name)
        ):
            dimensions.append((0 if distinct <= 25 else 1, name))
        if (
            distinct > _MAX_GROUPS
            and not is_time(column)
            and not part
            and not _CONTACT_NAME.search(name)
            and (_TEXT_TYPE.search(column.type) or _ID_NAME.search(name) or named_table(name, others))
        ):
            keys.append(name)
    return Roles(
        rows=rows,
        profiles=profiles,
        measures=tuple(name for _, name in sorted(measures, key=lambda item: item[0])),
        dimensions=tuple(name for _, name in sorted(dimensions, key=lambda item: item[0])),
        seasons=tuple(seasons),
        keys=tuple(keys),
        times=tuple(name for name in times if not _LIFE_NAME.search(name)),
        year=year,
        month=month,
    )


def _is_measure(column: Column, profile: Profile, rows: int) -> bool:
    distinct = profile.distinct or 0
    if not is_numeric(column) or column.category == "primary_key" or _CLOCK_NAME.search(column.name):
        return False
    if _ID_NAME.search(column.name) or distinct < 8 or not _is_filled(profile, rows):
        return False
    whole = bool(_WHOLE.search(column.type))
    if whole and _TIME_NAME.search(column.name) and not _is_duration(profile):
        return False
    # A whole number that is different in every row is a counter, not a quantity.
    return not (whole and rows > 50 and distinct >= rows * 0.98)


def _fits(name: str, profile: Profile) -> bool:
    """Whether values can be what the name of a part of time says; `hr` with forty in it is no hour."""
    low, high = as_number(profile.low), as_number(profile.high)
    if low is None or high is None:
        return True
    word = name.rsplit("_", 1)[-1].lower()
    most = next((most for start, most in _MOST_OF_PART if word.startswith(start)), None)
    return low >= 0 and (most is None or high <= most)


def _is_year(name: str, profile: Profile) -> bool:
    low, high = as_number(profile.low), as_number(profile.high)
    known = low is not None and high is not None
    return bool(_YEAR_NAME.search(name)) and (not known or bool(low >= 1500 and high <= 2200))  # type: ignore[operator]  # known


def _is_duration(profile: Profile) -> bool:
    """Whether whole numbers called a time cannot be read from a clock as 1830 is: 695 has no 95th minute."""
    low, high = as_number(profile.low), as_number(profile.high)
    return low is not None and high is not None and (high > 2400 or low < 0 or high % 100 >= 60)


def _is_filled(profile: Profile, rows: int) -> bool:
    return (profile.filled or 0) >= rows * _LEAST_FILLED


def _names_the_table(column: str, ref: str) -> bool:
    """`flight` in `flights` or `flights_2013`: the number by which the things of the table are called."""
    table, name = ref.rsplit(".", 1)[-1].lower(), column.lower()
    return table == name or (
        len(name) >= _CALLED and table.startswith(f"{name}s") and not _LIKELY.search(name)
    )


def is_fraction(column: Column) -> bool:
    return is_numeric(column) and not _WHOLE.search(column.type)


def humanised(name: str) -> str:
    """A name in prose, with nothing in it that reads as a reference to a figure."""
    return " ".join(name.replace("_", " ").replace("{", "(").replace("}", ")").split())


def plain_name(name: str) -> str:
    """`OrderID`, `Order ID` and `order-id` as `order_id`, for looking at what a name says."""
    return re.sub(r"[^0-9a-z]+", "_", _HUMP.sub("_", name).lower()).strip("_")
