"""Questions of a retailer with three channels, of the shapes that TPC-DS made known, in our own words and on our own tables."""

from __future__ import annotations

from itertools import product

CHANNELS = ("store_sales", "web_sales", "catalog_sales")
_SOLD = (
    "WITH sold AS (SELECT 'store' AS channel, date_id, item_id, buyer_id, quantity, paid, profit FROM store_sales UNION ALL "
    "SELECT 'web', date_id, item_id, buyer_id, quantity, paid, profit FROM web_sales UNION ALL "
    "SELECT 'catalog', date_id, item_id, buyer_id, quantity, paid, profit FROM catalog_sales) "
)

TEMPLATES = (
    # Buyers who return more than usual in their store.
    "WITH returned AS (SELECT r.buyer_id, r.store_id, sum(r.amount) AS total FROM store_returns r JOIN dates d "
    "ON d.date_id = r.date_id WHERE d.year = 2000 GROUP BY r.buyer_id, r.store_id) SELECT b.last_name, x.total FROM returned x "
    "JOIN buyers b ON b.buyer_id = x.buyer_id WHERE x.total > (SELECT avg(y.total) * 1.2 FROM returned y "
    "WHERE y.store_id = x.store_id) ORDER BY 1, 2 LIMIT 100",
    # A week against the same week a year later.
    "WITH weekly AS (SELECT d.year, d.week, sum(CASE WHEN d.weekday = 'Sunday' THEN s.paid END) AS sun, "
    "sum(CASE WHEN d.weekday = 'Monday' THEN s.paid END) AS mon FROM web_sales s JOIN dates d ON d.date_id = s.date_id "
    "GROUP BY d.year, d.week) SELECT a.week, round(@ratio(a.sun, b.sun), 2) AS sun, round(@ratio(a.mon, b.mon), 2) AS mon "
    "FROM weekly a JOIN weekly b ON b.week = a.week AND b.year = a.year + 1 ORDER BY 1, 2, 3",
    # Brands of a month by year.
    "SELECT d.year, i.brand, sum(s.paid) AS total FROM dates d JOIN store_sales s ON s.date_id = d.date_id JOIN items i "
    "ON i.item_id = s.item_id WHERE d.month = 11 GROUP BY d.year, i.brand ORDER BY d.year, total DESC, i.brand LIMIT 100",
    # Growth of buyers in the web against the store.
    "WITH yearly AS (SELECT b.buyer_id, d.year, sum(s.listed - s.cost) AS store FROM buyers b JOIN store_sales s "
    "ON s.buyer_id = b.buyer_id JOIN dates d ON d.date_id = s.date_id GROUP BY b.buyer_id, d.year), web AS (SELECT "
    "s.buyer_id, d.year, sum(s.listed - s.cost) AS online FROM web_sales s JOIN dates d ON d.date_id = s.date_id "
    "GROUP BY s.buyer_id, d.year) SELECT y.buyer_id, y.year, y.store, w.online FROM yearly y JOIN web w "
    "ON w.buyer_id = y.buyer_id AND w.year = y.year WHERE w.online > y.store ORDER BY 1, 2",
    # Profit of all channels.
    _SOLD
    + "SELECT channel, sum(paid) AS sales, sum(profit) AS profit, @ratio(sum(profit), sum(paid)) AS margin FROM sold "
    "GROUP BY channel ORDER BY channel",
    # States in which dear articles are bought.
    "SELECT a.state, count(*) AS n FROM addresses a JOIN buyers b ON b.address_id = a.address_id JOIN store_sales s "
    "ON s.buyer_id = b.buyer_id JOIN items i ON i.item_id = s.item_id WHERE i.price > 1.2 * (SELECT avg(j.price) "
    "FROM items j WHERE j.category = i.category) GROUP BY a.state HAVING count(*) >= 2 ORDER BY n, a.state",
    # Means by article for a kind of buyer and promotion.
    "SELECT i.item_code, avg(s.quantity) AS pieces, avg(s.listed) AS listed, avg(s.coupon) AS coupon, avg(s.paid) AS paid "
    "FROM store_sales s JOIN buyers b ON b.buyer_id = s.buyer_id JOIN profiles p ON p.profile_id = b.profile_id JOIN items i "
    "ON i.item_id = s.item_id JOIN promotions m ON m.promotion_id = s.promotion_id WHERE p.sex = 'M' AND p.marital = 'S' "
    "AND (m.by_mail = 'N' OR m.by_event = 'N') GROUP BY i.item_code ORDER BY i.item_code LIMIT 100",
    # Profit of stores near buyers.
    "SELECT st.store_name, sum(s.profit) AS profit FROM store_sales s JOIN stores st ON st.store_id = s.store_id JOIN dates d "
    "ON d.date_id = s.date_id WHERE d.quarter = 2 AND st.zone IN (SELECT a.zone FROM addresses a JOIN buyers b "
    "ON b.address_id = a.address_id GROUP BY a.zone HAVING count(*) > 1) GROUP BY st.store_name ORDER BY st.store_name",
    # Bands of quantity, one subquery each.
    "SELECT CASE WHEN (SELECT count(*) FROM store_sales WHERE quantity BETWEEN 1 AND 20) > 10 THEN (SELECT avg(paid) "
    "FROM store_sales WHERE quantity BETWEEN 1 AND 20) ELSE (SELECT avg(profit) FROM store_sales WHERE quantity "
    "BETWEEN 1 AND 20) END AS band_1, CASE WHEN (SELECT count(*) FROM store_sales WHERE quantity BETWEEN 21 AND 40) > 10 "
    "THEN (SELECT avg(paid) FROM store_sales WHERE quantity BETWEEN 21 AND 40) ELSE (SELECT avg(profit) FROM store_sales "
    "WHERE quantity BETWEEN 21 AND 40) END AS band_2",
    # Who buys in the store and elsewhere too.
    "SELECT p.sex, p.marital, p.education, count(*) AS n FROM buyers b JOIN profiles p ON p.profile_id = b.profile_id "
    "WHERE EXISTS (SELECT 1 FROM store_sales s WHERE s.buyer_id = b.buyer_id) AND (EXISTS (SELECT 1 FROM web_sales w "
    "WHERE w.buyer_id = b.buyer_id) OR EXISTS (SELECT 1 FROM catalog_sales c WHERE c.buyer_id = b.buyer_id)) "
    "GROUP BY p.sex, p.marital, p.education ORDER BY 1, 2, 3",
    # Revenue of a class within its category.
    "SELECT i.item_code, i.category, i.class, sum(w.paid) AS revenue, sum(w.paid) * 100.0 / sum(sum(w.paid)) "
    "OVER (PARTITION BY i.class) AS share FROM web_sales w JOIN items i ON i.item_id = w.item_id JOIN dates d "
    "ON d.date_id = w.date_id WHERE i.category IN ('Sports', 'Books') GROUP BY i.item_code, i.category, i.class "
    "ORDER BY i.category, i.class, i.item_code, share",
    # Means under conditions joined by OR.
    "SELECT avg(s.quantity), avg(s.paid), avg(s.cost), sum(s.cost) FROM store_sales s JOIN stores t ON t.store_id = s.store_id "
    "JOIN buyers b ON b.buyer_id = s.buyer_id JOIN profiles p ON p.profile_id = b.profile_id WHERE (p.marital = 'M' "
    "AND p.education = 'College' AND s.paid BETWEEN 10 AND 150) OR (p.marital = 'S' AND p.education = 'Primary' "
    "AND s.profit BETWEEN 5 AND 100)",
    # Articles sold in all channels, above the mean.
    "WITH common AS (SELECT item_id FROM store_sales @intersect() SELECT item_id FROM web_sales @intersect() "
    "SELECT item_id FROM catalog_sales), means AS (SELECT avg(quantity * listed) AS mean FROM store_sales) "
    "SELECT i.brand, sum(s.quantity * s.listed) AS sales, count(*) AS n FROM store_sales s JOIN items i ON i.item_id = s.item_id "
    "WHERE s.item_id IN (SELECT item_id FROM common) GROUP BY i.brand HAVING sum(s.quantity * s.listed) > "
    "(SELECT mean FROM means) ORDER BY i.brand",
    # Catalogue sales by zip.
    "SELECT a.zip, sum(c.paid) AS paid FROM catalog_sales c JOIN buyers b ON b.buyer_id = c.buyer_id JOIN addresses a "
    "ON a.address_id = b.address_id JOIN dates d ON d.date_id = c.date_id WHERE substr(a.zip, 1, 3) IN ('zip', '850') "
    "OR a.state IN ('CA', 'TN') OR c.paid > 500 GROUP BY a.zip ORDER BY a.zip LIMIT 100",
    # Orders shipped from several warehouses without a return.
    "SELECT count(DISTINCT o.order_no) AS orders, sum(o.shipping) AS shipping, sum(o.profit) AS profit FROM catalog_sales o "
    "WHERE EXISTS (SELECT 1 FROM catalog_sales p WHERE p.order_no = o.order_no AND p.warehouse_id <> o.warehouse_id) "
    "AND NOT EXISTS (SELECT 1 FROM catalog_returns r WHERE r.order_no = o.order_no + 500)",
    # Spread of quantities, by article and state.
    "SELECT i.item_code, t.state, count(s.quantity) AS n, avg(s.quantity) AS mean, @spread(s.quantity * 1.0) AS spread "
    "FROM store_sales s JOIN stores t ON t.store_id = s.store_id JOIN items i ON i.item_id = s.item_id "
    "GROUP BY i.item_code, t.state ORDER BY 1, 2",
    # Stock before and after a day.
    "SELECT w.warehouse_name, i.item_code, sum(CASE WHEN d.day < @date(1995-03-11) THEN k.on_hand ELSE 0 END) AS before, "
    "sum(CASE WHEN d.day >= @date(1995-03-11) THEN k.on_hand ELSE 0 END) AS later FROM stock k JOIN warehouses w "
    "ON w.warehouse_id = k.warehouse_id JOIN items i ON i.item_id = k.item_id JOIN dates d ON d.date_id = k.date_id "
    "WHERE d.day BETWEEN @date(1994-01-01) AND @days(@date(1995-03-11), 300) GROUP BY w.warehouse_name, i.item_code "
    "ORDER BY 1, 2 LIMIT 100",
    # Articles bought again and again by the best buyers.
    "WITH frequent AS (SELECT s.item_id, d.day, count(*) AS n FROM store_sales s JOIN dates d ON d.date_id = s.date_id "
    "GROUP BY s.item_id, d.day HAVING count(*) >= 1), best AS (SELECT buyer_id, sum(quantity * listed) AS spent "
    "FROM store_sales GROUP BY buyer_id HAVING sum(quantity * listed) > 0.5 * (SELECT max(t) FROM (SELECT "
    "sum(quantity * listed) AS t FROM store_sales GROUP BY buyer_id) AS totals)) SELECT sum(w.quantity * w.listed) AS online "
    "FROM web_sales w WHERE w.item_id IN (SELECT item_id FROM frequent) AND w.buyer_id IN (SELECT buyer_id FROM best)",
    # Store, returned, bought again by catalogue.
    "SELECT i.item_code, t.store_name, sum(s.profit) AS sold, sum(r.amount) AS back, sum(c.profit) AS again "
    "FROM store_sales s JOIN store_returns r ON r.item_id = s.item_id AND r.ticket = s.ticket JOIN catalog_sales c "
    "ON c.item_id = r.item_id JOIN stores t ON t.store_id = s.store_id JOIN items i ON i.item_id = s.item_id "
    "GROUP BY i.item_code, t.store_name ORDER BY 1, 2 LIMIT 100",
    # Three bands of price, side by side.
    "SELECT a.n AS low, b.n AS middle, c.n AS high FROM (SELECT count(DISTINCT listed) AS n FROM store_sales "
    "WHERE listed BETWEEN 0 AND 50) AS a CROSS JOIN (SELECT count(DISTINCT listed) AS n FROM store_sales "
    "WHERE listed BETWEEN 50 AND 120) AS b CROSS JOIN (SELECT count(DISTINCT listed) AS n FROM store_sales "
    "WHERE listed > 120) AS c",
    # Web returns above the mean of the state.
    "WITH back AS (SELECT r.buyer_id, a.state, sum(r.amount) AS total FROM web_returns r JOIN buyers b "
    "ON b.buyer_id = r.buyer_id JOIN addresses a ON a.address_id = b.address_id GROUP BY r.buyer_id, a.state) "
    "SELECT x.buyer_id, x.state, x.total FROM back x JOIN (SELECT state, avg(total) AS mean FROM back GROUP BY state) m "
    "ON m.state = x.state WHERE x.total > m.mean * 1.2 ORDER BY x.total DESC, x.buyer_id LIMIT 100",
    # Discounts far above the usual.
    "SELECT sum(w.listed - w.paid) AS excess FROM web_sales w JOIN items i ON i.item_id = w.item_id WHERE w.listed - w.paid > "
    "(SELECT 1.3 * avg(x.listed - x.paid) FROM web_sales x WHERE x.item_id = w.item_id)",
    # Manufacturers in three channels.
    "SELECT maker, sum(total) AS total FROM (SELECT i.maker, sum(s.paid) AS total FROM store_sales s JOIN items i "
    "ON i.item_id = s.item_id GROUP BY i.maker UNION ALL SELECT i.maker, sum(s.paid) FROM web_sales s JOIN items i "
    "ON i.item_id = s.item_id GROUP BY i.maker UNION ALL SELECT i.maker, sum(s.paid) FROM catalog_sales s JOIN items i "
    "ON i.item_id = s.item_id GROUP BY i.maker) AS parts GROUP BY maker ORDER BY total DESC, maker",
    # Households with large tickets.
    "SELECT b.last_name, b.first_name, g.ticket, g.n FROM (SELECT s.ticket, s.buyer_id, count(*) AS n FROM store_sales s "
    "JOIN stores t ON t.store_id = s.store_id GROUP BY s.ticket, s.buyer_id) AS g JOIN buyers b ON b.buyer_id = g.buyer_id "
    "JOIN households h ON h.household_id = b.household_id WHERE h.vehicles > 0 AND @ratio(h.dependents, h.vehicles) > 0.2 "
    "ORDER BY b.last_name, b.first_name, g.ticket",
    # Buyers only of the store.
    "SELECT count(*) AS n FROM (SELECT buyer_id FROM store_sales @except() SELECT buyer_id FROM web_sales @except() "
    "SELECT buyer_id FROM catalog_sales) AS loyal",
    # Months far from their mean.
    "WITH monthly AS (SELECT i.brand, d.year, d.month, sum(s.paid) AS paid, avg(sum(s.paid)) OVER (PARTITION BY i.brand, "
    "d.year) AS mean FROM items i JOIN store_sales s ON s.item_id = i.item_id JOIN dates d ON d.date_id = s.date_id "
    "GROUP BY i.brand, d.year, d.month) SELECT brand, year, month, paid, mean FROM monthly WHERE mean > 0 "
    "AND abs(paid - mean) / mean > 0.1 ORDER BY paid - mean, brand, year, month LIMIT 100",
    # A month beside its neighbours.
    "WITH monthly AS (SELECT i.category, d.year, d.month, sum(s.paid) AS paid, rank() OVER (PARTITION BY i.category "
    "ORDER BY d.year, d.month) AS place FROM items i JOIN store_sales s ON s.item_id = i.item_id JOIN dates d "
    "ON d.date_id = s.date_id GROUP BY i.category, d.year, d.month) SELECT m.category, m.year, m.month, m.paid, "
    "p.paid AS before, n.paid AS later FROM monthly m JOIN monthly p ON p.category = m.category AND p.place = m.place - 1 "
    "JOIN monthly n ON n.category = m.category AND n.place = m.place + 1 ORDER BY 1, 2, 3",
    # The best and the worst articles side by side.
    "WITH means AS (SELECT item_id, avg(profit) AS mean FROM store_sales GROUP BY item_id), up AS (SELECT item_id, "
    "row_number() OVER (ORDER BY mean, item_id) AS place FROM means), down AS (SELECT item_id, row_number() OVER (ORDER BY "
    "mean DESC, item_id) AS place FROM means) SELECT u.place, u.item_id AS worst, d.item_id AS best FROM up u JOIN down d "
    "ON d.place = u.place WHERE u.place <= 10 ORDER BY u.place",
    # Running totals of two channels.
    "WITH web AS (SELECT item_id, date_id, sum(sum(paid)) OVER (PARTITION BY item_id ORDER BY date_id ROWS BETWEEN "
    "UNBOUNDED PRECEDING AND CURRENT ROW) AS total FROM web_sales GROUP BY item_id, date_id), store AS (SELECT item_id, "
    "date_id, sum(sum(paid)) OVER (PARTITION BY item_id ORDER BY date_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) "
    "AS total FROM store_sales GROUP BY item_id, date_id) SELECT coalesce(w.item_id, s.item_id) AS item_id, w.total AS web, "
    "s.total AS store FROM web w FULL OUTER JOIN store s ON s.item_id = w.item_id AND s.date_id = w.date_id ORDER BY 1, 2, 3",
    # Delay of shipping in bands.
    "SELECT w.warehouse_name, sum(CASE WHEN s.shipped_id - s.date_id <= 30 THEN 1 ELSE 0 END) AS within_30, "
    "sum(CASE WHEN s.shipped_id - s.date_id > 30 AND s.shipped_id - s.date_id <= 60 THEN 1 ELSE 0 END) AS within_60, "
    "sum(CASE WHEN s.shipped_id - s.date_id > 60 THEN 1 ELSE 0 END) AS later FROM web_sales s JOIN warehouses w "
    "ON w.warehouse_id = s.warehouse_id GROUP BY w.warehouse_name ORDER BY w.warehouse_name",
    # Sales in the morning against the evening.
    "SELECT @ratio(m.n, e.n) AS morning_to_evening FROM (SELECT count(*) AS n FROM store_sales WHERE hour BETWEEN 8 AND 11) m "
    "CROSS JOIN (SELECT count(*) AS n FROM store_sales WHERE hour BETWEEN 18 AND 21) e",
    # Days between two purchases.
    "WITH visits AS (SELECT s.buyer_id, d.day, lag(d.day) OVER (PARTITION BY s.buyer_id ORDER BY d.day) AS before "
    "FROM store_sales s JOIN dates d ON d.date_id = s.date_id) SELECT buyer_id, max(@between(day, before)) AS longest "
    "FROM visits WHERE before IS NOT NULL GROUP BY buyer_id ORDER BY buyer_id",
    # First purchase and what follows, by month.
    "WITH first AS (SELECT s.buyer_id, min(d.day) AS day FROM store_sales s JOIN dates d ON d.date_id = s.date_id "
    "GROUP BY s.buyer_id) SELECT @year(f.day) AS y, @month(f.day) AS m, count(*) AS started FROM first f GROUP BY 1, 2 "
    "ORDER BY 1, 2",
    # Names put together.
    "SELECT @join(b.last_name, ', ', b.first_name) AS name, @text(b.born) AS born FROM buyers b WHERE b.born > 1950 "
    "ORDER BY b.buyer_id LIMIT 50",
)

_MEASURES = {
    "pieces": "sum(s.quantity)",
    "revenue": "sum(s.paid)",
    "profit": "sum(s.profit)",
    "mean price": "avg(s.listed)",
}
_BY = {"category": "i.category", "brand": "i.brand", "color": "i.color"}


def grid() -> list[str]:
    """Every measure of every channel by every property of an article, ranked within a year."""
    return [
        f"SELECT {by} AS {name}, d.year, {measure} AS measure, rank() OVER (PARTITION BY d.year ORDER BY {measure} DESC) AS place "
        f"FROM {channel} s JOIN items i ON i.item_id = s.item_id JOIN dates d ON d.date_id = s.date_id "
        f"GROUP BY {by}, d.year ORDER BY d.year, place, {by}"
        for channel, measure, (name, by) in product(CHANNELS, _MEASURES.values(), _BY.items())
    ]
