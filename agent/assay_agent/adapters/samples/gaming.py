"""Gem Harbour: 3,000 players of a match-3 game over 92 days, with seven faults planted in game, tracking and payments.

The facts are in docs/packs/gaming.md. Players are walked through their days in one pass: who is stuck on level 24 may give up, and
leaves no further session, so that the wall shows in levels and in retention alike.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    "about": "A free-to-play match-3 game on phones, 92 days of spring 2025",
    "basic_info": {
        "title": "Gem Harbour",
        "platforms": ["ios", "android"],
        "data_time_zone": "UTC",
        "test_accounts": "players.is_test_account",
    },
    "monetization": {"model": "hybrid", "reporting_currency": "USD", "revenue_is": "gross"},
    "live_ops": {
        "releases": [
            {"version": "2.4.0", "on": "2025-04-21"},
            {"version": "2.5.0", "on": "2025-05-12", "changed": "new session tracking"},
        ]
    },
    "kpis": {"retention_d1": 0.42},
    "progression": {"levels": 120, "hard_level_rule": "every tenth"},
}

_PLAYERS, _DAYS, _FIRST = 3_000, 92, np.datetime64("2025-03-01")
_RELEASE, _TRACKING = 51, 72
"""Days of versions 2.4.0 and 2.5.0, counted from the first."""
_WALL, _LEVELS = 24, 120
_TESTERS, _GONE = 25, 60
_SESSION = ("player", "day", "second", "last_level")
_ATTEMPT = ("player", "level", "day", "second", "outcome", "moves", "boosters")
_USD = {"USD": 1.0, "EUR": 0.92, "GBP": 0.79, "JPY": 150.0, "BRL": 5.0, "INR": 83.0}
_CURRENCY = {"US": "USD", "DE": "EUR", "GB": "GBP", "JP": "JPY", "BR": "BRL", "IN": "INR"}
_COUNTRIES: dict[str | None, float] = {"US": 38, "BR": 15, "IN": 15, "DE": 12, "JP": 10, "GB": 10}
_PRICES = {"coins_small": 1.99, "starter_pack": 2.99, "coins_large": 9.99, "mega_bundle": 19.99}


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the six tables."""
    draw = stream(20_250_301)
    players = _players(draw)
    sessions, attempts = _play(draw, players)
    _write_players(connection, players)
    _write_sessions(connection, draw, sessions)
    _write_attempts(connection, attempts)
    _write_purchases(connection, draw, players)
    _write_ads(connection, draw, players, sessions)
    _write_levels(connection)


def _players(draw: np.random.RandomState) -> dict[str, Any]:
    weekday = (np.arange(_DAYS) + 5) % 7  # the first of March 2025 was a Saturday
    weights = np.where(weekday >= 5, 1.3, 1.0)
    installed = np.sort(draw.choice(_DAYS, size=_PLAYERS, p=weights / weights.sum()))
    tester = np.zeros(_PLAYERS, dtype=bool)
    tester[draw.choice(_PLAYERS, size=_TESTERS, replace=False)] = True
    return {
        "installed": installed,
        "platform": choose(draw, {"android": 60, "ios": 40}, _PLAYERS),
        "country": choose(draw, _COUNTRIES, _PLAYERS),
        "channel": choose(
            draw, {"organic": 45, "ad_network": 35, "cross_promo": 12, "referral": 8}, _PLAYERS
        ),
        "tester": tester,
    }


@dataclass(frozen=True, slots=True)
class _Played:
    """What the walk leaves: a row per session, a row per attempt."""

    sessions: list[tuple[Any, ...]]
    attempts: list[tuple[Any, ...]]


