"""Nordhaus: thirty weeks of an online shop with eight categories; a release breaks the checkout on phones.

The facts are in docs/packs/ecommerce.md. Visits that convert become orders; orders have lines, lines have returns.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from assay_agent.adapters.samples.drawing import Columns, cents, choose, create, evening, instants, stream

PROFILE: dict[str, Any] = {
    "about": "An online shop for clothes, shoes and things for the home, thirty weeks of 2025",
    "business_info": {
        "name": "Nordhaus",
        "model": "own_stock",
        "reporting_currency": "EUR",
        "data_time_zone": "UTC",
        "valid_order": "status = 'paid'",
        "test_orders": "status = 'test'",
        "releases": [{"on": "2025-06-16", "changed": "new checkout"}],
    },
    "shipping": {"return_window_days": 30, "returns_are_free": True},
    "payment": {"guest_checkout": True},
}

_DAYS, _FIRST = 210, np.datetime64("2025-02-03")
_VISITS, _CUSTOMERS, _PRODUCTS = 62_000, 3_600, 400
_RELEASE, _OUTAGE = 133, (96, 97)
"""Day of the new checkout, and the two days on which visits were not recorded."""
_TESTS, _DELISTED = 24, 260
_RATES = {"EUR": 1.0, "SEK": 11.2, "GBP": 0.85}
_CURRENCY = {"DE": "EUR", "AT": "EUR", "SE": "SEK", "GB": "GBP"}
_CATEGORIES = ("shoes", "clothing", "bags", "jewellery", "kitchen", "lighting", "textiles", "garden")
_RETURNED = {"shoes": 0.31, "clothing": 0.16}
_REASONS: dict[str | None, float] = {
    "does not fit": 48,
    "not as shown": 22,
    "changed my mind": 20,
    "damaged": 10,
}


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the six tables."""
    draw = stream(20_250_203)
    products = _products(draw)
    customers = _customers(draw)
    visits = _visits(draw, customers)
    orders = _orders(draw, visits, customers)
    lines = _lines(draw, orders, products)
    _write_products(connection, products)
    _write_customers(connection, customers)
    _write_visits(connection, visits)
    _write_orders(connection, orders, lines)
    _write_lines(connection, lines)
    _write_returns(connection, draw, orders, lines, products)


def _products(draw: np.random.RandomState) -> dict[str, Any]:
    category = np.array([_CATEGORIES[number % len(_CATEGORIES)] for number in range(_PRODUCTS)], dtype=object)
    price = np.round(draw.lognormal(3.4, 0.5, _PRODUCTS)) + 0.95
    return {"category": category, "price": price, "cost": cents(price * draw.uniform(0.35, 0.6, _PRODUCTS))}


def _customers(draw: np.random.RandomState) -> dict[str, Any]:
    return {
        "country": choose(draw, {"DE": 55, "SE": 18, "AT": 15, "GB": 12}, _CUSTOMERS),
        "first_channel": choose(draw, {"search": 45, "ads": 25, "social": 15, "email": 15}, _CUSTOMERS),
        "newsletter": draw.random_sample(_CUSTOMERS) < 0.34,
    }


def _visits(draw: np.random.RandomState, customers: dict[str, Any]) -> dict[str, Any]:
    """A funnel by device; from the release on fewer who begin the checkout on a phone try to pay."""
    day = np.sort(draw.randint(0, _DAYS, _VISITS))
    device = choose(draw, {"mobile_web": 52, "desktop": 33, "app": 15}, _VISITS)
    basket = draw.random_sample(_VISITS) < np.where(
        device == "app", 0.42, np.where(device == "desktop", 0.36, 0.30)
    )
    checkout = basket & (draw.random_sample(_VISITS) < 0.62)
    broken = (device == "mobile_web") & (day >= _RELEASE)
    tried = checkout & (draw.random_sample(_VISITS) < np.where(broken, 0.44, 0.74))
    ordered = tried & (draw.random_sample(_VISITS) < 0.93)
    channel = choose(draw, {"search": 41, "ads": 22, "direct": 17, "email": 11, "social": 9}, _VISITS)
    return {
        "day": day,
        "second": evening(draw, _VISITS, peak_hour=19),
        "device": device,
        "channel": channel,
        "customer": draw.randint(0, _CUSTOMERS, _VISITS),
        "pages": np.where(basket, 4, 1) + draw.poisson(3.0, _VISITS),
        "basket": basket,
        "checkout": checkout,
        "tried": tried,
        "ordered": ordered,
        "country": customers["country"],
    }


