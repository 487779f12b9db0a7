"""What was planted in the sample of pack ecommerce."""

from __future__ import annotations

from tests.warehouses.facts import Fact

FACTS = (
    Fact(
        id="checkout_on_phones",
        areas=("conversion",),
        purpose="Checkout to payment step of the funnel by device, before and from the release of 2025-06-16",
        sql="""
SELECT avg(tried) FILTER (device = 'mobile_web' AND NOT late) AS rate_phone_before, avg(tried) FILTER (device = 'mobile_web' AND late) AS rate_phone_after, count(*) FILTER (device = 'mobile_web' AND late) AS n_phone_after,
       avg(tried) FILTER (device <> 'mobile_web' AND NOT late) AS rate_others_before, avg(tried) FILTER (device <> 'mobile_web' AND late) AS rate_others_after
FROM (SELECT device, started_at >= TIMESTAMP '2025-06-16' AS late, CASE WHEN tried_payment THEN 1.0 ELSE 0 END AS tried FROM visits WHERE began_checkout) AS checkouts
""",
        sentence="Since 2025-06-16 {rate_phone_after} of {n_phone_after} checkouts begun on phones reach payment, {rate_phone_before} did before; other devices stayed at {rate_others_before} and {rate_others_after}.",
    ),
    Fact(
        id="conversion_by_device",
        areas=("conversion", "session_behavior"),
        purpose="Share of visits that were ordered, by device",
        sql="""
SELECT avg(CASE WHEN was_ordered THEN 1.0 ELSE 0 END) FILTER (device = 'app') AS rate_app, count(*) FILTER (device = 'app') AS n_app,
       avg(CASE WHEN was_ordered THEN 1.0 ELSE 0 END) FILTER (device = 'mobile_web') AS rate_phone, count(*) FILTER (device = 'mobile_web') AS n_phone
FROM visits
""",
        sentence="{rate_app} of {n_app} visits in the app end in an order, {rate_phone} of {n_phone} on the mobile site.",
        scout=r"was ordered = true in .* with device app, but .* with mobile_web",
        scout_shows=("rate_app", "rate_phone"),
    ),
    Fact(
        id="two_days_without_visits",
        areas=("session_behavior", "conversion"),
        purpose="Days on which orders came in and no visit was recorded",
        sql="""
SELECT count(*) AS n_days, sum(o.n) AS n_orders FROM (SELECT CAST(ordered_at AS DATE) AS day, count(*) AS n FROM orders GROUP BY 1) AS o
LEFT JOIN (SELECT DISTINCT CAST(started_at AS DATE) AS day FROM visits) AS v ON v.day = o.day WHERE v.day IS NULL
""",
        sentence="On {n_days} days {n_orders} orders came in and no visit was recorded (2025-05-10 and 2025-05-11).",
        trap="conversion of that week is too high unless the days are left out.",
    ),
    Fact(
        id="test_orders_in_revenue",
        areas=("revenue",),
        purpose="Amount of test orders as a share of all orders, and order value with and without",
        sql="""
SELECT count(*) FILTER (status = 'test') AS n_tests, sum(CASE WHEN status = 'test' THEN total_eur ELSE 0 END) * 1.0 / sum(total_eur) AS share_tests,
       avg(total_eur) AS mean_all, avg(CASE WHEN status = 'paid' THEN total_eur END) AS mean_paid
FROM orders
""",
        sentence="{n_tests} test orders hold {share_tests} of the amount of all orders; the mean order is {mean_paid} EUR for paid ones and {mean_all} over all.",
        units={"mean_all": "plain", "mean_paid": "plain"},
    ),
    Fact(
        id="amounts_in_three_currencies",
        areas=("revenue",),
        purpose="Mean order total by currency in local units and in euros, paid orders",
        sql="""
SELECT count(DISTINCT currency) AS n_currencies, avg(total) AS mean_local, avg(total_eur) AS mean_eur, avg(CASE WHEN currency = 'SEK' THEN total END) AS mean_sek
FROM orders WHERE status = 'paid'
""",
        sentence="Totals are in {n_currencies} currencies: their mean of {mean_local} means nothing (kronor have one of {mean_sek}), in euros it is {mean_eur}.",
        units={"mean_local": "plain", "mean_eur": "plain", "mean_sek": "plain"},
    ),
    Fact(
        id="shoes_come_back",
        areas=("product_performance", "revenue"),
        purpose="Return rate of paid order lines by product category, return window closed",
        sql="""
SELECT avg(back) FILTER (category = 'shoes') AS rate_shoes, count(*) FILTER (category = 'shoes') AS n_shoes, avg(back) FILTER (category = 'clothing') AS rate_clothing,
       avg(back) FILTER (category NOT IN ('shoes', 'clothing')) AS rate_others
FROM (SELECT p.category, CASE WHEN r.line_id IS NULL THEN 0.0 ELSE 1 END AS back FROM order_lines AS l JOIN orders AS o ON o.order_id = l.order_id JOIN products AS p ON p.product_id = l.product_id
      LEFT JOIN returns AS r ON r.line_id = l.line_id WHERE o.status = 'paid' AND o.ordered_at < TIMESTAMP '2025-08-01') AS lines
""",
        sentence="{rate_shoes} of {n_shoes} lines of shoes came back, {rate_clothing} of clothing, {rate_others} of everything else.",
        trap="orders of August still have their return window open.",
    ),
    Fact(
        id="forty_products_sell_half",
        areas=("product_performance",),
        purpose="Share of units that the forty best-selling products hold",
        sql="""
SELECT sum(CASE WHEN place <= 40 THEN units ELSE 0 END) * 1.0 / sum(units) AS share_top_forty, count(*) AS n_products
FROM (SELECT l.product_id, sum(l.quantity) AS units, row_number() OVER (ORDER BY sum(l.quantity) DESC, l.product_id) AS place
      FROM order_lines AS l JOIN products AS p ON p.product_id = l.product_id JOIN orders AS o ON o.order_id = l.order_id WHERE o.status = 'paid' GROUP BY l.product_id) AS products
""",
        sentence="Forty of {n_products} products hold {share_top_forty} of the units of paid orders.",
    ),
    Fact(
        id="lines_of_delisted_products",
        areas=("product_performance",),
        purpose="Order lines without a match in products",
        sql="""
SELECT count(*) AS n_lines, count(*) - count(p.product_id) AS n_orphans, count(DISTINCT CASE WHEN p.product_id IS NULL THEN l.product_id END) AS n_delisted
FROM order_lines AS l LEFT JOIN products AS p ON p.product_id = l.product_id
""",
        sentence="{n_orphans} of {n_lines} order lines belong to {n_delisted} products that are not listed any more.",
        scout=r"order lines have a product without a record in products",
        scout_shows=("n_orphans",),
    ),
    Fact(
        id="guests_by_device",
        areas=("retention",),
        purpose="Share of orders without a customer by device",
        sql="""
SELECT avg(CASE WHEN customer_id IS NULL THEN 1.0 ELSE 0 END) AS share_guests, count(*) AS n_orders,
       count(*) FILTER (device = 'app' AND customer_id IS NULL) AS n_app, avg(CASE WHEN customer_id IS NULL THEN 1.0 ELSE 0 END) FILTER (device <> 'app') AS share_elsewhere
FROM orders
""",
        sentence="{share_guests} of {n_orders} orders have no customer; in the app none ({n_app}), elsewhere {share_elsewhere}.",
        trap="repeat purchase is understated wherever guests buy, so devices cannot be compared by it.",
        scout=r"rows in orders have no customer",
        scout_shows=("share_guests",),
    ),
    Fact(
        id="vouchers_and_second_orders",
        areas=("retention",),
        purpose="Repeat rate within 90 days by whether the first order had a voucher",
        sql="""
SELECT avg(again) FILTER (voucher) AS rate_voucher, count(*) FILTER (voucher) AS n_voucher, avg(again) FILTER (NOT voucher) AS rate_none, count(*) FILTER (NOT voucher) AS n_none
FROM (SELECT f.customer_id, min(f.voucher) AS voucher, max(CASE WHEN o.order_id IS NULL THEN 0 ELSE 1 END) AS again
      FROM (SELECT customer_id, min(CAST(ordered_at AS DATE)) AS day, arg_min(has_voucher, ordered_at) AS voucher FROM orders WHERE status = 'paid' AND customer_id IS NOT NULL GROUP BY customer_id) AS f
      LEFT JOIN orders AS o ON o.customer_id = f.customer_id AND o.status = 'paid' AND CAST(o.ordered_at AS DATE) > f.day AND CAST(o.ordered_at AS DATE) <= f.day + INTERVAL 90 DAY
      WHERE f.day <= DATE '2025-06-02' GROUP BY f.customer_id) AS customers
""",
        sentence="A voucher on the first order goes with no difference: {rate_voucher} of {n_voucher} customers ordered again within 90 days, {rate_none} of {n_none} without one.",
        trap="nothing was planted here: a finding would be chance.",
    ),
)
