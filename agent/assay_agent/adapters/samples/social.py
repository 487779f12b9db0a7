"""Lumen: 4,000 accounts of a platform for pictures and videos over 16 weeks, a farm of automated ones among them.

The facts are in docs/packs/social.md.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from assay_agent.adapters.samples.drawing import (
    Columns,
    cents,
    choose,
    create,
    evening,
    instants,
    repeated,
    stream,
)

PROFILE: dict[str, Any] = {
    "about": "A platform on which people share pictures and videos, 16 weeks of spring 2025",
    "platform_info": {
        "name": "Lumen",
        "clients": ["ios", "android", "web"],
        "data_time_zone": "UTC",
        "automated_accounts": "users.is_automated",
    },
    "engagement_model": {"graph": "follow", "feed": "ranked", "content_kinds": ["photo", "video", "text"]},
    "monetization": {"models": ["creator_subscriptions"], "reporting_currency": "USD"},
    "kpis": {"retention_w1": 0.4},
    "moderation": "removed posts are deleted, their reactions stay",
}

_DAYS, _FIRST = 112, np.datetime64("2025-01-06")
_PEOPLE, _FARM, _FARM_DAY = 3_700, 300, 40
_AUTOPLAY = 70
"""Day on which videos in the feed began to play by themselves."""
_AUTHORS, _POSTS, _REACTIONS, _REMOVED = 600, 9_000, 48_000, 1_200


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the six tables."""
    draw = stream(20_250_106)
    users = _users(draw)
    _write_users(connection, users)
    _write_sessions(connection, draw, users)
    authors, posts = _posts(draw, users)
    _write_posts(connection, posts)
    _write_reactions(connection, draw, users, posts)
    _write_follows(connection, draw, users, authors)
    _write_subscriptions(connection, draw, authors)


def _users(draw: np.random.RandomState) -> dict[str, Any]:
    """People join on all days, the farm within an hour of one; on the web the source is lost for half."""
    count = _PEOPLE + _FARM
    automated = np.arange(count) >= _PEOPLE
    day = np.where(
        automated, _FARM_DAY, np.concatenate([np.sort(draw.randint(0, _DAYS, _PEOPLE)), np.zeros(_FARM, int)])
    )
    second = np.where(automated, 10_800 + draw.randint(0, 3_600, count), evening(draw, count, peak_hour=18))
    platform = np.where(automated, "web", choose(draw, {"ios": 40, "android": 42, "web": 18}, count)).astype(
        object
    )
    source = choose(draw, {"organic": 46, "invite": 24, "ads": 20, "press": 10}, count)
    source = np.where(automated, "ads", source).astype(object)
    source[(platform == "web") & ~automated & (draw.random_sample(count) < 0.5)] = None
    country = choose(draw, {"US": 30, "IN": 22, "BR": 18, "DE": 12, "FR": 10, "JP": 8}, count)
    country[automated] = "US"
    return {
        "day": day,
        "second": second,
        "platform": platform,
        "source": source,
        "country": country,
        "automated": automated,
    }


def _write_users(connection: duckdb.DuckDBPyConnection, users: dict[str, Any]) -> None:
    types = {
        "user_id": "INTEGER PRIMARY KEY", "signed_up_at": "TIMESTAMP", "country": "VARCHAR", "platform": "VARCHAR",
        "referral_source": "VARCHAR", "is_automated": "BOOLEAN",
    }  # fmt: skip
    columns: Columns = {
        "user_id": np.arange(1, len(users["day"]) + 1),
        "signed_up_at": instants(_FIRST + users["day"], users["second"]),
        "country": users["country"],
        "platform": users["platform"],
        "referral_source": users["source"],
        "is_automated": users["automated"],
    }
    create(connection, "users", types, columns)