def _orders(draw: np.random.RandomState, visits: dict[str, Any], customers: dict[str, Any]) -> dict[str, Any]:
    """One for each visit that ordered, and the tests of staff; guests leave no customer, never in the app."""
    came = np.flatnonzero(visits["ordered"])
    test = draw.choice(came, size=_TESTS, replace=False)
    came = np.concatenate([came, test])
    is_test = np.arange(len(came)) >= len(came) - _TESTS
    device = visits["device"][came]
    status = choose(draw, {"paid": 93, "cancelled": 7}, len(came))
    status[is_test] = "test"
    guest = (device != "app") & ~is_test & (draw.random_sample(len(came)) < 0.27)
    customer = visits["customer"][came]
    return {
        "visit": came,
        "day": visits["day"][came],
        "second": np.minimum(visits["second"][came] + 600, 86_399),
        "device": device,
        "channel": visits["channel"][came],
        "customer": customer,
        "guest": guest,
        "status": status,
        "test": is_test,
        "country": customers["country"][customer],
        "lines": np.where(is_test, 8, 1 + np.minimum(draw.poisson(0.9, len(came)), 6)),
        "voucher": ~is_test & (draw.random_sample(len(came)) < 0.24),
    }


def _lines(draw: np.random.RandomState, orders: dict[str, Any], products: dict[str, Any]) -> dict[str, Any]:
    """The first forty products sell half of everything; 260 lines are of products that were taken off the list."""
    order = np.repeat(np.arange(len(orders["day"])), orders["lines"])
    weight = np.where(np.arange(_PRODUCTS) < 40, 9.0, 1.0)
    product = draw.choice(_PRODUCTS, size=len(order), p=weight / weight.sum())
    quantity = 1 + (draw.random_sample(len(order)) < 0.15)
    quantity = np.where(orders["test"][order], 12, quantity)
    price = products["price"][product]
    identifier = product + 1
    gone = draw.choice(np.flatnonzero(~orders["test"][order]), size=_DELISTED, replace=False)
    identifier[gone] = 7_000 + np.arange(_DELISTED) % 13
    discount = np.where(orders["voucher"][order], cents(price * quantity * 0.15), 0.0)
    return {
        "order": order,
        "product": product,
        "identifier": identifier,
        "quantity": quantity,
        "price": price,
        "discount": discount,
    }


def _write_products(connection: duckdb.DuckDBPyConnection, products: dict[str, Any]) -> None:
    types = {
        "product_id": "INTEGER PRIMARY KEY", "product_name": "VARCHAR", "category": "VARCHAR", "price_eur": "DECIMAL(8,2)",
        "cost_eur": "DECIMAL(8,2)",
    }  # fmt: skip
    columns = {
        "product_id": np.arange(1, _PRODUCTS + 1),
        "product_name": np.array(
            [f"{category.title()} no. {number + 1}" for number, category in enumerate(products["category"])],
            dtype=object,
        ),
        "category": products["category"],
        "price_eur": products["price"],
        "cost_eur": products["cost"],
    }
    create(connection, "products", types, columns)


def _write_customers(connection: duckdb.DuckDBPyConnection, customers: dict[str, Any]) -> None:
    types = {
        "customer_id": "INTEGER PRIMARY KEY", "country": "VARCHAR", "first_channel": "VARCHAR", "has_newsletter": "BOOLEAN",
    }  # fmt: skip
    columns = {
        "customer_id": np.arange(1, _CUSTOMERS + 1),
        "country": customers["country"],
        "first_channel": customers["first_channel"],
        "has_newsletter": customers["newsletter"],
    }
    create(connection, "customers", types, columns)


