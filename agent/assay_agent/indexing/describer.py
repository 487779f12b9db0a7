"""Who writes the one description of a table: the model of the layer `table_descriptions`, or rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from assay_agent.indexing.asking import asked_again, description_messages, read_description
from assay_agent.indexing.rules import BY_RULES, describe_by_rules
from assay_agent.policy import IndexPolicy
from assay_agent.ports import CompletionRequest, LanguageModel, Message
from assay_core import log
from assay_core.errors import ModelOutputError, ModelRefusal
from assay_core.model.table import TableSchema

_logger = log.logger(__name__)
LAYER = "table_descriptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """`problem` says why a table that a model should have described is described by rules."""

    text: str
    by: str
    keywords: list[str] = field(default_factory=list)
    problem: str | None = None


class Describer(Protocol):
    """Called from several threads."""

    @property
    def by(self) -> str: ...
    @property
    def is_paid(self) -> bool:
        """Whether a description that is lost is paid for again."""
        ...

    def describe(self, table: TableSchema) -> Description: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDescriber:
    """Needs no model."""

    policy: IndexPolicy
    by: str = BY_RULES
    is_paid: bool = False

    def describe(self, table: TableSchema) -> Description:
        return Description(text=describe_by_rules(table)[: self.policy.description_chars], by=BY_RULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescriber:
    """One call per table, one more for a reply that cannot be read; then rules. A model that is unavailable raises."""

    model: LanguageModel
    by: str
    policy: IndexPolicy
    is_paid: bool = True

    def describe(self, table: TableSchema) -> Description:
        messages = description_messages(table, self.policy)
        tail: tuple[Message, ...] = ()
        output_tokens = self.policy.output_tokens
        problem = ""
        for _ in range(self.policy.parse_retries + 1):
            completion = self.model.complete(
                CompletionRequest(layer=LAYER, messages=(*messages, *tail), max_output_tokens=output_tokens)
            )
            try:
                text, keywords = read_description(completion, self.policy)
            except ModelRefusal as error:
                problem = str(error)
                break
            except ModelOutputError as error:
                problem = str(error)
                output_tokens = self.policy.output_tokens_ceiling
                tail = asked_again(completion.text[: self.policy.description_chars], problem)
                continue
            return Description(text=text, keywords=keywords, by=self.by)
        _logger.warning("table described by rules", table=table.ref, reason=problem)
        ruled = RuleDescriber(policy=self.policy).describe(table)
        return Description(text=ruled.text, by=ruled.by, problem=problem)