def _write_sessions(
    connection: duckdb.DuckDBPyConnection, draw: np.random.RandomState, users: dict[str, Any]
) -> None:
    """Invited people come back more often; from one day on videos play by themselves and sessions in the feed are longer."""
    invited = users["source"] == "invite"
    chance = np.where(invited, 0.30, 0.17)[:, None] * np.arange(1, _DAYS)[None, :] ** -0.3
    chance[users["automated"]] = 0
    active = draw.random_sample(chance.shape) < chance
    user, age = np.nonzero(active)
    day = users["day"][user] + age + 1
    user, day = user[day < _DAYS], day[day < _DAYS]
    people = np.flatnonzero(~users["automated"])
    user, day = np.concatenate([people, user]), np.concatenate([users["day"][people], day])
    times = 1 + draw.poisson(0.5, len(user))
    user, day = np.repeat(user, times), np.repeat(day, times)
    count = len(user)
    surface = choose(draw, {"feed": 62, "search": 14, "profile": 14, "notifications": 10}, count)
    minutes = draw.lognormal(1.5, 0.6, count) * np.where((surface == "feed") & (day >= _AUTOPLAY), 1.6, 1.0)
    types = {
        "session_id": "INTEGER PRIMARY KEY", "user_id": "INTEGER", "started_at": "TIMESTAMP", "surface": "VARCHAR",
        "minutes": "DOUBLE",
    }  # fmt: skip
    columns: Columns = {
        "session_id": np.arange(1, count + 1),
        "user_id": user + 1,
        "started_at": instants(_FIRST + day, evening(draw, count, peak_hour=20)),
        "surface": surface,
        "minutes": np.round(minutes, 1),
    }
    create(connection, "sessions", types, columns)


