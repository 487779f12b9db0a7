"""The conversation stays inside its budget and folds the same way every time."""

from __future__ import annotations

from assay_agent.exploration.conversation import FOLDED_HEADING, Conversation, Turn
from assay_agent.policy import estimate_tokens


def a_conversation(budget_tokens: int = 2_000) -> Conversation:
    return Conversation(system="system", opening="opening", budget_tokens=budget_tokens)


def a_turn(number: int, *, size: int = 800) -> Turn:
    return Turn(
        step=number,
        assistant=f"ask {number}",
        user="x" * size,
        brief=f"step {number} query: p → 1 rows",
        tables=(f"t{number}",),
    )


def test_turns_alternate_and_start_with_system_and_opening() -> None:
    conversation = a_conversation()
    conversation.append(a_turn(1))
    assert [message.role for message in conversation.messages()] == ["system", "user", "assistant", "user"]


def test_oldest_turns_fold_to_a_line_and_the_budget_holds() -> None:
    conversation = a_conversation()
    for number in range(1, 31):
        conversation.append(a_turn(number))
        used = sum(estimate_tokens(message.content) for message in conversation.messages()[1:])
        assert used <= conversation.budget_tokens * 1.05
    opening = conversation.messages()[1].content
    assert FOLDED_HEADING in opening
    assert "step 1 query" in opening
    assert conversation.messages()[-1].content == "x" * 800


def test_folding_depends_only_on_the_turns() -> None:
    one, two = a_conversation(), a_conversation()
    for number in range(1, 20):
        one.append(a_turn(number))
    for number in range(1, 20):
        two.append(a_turn(number))
        two.messages()
    assert one.messages() == two.messages()


def test_tables_of_folded_turns_are_no_longer_visible() -> None:
    conversation = a_conversation()
    for number in range(1, 12):
        conversation.append(a_turn(number))
    assert "t1" not in conversation.visible_tables()
    assert "t11" in conversation.visible_tables()


def test_one_turn_larger_than_the_budget_is_still_shown() -> None:
    conversation = a_conversation(budget_tokens=100)
    conversation.append(a_turn(1, size=4_000))
    assert len(conversation.messages()) == 4
