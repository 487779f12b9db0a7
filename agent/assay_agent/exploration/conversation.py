"""What the model sees during exploration: system prompt, opening, and as many turns as the budget allows.

Held by the explore phase; a replay appends the same turns and so rebuilds the same conversation. When the turns outgrow the
budget the oldest are folded into one line each, several at a time, so that the prefix a provider caches stays stable. What is
folded depends only on the turns appended so far. Failed tries within a step never enter the conversation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from assay_agent.policy import estimate_tokens
from assay_agent.ports import Message

FOLDED_HEADING = "Earlier steps, shortened to a line each:"
_FOLD_TO = 0.6
"""Share of the budget that remains in use after folding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One step: the model's own turn, the engine's answer, a line for when it is folded, and tables it showed."""

    step: int
    assistant: str
    user: str
    brief: str
    tables: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.assistant) + estimate_tokens(self.user)


@dataclass(slots=True)
class Conversation:
    """Appends turns, folds the oldest, renders messages. `budget_tokens` excludes the system prompt."""

    system: str
    opening: str
    budget_tokens: int
    turns: list[Turn] = field(default_factory=list)
    folded: int = 0
    _visible: list[Message] = field(default_factory=list)
    """Two messages for each turn that is not folded."""
    _visible_tokens: int = 0
    _brief_tokens: int = 0

    def append(self, turn: Turn) -> None:
        self.turns.append(turn)
        self._visible += (Message("assistant", turn.assistant), Message("user", turn.user))
        self._visible_tokens += turn.tokens
        if self._used() <= self.budget_tokens:
            return
        while self.folded < len(self.turns) - 1 and self._used() > self.budget_tokens * _FOLD_TO:
            oldest = self.turns[self.folded]
            del self._visible[:2]
            self._visible_tokens -= oldest.tokens
            self._brief_tokens += estimate_tokens(oldest.brief)
            self.folded += 1

    def _used(self) -> int:
        return estimate_tokens(self.opening) + self._visible_tokens + self._brief_tokens

    def visible_tables(self) -> set[str]:
        """Tables whose columns still stand in the conversation."""
        return {table for turn in self.turns[self.folded :] for table in turn.tables}

    def messages(self, *tail: Message) -> tuple[Message, ...]:
        """System, opening (with folded steps), visible turns, and what the current step adds."""
        opening = self.opening
        if self.folded:
            lines = "\n".join(turn.brief for turn in self.turns[: self.folded])
            opening = f"{opening}\n\n{FOLDED_HEADING}\n{lines}"
        return (Message("system", self.system), Message("user", opening), *self._visible, *tail)
