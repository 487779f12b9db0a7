"""A ledger never lets more be spent than its limits, however calls interleave."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_agent.budgets import Budget, Ledger
from assay_core.errors import BudgetExhausted

AMOUNT = st.floats(0, 1_000, allow_nan=False)
CALLS = st.lists(
    st.tuples(st.sampled_from(list(Budget)), AMOUNT, st.floats(0, 1), st.booleans()), max_size=40
)


@given(limits=st.dictionaries(st.sampled_from(list(Budget)), AMOUNT), calls=CALLS)
def test_what_is_spent_and_set_aside_never_exceeds_a_limit(
    limits: dict[Budget, float], calls: list[tuple[Budget, float, float, bool]]
) -> None:
    ledger = Ledger(limits=limits)
    open_calls: list[tuple[dict[Budget, float], float]] = []
    for budget, amount, share, settle_one in calls:
        with suppress(BudgetExhausted):
            open_calls.append((dict(ledger.reserve({budget: amount})), share))
        if settle_one and open_calls:
            reserved, used = open_calls.pop(0)
            ledger.settle(reserved, {name: value * used for name, value in reserved.items()})
        for name, limit in limits.items():
            assert ledger.spent.get(name, 0.0) <= limit * (1 + 1e-9)
            left = ledger.left(name)
            assert left is not None
            assert 0 <= left <= limit


@given(first=AMOUNT, second=AMOUNT, limit=AMOUNT)
def test_a_refused_reservation_sets_nothing_aside(first: float, second: float, limit: float) -> None:
    ledger = Ledger(limits={Budget.TOKENS: limit})
    before = ledger.left(Budget.ROWS), ledger.left(Budget.TOKENS)
    with suppress(BudgetExhausted):
        ledger.release(ledger.reserve({Budget.ROWS: first, Budget.TOKENS: second}))
    assert (ledger.left(Budget.ROWS), ledger.left(Budget.TOKENS)) == before


def test_the_refusal_names_the_budget_what_is_used_and_the_flag() -> None:
    ledger = Ledger(limits={Budget.TOKENS: 1_000}, spent={Budget.TOKENS: 900})
    with pytest.raises(
        BudgetExhausted, match=r"1,000 tokens .* 900 tokens are used, up to 200 .*--max-tokens"
    ):
        ledger.reserve({Budget.TOKENS: 200})


@pytest.mark.parametrize(("spent", "nearly"), [(599, None), (601, Budget.TOKENS)])
def test_exploring_leaves_its_part_for_the_analysis(spent: float, nearly: Budget | None) -> None:
    ledger = Ledger(limits={Budget.TOKENS: 1_000}, spent={Budget.TOKENS: spent})
    assert ledger.nearly_used(kept_share=0.4) is nearly
    timed = Ledger(limits={Budget.SECONDS: 100})
    assert timed.nearly_used(kept_share=0.4, elapsed_s=61) is Budget.SECONDS