def _posts(draw: np.random.RandomState, users: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Posts of 600 people, the more the higher their rank; videos are seen more."""
    authors = draw.choice(_PEOPLE, size=_AUTHORS, replace=False)
    weight = 1.0 / (np.arange(_AUTHORS) + 12)
    rank = draw.choice(_AUTHORS, size=_POSTS, p=weight / weight.sum())
    author = authors[rank]
    start = users["day"][author]
    day = start + (draw.random_sample(_POSTS) * (_DAYS - start)).astype(int)
    kind = choose(draw, {"photo": 60, "video": 25, "text": 15}, _POSTS)
    views = (
        draw.lognormal(4.2, 0.8, _POSTS) * np.where(kind == "video", 1.5, 1.0) * (30.0 / (rank + 10) + 0.6)
    )
    return authors, {
        "author": author,
        "rank": rank,
        "day": day,
        "second": evening(draw, _POSTS, peak_hour=19),
        "kind": kind,
        "views": views.astype(int),
    }


def _write_posts(connection: duckdb.DuckDBPyConnection, posts: dict[str, Any]) -> None:
    types = {
        "post_id": "INTEGER PRIMARY KEY", "user_id": "INTEGER", "posted_at": "TIMESTAMP", "kind": "VARCHAR", "views": "INTEGER",
    }  # fmt: skip
    columns = {
        "post_id": np.arange(1, _POSTS + 1),
        "user_id": posts["author"] + 1,
        "posted_at": instants(_FIRST + posts["day"], posts["second"]),
        "kind": posts["kind"],
        "views": posts["views"],
    }
    create(connection, "posts", types, columns)


def _write_reactions(
    connection: duckdb.DuckDBPyConnection,
    draw: np.random.RandomState,
    users: dict[str, Any],
    posts: dict[str, Any],
) -> None:
    """Reactions follow views, threefold on videos; 1,200 are left of removed posts, 400 are written twice."""
    weight = posts["views"] * np.where(posts["kind"] == "video", 3.0, 1.0)
    post = draw.choice(_POSTS, size=_REACTIONS, p=weight / weight.sum())
    user = draw.choice(np.flatnonzero(~users["automated"]), size=_REACTIONS)
    delay = draw.exponential(1.2, _REACTIONS).astype(int)
    identifier = post + 1
    removed = draw.choice(_REACTIONS, size=_REMOVED, replace=False)
    identifier[removed] = 50_000 + np.arange(_REMOVED) % 180
    types = {
        "post_id": "INTEGER", "user_id": "INTEGER", "reacted_at": "TIMESTAMP", "reaction": "VARCHAR", "surface": "VARCHAR",
    }  # fmt: skip
    columns = {
        "post_id": identifier,
        "user_id": user + 1,
        "reacted_at": instants(
            _FIRST + np.minimum(posts["day"][post] + delay, _DAYS - 1),
            evening(draw, _REACTIONS, peak_hour=20),
        ),
        "reaction": choose(draw, {"like": 78, "love": 14, "laugh": 8}, _REACTIONS),
        "surface": choose(draw, {"feed": 71, "profile": 18, "search": 11}, _REACTIONS),
    }
    create(
        connection, "reactions", types, repeated(columns, draw.choice(_REACTIONS, size=400, replace=False))
    )


def _write_follows(
    connection: duckdb.DuckDBPyConnection, draw: np.random.RandomState, users: dict[str, Any], authors: Any
) -> None:
    """People follow some authors; each automated account follows 50 of the same 200, all in one hour."""
    weight = 1.0 / (np.arange(_AUTHORS) + 20)
    follower = np.repeat(np.arange(_PEOPLE), draw.poisson(5.5, _PEOPLE))
    followee = authors[draw.choice(_AUTHORS, size=len(follower), p=weight / weight.sum())]
    start = users["day"][follower]
    day = start + (draw.random_sample(len(follower)) ** 2 * (_DAYS - start)).astype(int)
    machines = np.repeat(np.arange(_PEOPLE, _PEOPLE + _FARM), 50)
    bought = np.concatenate([draw.choice(authors[200:400], size=50, replace=False) for _ in range(_FARM)])
    types = {
        "follow_id": "INTEGER PRIMARY KEY", "follower_id": "INTEGER", "followee_id": "INTEGER", "followed_at": "TIMESTAMP",
    }  # fmt: skip
    columns: Columns = {
        "follow_id": np.arange(1, len(follower) + len(machines) + 1),
        "follower_id": np.concatenate([follower, machines]) + 1,
        "followee_id": np.concatenate([followee, bought]) + 1,
        "followed_at": np.concatenate(
            [
                instants(_FIRST + day, evening(draw, len(follower), peak_hour=20)),
                instants(
                    _FIRST + np.full(len(machines), _FARM_DAY), 14_400 + draw.randint(0, 3_600, len(machines))
                ),
            ]
        ),
    }
    create(connection, "follows", types, columns)


def _write_subscriptions(
    connection: duckdb.DuckDBPyConnection, draw: np.random.RandomState, authors: Any
) -> None:
    """Paid subscriptions to authors, most to the first three; the dearer plan is given up more often."""
    count = 1_400
    weight = np.where(np.arange(60) < 3, 18.0, 1.0)
    creator = authors[draw.choice(60, size=count, p=weight / weight.sum())]
    start = draw.randint(0, _DAYS, count)
    plan = choose(draw, {"basic": 68, "plus": 32}, count)
    cancelled = draw.random_sample(count) < np.where(plan == "plus", 0.46, 0.22)
    kept = draw.geometric(0.03, count)
    ended = (_FIRST + np.minimum(start + kept, _DAYS - 1)).astype(object)
    ended[~cancelled] = None
    types = {
        "subscription_id": "INTEGER PRIMARY KEY", "subscriber_id": "INTEGER", "creator_id": "INTEGER", "plan": "VARCHAR",
        "price_usd": "DECIMAL(8,2)", "started_on": "DATE", "ended_on": "DATE", "was_cancelled": "BOOLEAN",
    }  # fmt: skip
    columns: Columns = {
        "subscription_id": np.arange(1, count + 1),
        "subscriber_id": draw.randint(1, _PEOPLE + 1, count),
        "creator_id": creator + 1,
        "plan": plan,
        "price_usd": cents(np.where(plan == "plus", 9.99, 3.99)),
        "started_on": _FIRST + start,
        "ended_on": ended,
        "was_cancelled": cancelled,
    }
    create(connection, "subscriptions", types, columns)
