"""What a run may spend, and has spent: tokens, money, rows and bytes are reserved before a call and settled after it. No I/O.

One `Ledger` per attempt, begun with what earlier attempts of the run spent. A reservation that does not fit raises
`BudgetExhausted` before anything is spent; exploring ends while a part is left for the analysis of what was seen.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay_core.errors import BudgetExhausted


class Budget(StrEnum):
    TOKENS = "tokens"
    COST_USD = "cost_usd"
    ROWS = "rows"
    BYTES = "bytes_scanned"
    SECONDS = "seconds"


FLAGS: Mapping[Budget, str] = {
    Budget.TOKENS: "--max-tokens",
    Budget.COST_USD: "--max-cost-usd",
    Budget.ROWS: "--max-rows",
    Budget.BYTES: "--max-bytes-scanned",
    Budget.SECONDS: "--max-duration-seconds",
}
"""How the user sets each; said when it is used up."""

Amounts = Mapping[Budget, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesMeter:
    """The bytes of a ledger, as a warehouse sees them: what is left for its own questions, and what those were billed."""

    ledger: Ledger

    def left(self) -> int | None:
        left = self.ledger.left(Budget.BYTES)
        return None if left is None else int(left)

    def bill(self, scanned: int) -> None:
        if scanned:
            self.ledger.charge(Budget.BYTES, scanned)


@dataclass(slots=True)
class Ledger:
    """`limits` by budget, what is missing is not limited. Safe to share between threads.

    Invariant: what is spent and reserved never exceeds a limit, as long as no call costs more than was reserved for it, and
    nothing is charged that was not.
    """

    limits: Amounts = field(default_factory=dict)
    spent: dict[Budget, float] = field(default_factory=dict)
    _reserved: dict[Budget, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, amounts: Amounts) -> Amounts:
        """Set `amounts` aside, all or none; returns them for `settle`."""
        with self._lock:
            for budget, amount in amounts.items():
                limit = self.limits.get(budget)
                used = self._used(budget)
                if limit is not None and used + amount > limit:
                    raise BudgetExhausted(
                        f"the budget of {_shown(budget, limit)} does not hold the next call: {_shown(budget, used)} are used, "
                        f"up to {_shown(budget, amount)} are needed; raise {FLAGS[budget]} and resume"
                    )
            for budget, amount in amounts.items():
                self._reserved[budget] = self._reserved.get(budget, 0.0) + amount
        return amounts

    def settle(self, reserved: Amounts, actual: Amounts) -> None:
        """Give back what was set aside and count what was really spent; what nobody can tell counts as reserved."""
        with self._lock:
            for budget, amount in reserved.items():
                self._reserved[budget] = self._reserved.get(budget, 0.0) - amount
                self.spent[budget] = self.spent.get(budget, 0.0) + actual.get(budget, amount)

    def release(self, reserved: Amounts) -> None:
        """Give back what was set aside for a call that spent nothing."""
        self.settle(reserved, dict.fromkeys(reserved, 0.0))

    def charge(self, budget: Budget, amount: float) -> None:
        """Count what was spent without having been set aside. It is never refused: the next reservation is."""
        with self._lock:
            self.spent[budget] = self.spent.get(budget, 0.0) + amount

    def left(self, budget: Budget) -> float | None:
        """What may still be reserved; None where there is no limit."""
        with self._lock:
            limit = self.limits.get(budget)
            return None if limit is None else max(limit - self._used(budget), 0.0)

    def nearly_used(self, *, kept_share: float, elapsed_s: float = 0.0) -> Budget | None:
        """The budget of which less than `kept_share` is left, if there is one."""
        with self._lock:
            for budget, limit in self.limits.items():
                used = elapsed_s if budget is Budget.SECONDS else self._used(budget)
                if used > limit * (1 - kept_share):
                    return budget
        return None

    def _used(self, budget: Budget) -> float:
        return self.spent.get(budget, 0.0) + self._reserved.get(budget, 0.0)


def _shown(budget: Budget, amount: float) -> str:
    if budget is Budget.COST_USD:
        return f"{amount:.4f} USD"
    return f"{amount:,.0f} {budget.replace('_', ' ')}"
