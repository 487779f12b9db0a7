"""Tables on which the corpus runs on real engines: flights, a trade schema (like TPC-H's) and a retail one (like TPC-DS's).

The rows come from a small arithmetic pattern, so that joins find partners and filters leave something.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

TRADE: dict[str, str] = {
    "regions": "region_id int, region_name text",
    "nations": "nation_id int, region_id int, nation_name text",
    "suppliers": "supplier_id int, nation_id int, supplier_name text, phone text, balance num, note text",
    "parts": "part_id int, part_name text, maker text, brand text, kind text, size int, container text, price num",
    "part_suppliers": "part_id int, supplier_id int, available int, cost num",
    "customers": "customer_id int, nation_id int, customer_name text, phone text, segment text, balance num",
    "orders": "order_id int, customer_id int, state text, total num, ordered day, urgency text, clerk text, note text",
    "order_lines": "order_id int, line int, part_id int, supplier_id int, quantity num, price num, discount num, tax num, "
    "returned text, state text, shipped day, promised day, received day, mode text, instruction text",
}

RETAIL: dict[str, str] = {
    "dates": "date_id int, day day, year int, month int, quarter int, week int, weekday text, holiday text",
    "items": "item_id int, item_code text, brand text, class text, category text, maker text, color text, price num, manager int",
    "stores": "store_id int, store_name text, city text, state text, staff int, zone int",
    "buyers": "buyer_id int, address_id int, household_id int, profile_id int, first_name text, last_name text, born int, "
    "country text",
    "addresses": "address_id int, city text, state text, zip text, country text, zone int",
    "profiles": "profile_id int, sex text, marital text, education text, purchase int",
    "households": "household_id int, income int, potential text, dependents int, vehicles int",
    "promotions": "promotion_id int, by_mail text, by_event text, by_tv text, cost num",
    "warehouses": "warehouse_id int, warehouse_name text, area int, state text",
    "store_sales": "date_id int, item_id int, buyer_id int, store_id int, promotion_id int, ticket int, hour int, quantity int, "
    "cost num, listed num, paid num, tax num, profit num, coupon num",
    "store_returns": "date_id int, item_id int, buyer_id int, store_id int, ticket int, quantity int, amount num, reason int",
    "web_sales": "date_id int, item_id int, buyer_id int, site int, order_no int, warehouse_id int, promotion_id int, "
    "shipped_id int, quantity int, cost num, listed num, paid num, tax num, profit num, shipping num",
    "web_returns": "date_id int, item_id int, buyer_id int, order_no int, quantity int, amount num, reason int",
    "catalog_sales": "date_id int, item_id int, buyer_id int, center int, order_no int, warehouse_id int, promotion_id int, "
    "shipped_id int, quantity int, cost num, listed num, paid num, tax num, profit num, shipping num",
    "catalog_returns": "date_id int, item_id int, buyer_id int, order_no int, quantity int, amount num, reason int",
    "stock": "date_id int, item_id int, warehouse_id int, on_hand int",
}

_TYPES = {
    "duckdb": {"int": "INTEGER", "text": "VARCHAR", "num": "DECIMAL(12, 2)", "day": "DATE"},
    "sqlite": {"int": "INTEGER", "text": "TEXT", "num": "REAL", "day": "TEXT"},
    "postgres": {"int": "integer", "text": "text", "num": "numeric(12, 2)", "day": "date"},
}
_ROWS = {
    "regions": 5,
    "nations": 25,
    "order_lines": 240,
    "orders": 80,
    "dates": 120,
    "stores": 6,
    "warehouses": 4,
}
_WORDS = {
    "region_name": ("AFRICA", "AMERICA", "ASIA", "EUROPE", "ORIENT"),
    "state": ("F", "O", "TN", "CA"),
    "returned": ("R", "A", "N"),
    "urgency": ("1-URGENT", "2-HIGH", "5-LOW"),
    "segment": ("BUILDING", "MACHINERY"),
    "mode": ("MAIL", "SHIP", "AIR", "RAIL"),
    "instruction": ("IN PERSON", "BY TRUCK"),
    "brand": ("Brand#12", "Brand#23", "Brand#34"),
    "container": ("SM BOX", "MED BAG", "LG CAN"),
    "kind": ("PROMO STEEL", "SMALL BRASS", "MEDIUM TIN"),
    "category": ("Music", "Books", "Sports"),
    "class": ("rock", "fiction", "ball"),
    "color": ("red", "green", "blue"),
    "sex": ("M", "F"),
    "marital": ("S", "M"),
    "education": ("College", "Primary"),
    "weekday": ("Monday", "Saturday", "Sunday"),
    "holiday": ("Y", "N", "N"),
    "by_mail": ("Y", "N"),
    "by_event": ("N", "Y"),
    "by_tv": ("N", "N", "Y"),
    "potential": (">10000", "1001-5000"),
    "country": ("UNITED STATES", "CANADA"),
}
_START = datetime.date(1994, 1, 3)


def statements(dialect: str) -> Iterator[str]:
    """CREATE and INSERT of every table."""
    for name, columns in (TRADE | RETAIL).items():
        pairs = [column.strip().split(" ") for column in columns.split(",")]
        listed = ", ".join(f"{column} {_TYPES[dialect][kind]}" for column, kind in pairs)
        yield f"CREATE TABLE {name} ({listed})"
        yield f"INSERT INTO {name} VALUES {', '.join(_rows(name, pairs))}"


def _rows(table: str, pairs: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in range(_ROWS.get(table, 60)):
        yield f"({', '.join(_value(column, kind, row, place) for place, (column, kind) in enumerate(pairs))})"


def _value(column: str, kind: str, row: int, place: int) -> str:
    if kind == "day":
        return f"'{_START + datetime.timedelta(days=row * 7 % 900 + place)}'"
    if kind == "num":
        return f"{(row * 37 + place * 11) % 900 / 4:.2f}"
    if kind == "text":
        words = _WORDS.get(column)
        return f"'{words[row % len(words)]}'" if words else f"'{column} {row % 9}'"
    fixed = {
        "year": 1998 + row % 5,
        "month": 1 + row % 12,
        "quarter": 1 + row % 4,
        "hour": 8 + row % 14,
        "born": 1940 + row % 50,
    }
    if column in fixed:
        return str(fixed[column])
    if column in ("quantity", "on_hand", "available"):
        return str((row * 7) % 40)
    if place == 0 and column.endswith("_id"):
        return str(row % 60)
    return str((row * 3 + place) % 20)
