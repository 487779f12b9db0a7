"""What was planted in the sample of pack gaming."""

from __future__ import annotations

from tests.warehouses.facts import Fact

FACTS = (
    Fact(
        id="first_day_retention_on_android",
        areas=("churn",),
        purpose="Classic D1 retention by install cohort before and from 2.4.0, by platform, without test accounts",
        sql="""
SELECT avg(came_back) FILTER (platform = 'android' AND NOT late) AS rate_android_before, count(*) FILTER (platform = 'android' AND NOT late) AS n_android_before,
       avg(came_back) FILTER (platform = 'android' AND late) AS rate_android_after, count(*) FILTER (platform = 'android' AND late) AS n_android_after,
       avg(came_back) FILTER (platform = 'ios' AND NOT late) AS rate_ios_before, avg(came_back) FILTER (platform = 'ios' AND late) AS rate_ios_after
FROM (SELECT p.platform, p.installed_on >= DATE '2025-04-21' AS late, CASE WHEN s.player_id IS NULL THEN 0 ELSE 1 END AS came_back
      FROM players AS p LEFT JOIN (SELECT DISTINCT player_id, CAST(started_at AS DATE) AS day FROM sessions) AS s
        ON s.player_id = p.player_id AND s.day = p.installed_on + INTERVAL 1 DAY
      WHERE NOT p.is_test_account AND p.installed_on < DATE '2025-05-31') AS cohorts
""",
        sentence="D1 retention of Android installs fell from {rate_android_before} of {n_android_before} players to {rate_android_after} of {n_android_after} with release 2.4.0 on 2025-04-21, while iOS stayed between {rate_ios_before} and {rate_ios_after}.",
        trap="installs of the last day have no day 1 yet; leaving them in lowers the later rate.",
    ),
    Fact(
        id="wall_at_level_24",
        areas=("levels", "progression"),
        purpose="Win rate per attempt on level 24 against the five easy levels on either side",
        sql="""
SELECT sum(CASE WHEN level = 24 AND outcome = 'win' THEN 1 ELSE 0 END) * 1.0 / sum(CASE WHEN level = 24 THEN 1 ELSE 0 END) AS rate_wall,
       sum(CASE WHEN level = 24 THEN 1 ELSE 0 END) AS n_wall,
       sum(CASE WHEN level <> 24 AND outcome = 'win' THEN 1 ELSE 0 END) * 1.0 / sum(CASE WHEN level <> 24 THEN 1 ELSE 0 END) AS rate_neighbours,
       sum(CASE WHEN level <> 24 THEN 1 ELSE 0 END) AS n_neighbours, avg(CASE WHEN level = 24 THEN moves_left END) AS mean_moves_24
FROM level_attempts WHERE level IN (21, 22, 23, 24, 25, 26, 27, 28, 29)
""",
        sentence="Level 24 is won in {rate_wall} of {n_wall} attempts; its neighbours 21 to 29 in {rate_neighbours} of {n_neighbours}, and it is not flagged as hard.",
        trap="every tenth level is meant to be hard and is won about as rarely as a wall: compare with flags in hand.",
        scout=r"Mean moves left by level in level attempts: .* 24 lowest",
        scout_shows=("mean_moves_24",),
    ),
    Fact(
        id="players_lost_at_the_wall",
        areas=("levels", "churn", "progression"),
        purpose="Players whose last session ended on level 24 and who had 14 days since, by last level",
        sql="""
SELECT count(*) FILTER (last_level = 24) AS n_lost_there, count(*) FILTER (last_level = 23) AS n_lost_before, count(*) FILTER (last_level = 25) AS n_lost_after, count(*) AS n_lapsed
FROM (SELECT player_id, arg_max(last_level, started_at) AS last_level, max(started_at) AS last_seen FROM sessions GROUP BY player_id) AS last
WHERE last_seen < TIMESTAMP '2025-05-18'
""",
        sentence="{n_lost_there} of {n_lapsed} lapsed players had their last session on level 24, against {n_lost_before} on level 23 and {n_lost_after} on level 25.",
        trap="who played in the last 14 days has not stopped.",
    ),
    Fact(
        id="session_length_lost_by_an_app_version",
        areas=("engagement", "session_flow"),
        purpose="Missing session duration by app version and platform",
        sql="""
SELECT avg(CASE WHEN duration_s IS NULL THEN 1.0 ELSE 0 END) AS share_missing_there,
       count(*) FILTER (duration_s IS NULL) AS n_missing, count(*) AS n_sessions,
       (SELECT count(*) FROM sessions WHERE duration_s IS NULL AND NOT (app_version = '2.5.0' AND platform = 'android')) AS n_missing_elsewhere
FROM sessions WHERE app_version = '2.5.0' AND platform = 'android'
""",
        sentence="Version 2.5.0 lost the length of {n_missing} of {n_sessions} Android sessions ({share_missing_there}); nowhere else is one missing ({n_missing_elsewhere}).",
        trap="means of playtime from 2025-05-12 on rest on what is left.",
        scout=r"rows in sessions have no duration s",
        scout_shows=("n_missing",),
    ),
    Fact(
        id="sessions_written_twice",
        areas=("engagement", "session_flow"),
        purpose="Session ids that occur more than once",
        sql="SELECT count(*) AS n_rows, count(*) - count(DISTINCT session_id) AS n_repeated FROM sessions",
        sentence="{n_repeated} of {n_rows} rows of sessions repeat a session that is there already.",
        scout=r"values of session id stand in more than one row of sessions",
        scout_shows=("n_repeated",),
    ),
    Fact(
        id="test_accounts_in_revenue",
        areas=("monetization",),
        purpose="Share of gross purchase revenue that test accounts hold, and ARPPU with and without",
        sql="""
SELECT sum(CASE WHEN p.is_test_account THEN b.amount_usd ELSE 0 END) * 1.0 / sum(b.amount_usd) AS share_test_revenue,
       count(DISTINCT CASE WHEN p.is_test_account THEN b.player_id END) AS n_testers,
       sum(b.amount_usd) * 1.0 / count(DISTINCT b.player_id) AS arppu_with, sum(CASE WHEN NOT p.is_test_account THEN b.amount_usd END) * 1.0 / count(DISTINCT CASE WHEN NOT p.is_test_account THEN b.player_id END) AS arppu_without
FROM purchases AS b JOIN players AS p ON p.player_id = b.player_id
""",
        sentence="{n_testers} test accounts hold {share_test_revenue} of gross revenue; revenue per payer is {arppu_without} USD without them and {arppu_with} with them.",
        units={"arppu_with": "plain", "arppu_without": "plain"},
    ),
    Fact(
        id="refunds_of_the_mega_bundle",
        areas=("monetization",),
        purpose="Refund share of purchases by product",
        sql="""
SELECT avg(CASE WHEN is_refunded THEN 1.0 ELSE 0 END) FILTER (product = 'mega_bundle') AS rate_bundle, count(*) FILTER (product = 'mega_bundle') AS n_bundle,
       avg(CASE WHEN is_refunded THEN 1.0 ELSE 0 END) FILTER (product <> 'mega_bundle') AS rate_others, count(*) FILTER (product <> 'mega_bundle') AS n_others
FROM purchases
""",
        sentence="{rate_bundle} of {n_bundle} mega bundles were refunded, against {rate_others} of {n_others} other purchases.",
        scout=r"is refunded = true in .* with product mega_bundle",
        scout_shows=("rate_bundle",),
    ),
    Fact(
        id="amounts_in_six_currencies",
        areas=("monetization", "economy"),
        purpose="Mean purchase amount by currency, and the mean over all in local units against dollars",
        sql="""
SELECT count(DISTINCT currency) AS n_currencies, avg(amount) AS mean_local, avg(amount_usd) AS mean_usd,
       avg(CASE WHEN currency = 'JPY' THEN amount END) AS mean_yen, avg(CASE WHEN currency = 'JPY' THEN 1.0 ELSE 0 END) AS share_yen
FROM purchases
""",
        sentence="Amounts are in {n_currencies} currencies: their mean of {mean_local} means nothing, in dollars it is {mean_usd}; yen are {share_yen} of purchases with a mean of {mean_yen}.",
        units={"mean_local": "plain", "mean_usd": "plain", "mean_yen": "plain"},
    ),
    Fact(
        id="purchases_of_accounts_that_are_gone",
        areas=("monetization",),
        purpose="Purchases without a match in players",
        sql="""
SELECT count(*) AS n_purchases, count(*) - count(p.player_id) AS n_orphans, count(DISTINCT CASE WHEN p.player_id IS NULL THEN b.player_id END) AS n_gone
FROM purchases AS b LEFT JOIN players AS p ON p.player_id = b.player_id
""",
        sentence="{n_orphans} of {n_purchases} purchases belong to {n_gone} players that are not in players.",
    ),
    Fact(
        id="boosters_and_selection",
        areas=("boosters",),
        purpose="Win rate with and without boosters: over all levels, and on level 24",
        sql="""
SELECT avg(CASE WHEN outcome = 'win' THEN 1.0 ELSE 0 END) FILTER (boosters_used > 0) AS rate_with, avg(CASE WHEN outcome = 'win' THEN 1.0 ELSE 0 END) FILTER (boosters_used = 0) AS rate_without,
       avg(CASE WHEN outcome = 'win' THEN 1.0 ELSE 0 END) FILTER (boosters_used > 0 AND level = 24) AS rate_with_24, avg(CASE WHEN outcome = 'win' THEN 1.0 ELSE 0 END) FILTER (boosters_used = 0 AND level = 24) AS rate_without_24,
       count(*) FILTER (boosters_used > 0 AND level = 24) AS n_with_24
FROM level_attempts
""",
        sentence="Over all levels attempts with a booster are won less often ({rate_with}) than those without ({rate_without}); on level 24 alone they are won more often ({rate_with_24} of {n_with_24} attempts against {rate_without_24}).",
        trap="boosters are used where it is hard; compared over all levels they seem to harm.",
    ),
    Fact(
        id="rewarded_ads_pay_most",
        areas=("ad_performance",),
        purpose="Ad revenue, impressions and eCPM by placement",
        sql="""
SELECT sum(CASE WHEN placement = 'rewarded' THEN 1.0 ELSE 0 END) / count(*) AS share_of_impressions, sum(CASE WHEN placement = 'rewarded' THEN revenue_usd ELSE 0 END) / sum(revenue_usd) AS share_of_revenue,
       avg(CASE WHEN placement = 'rewarded' THEN revenue_usd END) * 1000 AS ecpm_rewarded, avg(CASE WHEN placement = 'interstitial' THEN revenue_usd END) * 1000 AS ecpm_interstitial,
       avg(CASE WHEN placement = 'rewarded' THEN revenue_usd END) AS mean_rewarded
FROM ad_impressions
""",
        sentence="Rewarded ads are {share_of_impressions} of impressions and {share_of_revenue} of ad revenue: {ecpm_rewarded} USD per thousand against {ecpm_interstitial} for interstitials.",
        units={"ecpm_rewarded": "plain", "ecpm_interstitial": "plain"},
        scout=r"Mean revenue usd by placement in ad impressions: rewarded is highest",
        scout_shows=("mean_rewarded",),
    ),
    Fact(
        id="impressions_reported_twice",
        areas=("ad_performance",),
        purpose="Ad impressions that are there twice, by network",
        sql="""
SELECT sum(n - 1) AS n_repeated, sum(CASE WHEN network = 'gamma' THEN n - 1 ELSE 0 END) AS n_repeated_gamma, sum(n) AS n_rows
FROM (SELECT network, count(*) AS n FROM ad_impressions GROUP BY player_id, shown_at, placement, network, revenue_usd, was_completed) AS rows
""",
        sentence="{n_repeated} of {n_rows} ad impressions are there twice, {n_repeated_gamma} of them from network gamma.",
    ),
)
