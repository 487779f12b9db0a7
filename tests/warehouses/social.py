"""What was planted in the sample of pack social."""

from __future__ import annotations

from tests.warehouses.facts import Fact

FACTS = (
    Fact(
        id="farm_of_automated_accounts",
        areas=("growth",),
        purpose="Automated accounts among sign-ups, and the day and source of most of them",
        sql="""
SELECT count(*) AS n_users, sum(CASE WHEN is_automated THEN 1 ELSE 0 END) AS n_automated,
       (SELECT count(*) FROM users WHERE CAST(signed_up_at AS DATE) = DATE '2025-02-15') AS n_signups_that_day,
       (SELECT count(*) FROM users WHERE CAST(signed_up_at AS DATE) = DATE '2025-02-15' AND NOT is_automated) AS n_people_that_day
FROM users
""",
        sentence="{n_automated} of {n_users} accounts are automated; all came on 2025-02-15, when {n_signups_that_day} signed up, {n_people_that_day} of them people.",
        scout=r"is automated = true in .* with platform web",
        scout_shows=(),
    ),
    Fact(
        id="follows_by_machines",
        areas=("growth", "content_creation"),
        purpose="Share of follows that automated accounts made, and accounts of authors that received them",
        sql="""
SELECT sum(CASE WHEN u.is_automated THEN 1.0 ELSE 0 END) / count(*) AS share_automated, count(*) AS n_follows,
       count(DISTINCT CASE WHEN u.is_automated THEN f.followee_id END) AS n_targets
FROM follows AS f JOIN users AS u ON u.user_id = f.follower_id
""",
        sentence="{share_automated} of {n_follows} follows were made by automated accounts, all of them of the same {n_targets} authors.",
        trap="the number of followers says nothing before these are left out.",
    ),
    Fact(
        id="source_lost_on_the_web",
        areas=("growth",),
        purpose="Missing referral source of sign-ups by platform",
        sql="""
SELECT avg(CASE WHEN referral_source IS NULL THEN 1.0 ELSE 0 END) FILTER (platform = 'web') AS share_web, count(*) FILTER (platform = 'web') AS n_web,
       count(*) FILTER (platform <> 'web' AND referral_source IS NULL) AS n_elsewhere, count(*) - count(referral_source) AS n_missing
FROM users
""",
        sentence="The source of {share_web} of {n_web} web sign-ups is missing, of no other ({n_elsewhere}).",
        scout=r"rows in users have no referral source",
        scout_shows=("n_missing",),
    ),
    Fact(
        id="invited_people_come_back",
        areas=("retention", "growth"),
        purpose="Week-1 retention by referral source, sign-up cohorts old enough, people only",
        sql="""
SELECT avg(came_back) FILTER (source = 'invite') AS rate_invited, count(*) FILTER (source = 'invite') AS n_invited,
       avg(came_back) FILTER (source <> 'invite') AS rate_others, count(*) FILTER (source <> 'invite') AS n_others
FROM (SELECT u.user_id, min(u.referral_source) AS source, max(CASE WHEN s.user_id IS NULL THEN 0 ELSE 1 END) AS came_back
      FROM users AS u LEFT JOIN (SELECT DISTINCT user_id, CAST(started_at AS DATE) AS day FROM sessions) AS s
        ON s.user_id = u.user_id AND s.day >= CAST(u.signed_up_at AS DATE) + INTERVAL 7 DAY AND s.day < CAST(u.signed_up_at AS DATE) + INTERVAL 14 DAY
      WHERE NOT u.is_automated AND u.referral_source IS NOT NULL AND u.signed_up_at < TIMESTAMP '2025-04-14' GROUP BY u.user_id) AS cohort
""",
        sentence="{rate_invited} of {n_invited} invited people came back in week 1, against {rate_others} of {n_others} others.",
        trap="invited people had a friend there; this is a lead and no proof that invitations keep people.",
    ),
    Fact(
        id="longer_sessions_in_the_feed",
        areas=("engagement",),
        purpose="Session minutes by surface before and from 2025-03-17",
        sql="""
SELECT median(minutes) FILTER (surface = 'feed' AND NOT late) AS feed_before, median(minutes) FILTER (surface = 'feed' AND late) AS feed_after,
       median(minutes) FILTER (surface <> 'feed' AND NOT late) AS others_before, median(minutes) FILTER (surface <> 'feed' AND late) AS others_after, count(*) FILTER (surface = 'feed' AND late) AS n_feed_after
FROM (SELECT *, started_at >= TIMESTAMP '2025-03-17' AS late FROM sessions) AS parts
""",
        sentence="The median session in the feed went from {feed_before} to {feed_after} minutes on 2025-03-17 ({n_feed_after} sessions since); elsewhere it stayed, {others_before} and {others_after}.",
        units=dict.fromkeys(("feed_before", "feed_after", "others_before", "others_after"), "plain"),
        trap="one surface from one day on is a release (videos began to play by themselves), not a change of people.",
        scout=r"Mean minutes in sessions per week moves between .*2025-03-24",
        scout_shows=(),
    ),
    Fact(
        id="reactions_per_view_by_kind",
        areas=("engagement", "content_creation"),
        purpose="Reactions per view by kind of post",
        sql="""
SELECT sum(CASE WHEN p.kind = 'video' THEN r.n ELSE 0 END) * 1.0 / sum(CASE WHEN p.kind = 'video' THEN p.views ELSE 0 END) AS rate_video,
       sum(CASE WHEN p.kind = 'photo' THEN r.n ELSE 0 END) * 1.0 / sum(CASE WHEN p.kind = 'photo' THEN p.views ELSE 0 END) AS rate_photo, sum(CASE WHEN p.kind = 'video' THEN 1 ELSE 0 END) AS n_videos
FROM posts AS p JOIN (SELECT q.post_id, count(x.user_id) AS n FROM posts AS q LEFT JOIN reactions AS x ON x.post_id = q.post_id GROUP BY q.post_id) AS r ON r.post_id = p.post_id
""",
        sentence="{n_videos} videos get {rate_video} reactions per view, photos {rate_photo}.",
        trap="per post the difference is larger still, because videos are also shown more.",
    ),
    Fact(
        id="reactions_to_removed_posts",
        areas=("engagement",),
        purpose="Reactions without a match in posts",
        sql="""
SELECT count(*) AS n_reactions, count(*) - count(p.post_id) AS n_orphans, count(DISTINCT CASE WHEN p.post_id IS NULL THEN r.post_id END) AS n_removed
FROM reactions AS r LEFT JOIN posts AS p ON p.post_id = r.post_id
""",
        sentence="{n_orphans} of {n_reactions} reactions belong to {n_removed} posts that are not there any more.",
        trap="a join loses them silently; totals keep them.",
        scout=r"reactions have a post without a record in posts",
        scout_shows=("n_orphans",),
    ),
    Fact(
        id="reactions_written_twice",
        areas=("engagement",),
        purpose="Reaction rows that repeat another",
        sql="""
SELECT count(*) AS n_groups, sum(n) AS n_rows, sum(n - 1) AS n_repeated
FROM (SELECT count(*) AS n FROM reactions GROUP BY post_id, user_id, reacted_at, reaction, surface) AS rows
""",
        sentence="{n_repeated} of {n_rows} rows of reactions repeat another in every column.",
        scout=r"rows of reactions repeat another row",
        scout_shows=("n_repeated",),
    ),
    Fact(
        id="attention_goes_to_few_authors",
        areas=("content_creation",),
        purpose="Share of reactions that the top ten authors received",
        sql="""
SELECT sum(CASE WHEN place <= 10 THEN n ELSE 0 END) * 1.0 / sum(n) AS share_top_ten, count(*) AS n_authors
FROM (SELECT p.user_id, count(*) AS n, row_number() OVER (ORDER BY count(*) DESC, p.user_id) AS place
      FROM reactions AS r JOIN posts AS p ON p.post_id = r.post_id GROUP BY p.user_id) AS authors
""",
        sentence="Ten of {n_authors} authors receive {share_top_ten} of all reactions.",
    ),
    Fact(
        id="three_authors_hold_the_subscriptions",
        areas=("monetization",),
        purpose="Share of subscriptions that the three largest authors hold",
        sql="""
SELECT sum(CASE WHEN place <= 3 THEN n ELSE 0 END) * 1.0 / sum(n) AS share_top_three, count(*) AS n_creators, sum(n) AS n_subscriptions
FROM (SELECT creator_id, count(*) AS n, row_number() OVER (ORDER BY count(*) DESC, creator_id) AS place FROM subscriptions GROUP BY creator_id) AS creators
""",
        sentence="Three of {n_creators} authors hold {share_top_three} of {n_subscriptions} paid subscriptions.",
    ),
    Fact(
        id="dearer_plan_is_cancelled_more",
        areas=("monetization",),
        purpose="Cancelled share of subscriptions by plan",
        sql="""
SELECT avg(CASE WHEN was_cancelled THEN 1.0 ELSE 0 END) FILTER (plan = 'plus') AS rate_plus, count(*) FILTER (plan = 'plus') AS n_plus,
       avg(CASE WHEN was_cancelled THEN 1.0 ELSE 0 END) FILTER (plan = 'basic') AS rate_basic, count(*) FILTER (plan = 'basic') AS n_basic
FROM subscriptions
""",
        sentence="{rate_plus} of {n_plus} subscriptions to plan plus were cancelled, {rate_basic} of {n_basic} to basic.",
        scout=r"was cancelled = true in .* with plan plus, but .* with basic",
        scout_shows=("rate_plus", "rate_basic"),
    ),
)
