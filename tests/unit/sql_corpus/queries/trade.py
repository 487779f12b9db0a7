"""Questions of a trading company, of the shapes that TPC-H made known, in our own words and on our own tables."""

from __future__ import annotations

TEMPLATES = (
    # Price summary of what was shipped until a day.
    "SELECT returned, state, sum(quantity) AS pieces, sum(price) AS gross, sum(price * (1 - discount)) AS net, "
    "sum(price * (1 - discount) * (1 + tax)) AS charged, avg(quantity) AS mean_pieces, avg(price) AS mean_price, "
    "avg(discount) AS mean_discount, count(*) AS n FROM order_lines WHERE shipped <= @date(1998-09-02) "
    "GROUP BY returned, state ORDER BY returned, state",
    # The cheapest supplier of a part in a region.
    "SELECT s.balance, s.supplier_name, n.nation_name, p.part_id, p.maker, ps.cost FROM parts p "
    "JOIN part_suppliers ps ON ps.part_id = p.part_id JOIN suppliers s ON s.supplier_id = ps.supplier_id "
    "JOIN nations n ON n.nation_id = s.nation_id JOIN regions r ON r.region_id = n.region_id "
    "WHERE p.size > 3 AND p.kind LIKE '%BRASS' AND ps.cost = (SELECT min(x.cost) FROM part_suppliers x "
    "WHERE x.part_id = p.part_id) ORDER BY s.balance DESC, n.nation_name, s.supplier_name, p.part_id LIMIT 100",
    # Open orders of the greatest value.
    "SELECT l.order_id, sum(l.price * (1 - l.discount)) AS open_value, o.ordered, o.urgency FROM customers c, orders o, "
    "order_lines l WHERE c.segment = 'BUILDING' AND c.customer_id = o.customer_id AND l.order_id = o.order_id "
    "AND o.ordered < @date(1995-03-15) AND l.shipped > @date(1994-03-15) GROUP BY l.order_id, o.ordered, o.urgency "
    "ORDER BY open_value DESC, o.ordered, l.order_id LIMIT 10",
    # Orders with a late line, by urgency.
    "SELECT urgency, count(*) AS n FROM orders o WHERE ordered >= @date(1994-01-01) "
    "AND ordered < @months(@date(1994-01-01), 24) AND EXISTS (SELECT 1 FROM order_lines l WHERE l.order_id = o.order_id "
    "AND l.promised < l.received) GROUP BY urgency ORDER BY urgency",
    # Revenue where buyer and seller share a nation.
    "SELECT n.nation_name, sum(l.price * (1 - l.discount)) AS revenue FROM customers c JOIN orders o "
    "ON o.customer_id = c.customer_id JOIN order_lines l ON l.order_id = o.order_id JOIN suppliers s "
    "ON s.supplier_id = l.supplier_id AND s.nation_id = c.nation_id JOIN nations n ON n.nation_id = s.nation_id "
    "JOIN regions r ON r.region_id = n.region_id WHERE r.region_name IN ('ASIA', 'AFRICA', 'EUROPE') "
    "GROUP BY n.nation_name ORDER BY revenue DESC, 1",
    # What a change of discounts would have brought.
    "SELECT sum(price * discount) AS lost FROM order_lines WHERE shipped >= @date(1994-01-01) "
    "AND shipped < @months(@date(1994-01-01), 12) AND discount BETWEEN 0.05 AND 100.07 AND quantity < 24",
    # Volume between two nations by year.
    "SELECT supp_nation, cust_nation, shipped_year, sum(volume) AS revenue FROM (SELECT n1.nation_name AS supp_nation, "
    "n2.nation_name AS cust_nation, @year(l.shipped) AS shipped_year, l.price * (1 - l.discount) AS volume "
    "FROM suppliers s, order_lines l, orders o, customers c, nations n1, nations n2 WHERE s.supplier_id = l.supplier_id "
    "AND o.order_id = l.order_id AND c.customer_id = o.customer_id AND s.nation_id = n1.nation_id "
    "AND c.nation_id = n2.nation_id AND n1.nation_id < n2.nation_id) AS trips "
    "GROUP BY supp_nation, cust_nation, shipped_year ORDER BY 1, 2, 3",
    # Share of a nation in a market by year.
    "SELECT y, @ratio(sum(CASE WHEN nation = 'nation_name 3' THEN volume ELSE 0 END), sum(volume)) AS market_share "
    "FROM (SELECT @year(o.ordered) AS y, l.price * (1 - l.discount) AS volume, n.nation_name AS nation FROM parts p "
    "JOIN order_lines l ON l.part_id = p.part_id JOIN orders o ON o.order_id = l.order_id JOIN suppliers s "
    "ON s.supplier_id = l.supplier_id JOIN nations n ON n.nation_id = s.nation_id "
    "WHERE o.ordered BETWEEN @date(1994-01-01) AND @date(1996-12-31)) AS all_nations GROUP BY y ORDER BY y",
    # Profit by nation and year of a line of products.
    "SELECT nation, y, sum(amount) AS profit FROM (SELECT n.nation_name AS nation, @year(o.ordered) AS y, "
    "l.price * (1 - l.discount) - ps.cost * l.quantity AS amount FROM parts p JOIN order_lines l ON l.part_id = p.part_id "
    "JOIN part_suppliers ps ON ps.part_id = l.part_id AND ps.supplier_id = l.supplier_id JOIN orders o "
    "ON o.order_id = l.order_id JOIN suppliers s ON s.supplier_id = l.supplier_id JOIN nations n "
    "ON n.nation_id = s.nation_id WHERE p.part_name LIKE '%1%') AS margins GROUP BY nation, y ORDER BY nation, y DESC",
    # Customers who sent most back.
    "SELECT c.customer_id, c.customer_name, sum(l.price * (1 - l.discount)) AS lost, c.balance, n.nation_name, c.phone "
    "FROM customers c JOIN orders o ON o.customer_id = c.customer_id JOIN order_lines l ON l.order_id = o.order_id "
    "JOIN nations n ON n.nation_id = c.nation_id WHERE l.returned = 'R' AND o.ordered >= @date(1993-10-01) "
    "GROUP BY c.customer_id, c.customer_name, c.balance, c.phone, n.nation_name ORDER BY lost DESC, 1 LIMIT 20",
    # Stock worth more than a share of all stock.
    "SELECT part_id, sum(cost * available) AS worth FROM part_suppliers GROUP BY part_id "
    "HAVING sum(cost * available) > (SELECT sum(cost * available) * 0.001 FROM part_suppliers) ORDER BY worth DESC, part_id",
    # Late lines by mode of shipping and urgency.
    "SELECT l.mode, sum(CASE WHEN o.urgency IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high, "
    "sum(CASE WHEN o.urgency <> '1-URGENT' AND o.urgency <> '2-HIGH' THEN 1 ELSE 0 END) AS low FROM orders o "
    "JOIN order_lines l ON l.order_id = o.order_id WHERE l.mode IN ('MAIL', 'SHIP') AND l.promised < l.received "
    "AND l.shipped < l.promised GROUP BY l.mode ORDER BY l.mode",
    # How many customers have how many orders.
    "SELECT order_count, count(*) AS customers FROM (SELECT c.customer_id, count(o.order_id) AS order_count FROM customers c "
    "LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.note NOT LIKE '%special%requests%' GROUP BY c.customer_id) "
    "AS counted GROUP BY order_count ORDER BY customers DESC, order_count DESC",
    # Share of promoted parts in a month.
    "SELECT 100.0 * sum(CASE WHEN p.kind LIKE 'PROMO%' THEN l.price * (1 - l.discount) ELSE 0 END) "
    "/ sum(l.price * (1 - l.discount)) AS promo_share FROM order_lines l, parts p WHERE l.part_id = p.part_id "
    "AND l.shipped >= @date(1995-01-01) AND l.shipped < @months(@date(1995-01-01), 6)",
    # The best supplier of a quarter.
    "WITH revenue AS (SELECT supplier_id, sum(price * (1 - discount)) AS total FROM order_lines "
    "WHERE shipped >= @date(1994-01-01) AND shipped < @months(@date(1994-01-01), 15) GROUP BY supplier_id) "
    "SELECT s.supplier_id, s.supplier_name, r.total FROM suppliers s JOIN revenue r ON r.supplier_id = s.supplier_id "
    "WHERE r.total = (SELECT max(total) FROM revenue) ORDER BY 1",
    # Suppliers per kind of part, without those complained about.
    "SELECT p.brand, p.kind, p.size, count(DISTINCT ps.supplier_id) AS supplier_cnt FROM part_suppliers ps, parts p "
    "WHERE p.part_id = ps.part_id AND p.brand <> 'Brand#45' AND p.kind NOT LIKE 'MEDIUM POLISHED%' "
    "AND p.size IN (1, 3, 9, 14, 19, 23, 36, 45, 49) AND ps.supplier_id NOT IN (SELECT supplier_id FROM suppliers "
    "WHERE note LIKE '%Complaints%') GROUP BY p.brand, p.kind, p.size ORDER BY supplier_cnt DESC, 1, 2, 3",
    # What small orders cost in a year.
    "SELECT sum(l.price) / 7.0 AS yearly FROM order_lines l JOIN parts p ON p.part_id = l.part_id "
    "WHERE p.brand = 'Brand#23' AND p.container = 'MED BAG' AND l.quantity < (SELECT 0.9 * avg(x.quantity) "
    "FROM order_lines x WHERE x.part_id = p.part_id)",
    # Large orders.
    "SELECT c.customer_name, c.customer_id, o.order_id, o.ordered, o.total, sum(l.quantity) AS pieces FROM customers c "
    "JOIN orders o ON o.customer_id = c.customer_id JOIN order_lines l ON l.order_id = o.order_id WHERE o.order_id IN "
    "(SELECT order_id FROM order_lines GROUP BY order_id HAVING sum(quantity) > 200) "
    "GROUP BY c.customer_name, c.customer_id, o.order_id, o.ordered, o.total ORDER BY o.total DESC, o.ordered, 3 LIMIT 100",
    # Three kinds of offers in one condition.
    "SELECT sum(l.price * (1 - l.discount)) AS revenue FROM order_lines l JOIN parts p ON p.part_id = l.part_id "
    "WHERE (p.brand = 'Brand#12' AND p.container IN ('SM CASE', 'SM BOX') AND l.quantity BETWEEN 1 AND 11 "
    "AND p.size BETWEEN 1 AND 5) OR (p.brand = 'Brand#23' AND p.container IN ('MED BAG', 'MED BOX') "
    "AND l.quantity BETWEEN 10 AND 90 AND p.size BETWEEN 1 AND 10) OR (p.brand = 'Brand#34' "
    "AND p.container IN ('LG CASE', 'LG CAN') AND l.quantity >= 20 AND l.mode IN ('AIR', 'AIR REG'))",
    # Suppliers with too much of a part.
    "SELECT supplier_name, phone FROM suppliers WHERE supplier_id IN (SELECT ps.supplier_id FROM part_suppliers ps "
    "WHERE ps.part_id IN (SELECT part_id FROM parts WHERE part_name LIKE 'part_name%') AND ps.available > "
    "(SELECT 0.5 * sum(l.quantity) FROM order_lines l WHERE l.part_id = ps.part_id AND l.supplier_id = ps.supplier_id "
    "AND l.shipped >= @date(1994-01-01))) ORDER BY supplier_name, phone",
    # Suppliers who alone kept an order waiting.
    "SELECT s.supplier_name, count(*) AS waits FROM suppliers s JOIN order_lines l1 ON l1.supplier_id = s.supplier_id "
    "JOIN orders o ON o.order_id = l1.order_id WHERE o.state = 'F' AND l1.received > l1.promised AND EXISTS "
    "(SELECT 1 FROM order_lines l2 WHERE l2.order_id = l1.order_id AND l2.supplier_id <> l1.supplier_id) AND NOT EXISTS "
    "(SELECT 1 FROM order_lines l3 WHERE l3.order_id = l1.order_id AND l3.supplier_id <> l1.supplier_id "
    "AND l3.received > l3.promised AND l3.line < 0) GROUP BY s.supplier_name ORDER BY waits DESC, s.supplier_name LIMIT 100",
    # Customers with money and without orders, by the code of their phone.
    "SELECT code, count(*) AS n, sum(balance) AS money FROM (SELECT substr(phone, 7, 1) AS code, balance FROM customers c "
    "WHERE substr(phone, 7, 1) IN ('1', '3', '2', '5', '8') AND balance > (SELECT avg(balance) FROM customers "
    "WHERE balance > 0) AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id + 1000)) AS idle "
    "GROUP BY code ORDER BY code",
)