def _write_visits(connection: duckdb.DuckDBPyConnection, visits: dict[str, Any]) -> None:
    """Without those of the two days on which nothing was recorded."""
    kept = ~np.isin(visits["day"], _OUTAGE)
    types = {
        "visit_id": "INTEGER PRIMARY KEY", "started_at": "TIMESTAMP", "device": "VARCHAR", "channel": "VARCHAR",
        "pages": "SMALLINT", "added_to_basket": "BOOLEAN", "began_checkout": "BOOLEAN",
        "tried_payment": "BOOLEAN", "was_ordered": "BOOLEAN",
    }  # fmt: skip
    columns: Columns = {
        "visit_id": np.arange(1, _VISITS + 1),
        "started_at": instants(_FIRST + visits["day"], visits["second"]),
        "device": visits["device"],
        "channel": visits["channel"],
        "pages": visits["pages"],
        "added_to_basket": visits["basket"],
        "began_checkout": visits["checkout"],
        "tried_payment": visits["tried"],
        "was_ordered": visits["ordered"],
    }
    create(connection, "visits", types, {name: values[kept] for name, values in columns.items()})


def _write_orders(
    connection: duckdb.DuckDBPyConnection, orders: dict[str, Any], lines: dict[str, Any]
) -> None:
    count = len(orders["day"])
    total = np.bincount(
        lines["order"], weights=lines["price"] * lines["quantity"] - lines["discount"], minlength=count
    )
    shipping = np.where(total >= 60, 0.0, 4.95)
    currency = np.array([_CURRENCY[name] for name in orders["country"]], dtype=object)
    customer = (orders["customer"] + 1).astype(object)
    customer[orders["guest"]] = None
    types = {
        "order_id": "INTEGER PRIMARY KEY", "customer_id": "INTEGER", "ordered_at": "TIMESTAMP", "device": "VARCHAR",
        "channel": "VARCHAR", "status": "VARCHAR", "has_voucher": "BOOLEAN", "currency": "VARCHAR",
        "total": "DECIMAL(12,2)", "total_eur": "DECIMAL(12,2)",
    }  # fmt: skip
    columns: Columns = {
        "order_id": np.arange(1, count + 1),
        "customer_id": customer,
        "ordered_at": instants(_FIRST + orders["day"], orders["second"]),
        "device": orders["device"],
        "channel": orders["channel"],
        "status": orders["status"],
        "has_voucher": orders["voucher"],
        "currency": currency,
        "total": cents((total + shipping) * np.array([_RATES[name] for name in currency])),
        "total_eur": cents(total + shipping),
    }
    create(connection, "orders", types, columns)


def _write_lines(connection: duckdb.DuckDBPyConnection, lines: dict[str, Any]) -> None:
    types = {
        "line_id": "INTEGER PRIMARY KEY", "order_id": "INTEGER", "product_id": "INTEGER", "quantity": "SMALLINT",
        "unit_price_eur": "DECIMAL(8,2)", "discount_eur": "DECIMAL(8,2)",
    }  # fmt: skip
    columns: Columns = {
        "line_id": np.arange(1, len(lines["order"]) + 1),
        "order_id": lines["order"] + 1,
        "product_id": lines["identifier"],
        "quantity": lines["quantity"],
        "unit_price_eur": lines["price"],
        "discount_eur": lines["discount"],
    }
    create(connection, "order_lines", types, columns)


def _write_returns(
    connection: duckdb.DuckDBPyConnection,
    draw: np.random.RandomState,
    orders: dict[str, Any],
    lines: dict[str, Any],
    products: dict[str, Any],
) -> None:
    """Within four weeks after a paid order; shoes come back most. What lies beyond the last day has not happened yet."""
    chance = np.array([_RETURNED.get(name, 0.06) for name in products["category"]])[lines["product"]]
    back = (draw.random_sample(len(lines["order"])) < chance) & (orders["status"][lines["order"]] == "paid")
    line = np.flatnonzero(back)
    day = orders["day"][lines["order"][line]] + draw.randint(3, 29, len(line))
    line, day = line[day < _DAYS], day[day < _DAYS]
    value = lines["price"][line] * lines["quantity"][line] - lines["discount"][line]
    types = {
        "return_id": "INTEGER PRIMARY KEY", "line_id": "INTEGER", "returned_on": "DATE", "reason": "VARCHAR",
        "refund_eur": "DECIMAL(8,2)",
    }  # fmt: skip
    columns: Columns = {
        "return_id": np.arange(1, len(line) + 1),
        "line_id": line + 1,
        "returned_on": _FIRST + day,
        "reason": choose(draw, _REASONS, len(line)),
        "refund_eur": cents(value),
    }
    create(connection, "returns", types, columns)