def _play(draw: np.random.RandomState, players: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sessions and attempts: active days by a falling curve, lower from 2.4.0 on Android; levels in sequence."""
    late_android = (players["installed"] >= _RELEASE) & (players["platform"] == "android")
    first_day = np.where(late_android, 0.27, 0.43)
    chance = first_day[:, None] * np.arange(1, _DAYS)[None, :] ** -0.55
    active = draw.random_sample(chance.shape) < chance
    played = _Played([], [])
    dice = _Dice(draw)
    chances = _difficulty()
    for player in range(_PLAYERS):
        installed = int(players["installed"][player])
        days = [installed, *(installed + 1 + np.flatnonzero(active[player, : _DAYS - 1 - installed]))]
        _walk(dice, played, player=player, days=days, chances=chances)
    return _columns(_SESSION, played.sessions), _columns(_ATTEMPT, played.attempts)


def _columns(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {
        name: np.array(values, dtype=object if name == "outcome" else np.int64)
        for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }


def _difficulty() -> list[float]:
    """The chance to win an attempt, by level; index 0 is unused."""
    easy = [0.0] + [0.86 - 0.25 * min(level, 60) / 60 for level in range(1, _LEVELS + 1)]
    for level in range(10, _LEVELS + 1, 10):
        easy[level] = 0.38
    easy[_WALL] = 0.17
    return easy


class _Dice:
    """Draws for the walk, made in blocks: one by one they would take most of the time."""

    def __init__(self, draw: np.random.RandomState) -> None:
        self._chances = iter(draw.random_sample(600_000).tolist())
        self._seconds = iter(evening(draw, 60_000, peak_hour=19).tolist())
        self._sessions = iter((1 + np.minimum(draw.poisson(0.7, 60_000), 4)).tolist())

    def chance(self) -> float:
        return float(next(self._chances))

    def below(self, limit: int) -> int:
        return int(self.chance() * limit)

    def day(self) -> list[int]:
        """When the sessions of a day begin."""
        return sorted(next(self._seconds) for _ in range(next(self._sessions)))


def _walk(dice: _Dice, played: _Played, *, player: int, days: list[int], chances: list[float]) -> None:
    """One player's sessions in order; seven losses on the wall and the player may be gone for good."""
    level, losses = 1, 0
    for day in days:
        for second in dice.day():
            for number in range(2 + dice.below(3)):
                boosters = int(dice.chance() < (0.32 if chances[level] < 0.4 else 0.07))
                won = dice.chance() < chances[level] + 0.12 * boosters
                outcome = "win" if won else "quit" if dice.chance() < 0.06 else "lose"
                moves = 1 + dice.below(11) if won else 0
                at = min(second + 90 * number, 86_399)
                played.attempts.append((player, level, day, at, outcome, moves, boosters))
                losses = 0 if won else losses + 1
                level = min(level + 1, _LEVELS) if won else level
            played.sessions.append((player, day, second, level))
            if level == _WALL and losses >= 7 and dice.chance() < 0.55:
                return


def _write_players(connection: duckdb.DuckDBPyConnection, players: dict[str, Any]) -> None:
    types = {
        "player_id": "INTEGER PRIMARY KEY", "installed_on": "DATE", "platform": "VARCHAR", "country": "VARCHAR",
        "acquisition_channel": "VARCHAR", "is_test_account": "BOOLEAN",
    }  # fmt: skip
    columns: Columns = {
        "player_id": np.arange(1, _PLAYERS + 1),
        "installed_on": _FIRST + players["installed"],
        "platform": players["platform"],
        "country": players["country"],
        "acquisition_channel": players["channel"],
        "is_test_account": players["tester"],
    }
    create(connection, "players", types, columns)


def _write_sessions(
    connection: duckdb.DuckDBPyConnection, draw: np.random.RandomState, sessions: dict[str, Any]
) -> None:
    """Length is lost for two in five Android sessions of 2.5.0; 150 sessions are written twice."""
    count = len(sessions["player"])
    platform = connection.execute("SELECT platform FROM players ORDER BY player_id").fetchnumpy()["platform"]
    on = np.asarray(platform, dtype=object)[sessions["player"]]
    version = np.where(
        sessions["day"] < _RELEASE, "2.3.1", np.where(sessions["day"] < _TRACKING, "2.4.0", "2.5.0")
    )
    length = np.clip(draw.lognormal(6.05, 0.7, count), 10, 7_200).astype(np.int64).astype(object)
    lost = (version == "2.5.0") & (on == "android") & (draw.random_sample(count) < 0.4)
    length[lost] = None
    sessions["platform"] = on
    types = {
        "session_id": "INTEGER", "player_id": "INTEGER", "started_at": "TIMESTAMP", "duration_s": "INTEGER",
        "app_version": "VARCHAR", "platform": "VARCHAR", "last_level": "SMALLINT",
    }  # fmt: skip
    columns = {
        "session_id": np.arange(1, count + 1),
        "player_id": sessions["player"] + 1,
        "started_at": instants(_FIRST + sessions["day"], sessions["second"]),
        "duration_s": length,
        "app_version": version.astype(object),
        "platform": on,
        "last_level": sessions["last_level"],
    }
    create(connection, "sessions", types, repeated(columns, draw.choice(count, size=150, replace=False)))


def _write_attempts(connection: duckdb.DuckDBPyConnection, attempts: dict[str, Any]) -> None:
    types = {
        "attempt_id": "INTEGER PRIMARY KEY", "player_id": "INTEGER", "level": "SMALLINT", "attempted_at": "TIMESTAMP",
        "outcome": "VARCHAR", "moves_left": "SMALLINT", "boosters_used": "SMALLINT",
    }  # fmt: skip
    columns = {
        "attempt_id": np.arange(1, len(attempts["player"]) + 1),
        "player_id": attempts["player"] + 1,
        "level": attempts["level"],
        "attempted_at": instants(_FIRST + attempts["day"], attempts["second"]),
        "outcome": attempts["outcome"],
        "moves_left": attempts["moves"],
        "boosters_used": attempts["boosters"],
    }
    create(connection, "level_attempts", types, columns)


def _write_purchases(
    connection: duckdb.DuckDBPyConnection, draw: np.random.RandomState, players: dict[str, Any]
) -> None:
    """One player in twelve pays; testers buy without paying; 60 rows belong to accounts that are gone."""
    payers = draw.choice(_PLAYERS, size=_PLAYERS // 12, replace=False)
    often = 1 + draw.geometric(0.22, len(payers))
    buyer = np.concatenate([np.repeat(payers, often), np.repeat(np.flatnonzero(players["tester"]), 20)])
    count = len(buyer)
    product = choose(
        draw, {"coins_small": 48, "starter_pack": 22, "coins_large": 20, "mega_bundle": 10}, count
    )
    usd = np.array([_PRICES[name] for name in product])
    day = np.minimum(players["installed"][buyer] + draw.geometric(0.08, count) - 1, _DAYS - 1)
    currency = np.array([_CURRENCY[name] for name in players["country"][buyer]], dtype=object)
    owner = buyer + 1
    gone = draw.choice(np.flatnonzero(~players["tester"][buyer]), size=_GONE, replace=False)
    owner[gone] = 900_000 + np.arange(_GONE) // 3
    refunded = draw.random_sample(count) < np.where(product == "mega_bundle", 0.31, 0.03)
    types = {
        "purchase_id": "INTEGER PRIMARY KEY", "player_id": "INTEGER", "purchased_at": "TIMESTAMP", "product": "VARCHAR",
        "currency": "VARCHAR", "amount": "DECIMAL(12,2)", "amount_usd": "DECIMAL(12,2)", "is_refunded": "BOOLEAN",
    }  # fmt: skip
    columns: Columns = {
        "purchase_id": np.arange(1, count + 1),
        "player_id": owner,
        "purchased_at": instants(_FIRST + day, evening(draw, count, peak_hour=20)),
        "product": product,
        "currency": currency,
        "amount": cents(usd * np.array([_USD[name] for name in currency])),
        "amount_usd": usd,
        "is_refunded": refunded,
    }
    create(connection, "purchases", types, columns)


def _write_ads(
    connection: duckdb.DuckDBPyConnection,
    draw: np.random.RandomState,
    players: dict[str, Any],
    sessions: dict[str, Any],
) -> None:
    """Ads by session; rewarded ones pay three times as much, the United States twice; gamma reports 300 views twice."""
    shown = draw.poisson(1.1, len(sessions["player"]))
    player = np.repeat(sessions["player"], shown)
    count = len(player)
    placement = choose(draw, {"interstitial": 55, "rewarded": 30, "banner": 15}, count)
    network = choose(draw, {"alpha": 50, "beta": 30, "gamma": 20}, count)
    rate = np.where(placement == "rewarded", 12.0, np.where(placement == "interstitial", 4.0, 0.5))
    rate = rate * np.where(players["country"][player] == "US", 2.0, 1.0) * draw.gamma(8, 1 / 8, count)
    second = np.minimum(np.repeat(sessions["second"], shown) + draw.randint(20, 600, count), 86_399)
    types = {
        "player_id": "INTEGER", "shown_at": "TIMESTAMP", "placement": "VARCHAR", "network": "VARCHAR", "revenue_usd": "DOUBLE",
        "was_completed": "BOOLEAN",
    }  # fmt: skip
    columns = {
        "player_id": player + 1,
        "shown_at": instants(_FIRST + np.repeat(sessions["day"], shown), second),
        "placement": placement,
        "network": network,
        "revenue_usd": np.round(rate / 1000, 6),
        "was_completed": draw.random_sample(count) < np.where(placement == "rewarded", 0.93, 0.71),
    }
    twice = draw.choice(np.flatnonzero(network == "gamma"), size=300, replace=False)
    create(connection, "ad_impressions", types, repeated(columns, twice))


def _write_levels(connection: duckdb.DuckDBPyConnection) -> None:
    level = np.arange(1, _LEVELS + 1)
    types = {
        "level": "SMALLINT PRIMARY KEY",
        "chapter": "SMALLINT",
        "moves_allowed": "SMALLINT",
        "is_hard": "BOOLEAN",
    }
    columns = {
        "level": level,
        "chapter": (level - 1) // 20 + 1,
        "moves_allowed": 30 - level % 7,
        "is_hard": level % 10 == 0,
    }
    create(connection, "levels", types, columns)
