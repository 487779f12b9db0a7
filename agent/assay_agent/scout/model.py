"""The scout behind the language model port: it reads the task from the messages and answers by rules. Pure per call."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay_agent.exploration.actions import action_json
from assay_agent.ports import Completion, CompletionRequest, Message, ModelSettings, Usage
from assay_agent.scout.planning import next_action
from assay_agent.scout.situation import read_situation
from assay_agent.scout.writer.advice import recommendations_reply
from assay_agent.scout.writer.analysis import analysis_reply

MODEL = "scout-1"
_TASK = re.compile(r"^Task: (\w+)$", re.MULTILINE)
_ABOUT = (
    "I am the scout, an analyst that works by rules. I answer the tasks of a discovery run (exploration, analysis, recommendations) "
    "and do not converse."
)
_NO_REPAIR = "```sql\n\n```"


class Scout:
    """Implements `LanguageModel`. Stateless, free of cost, and the same answer for the same messages."""

    provider = "scout"
    model = MODEL
    context_tokens = 200_000

    def complete(self, request: CompletionRequest) -> Completion:
        return Completion(
            text=answer(request.messages), usage=Usage(input_tokens=0, output_tokens=0, cost_usd=0.0)
        )


def answer(messages: Sequence[Message]) -> str:
    """The reply to a conversation."""
    tasks = [
        match for message in messages if message.role == "user" for match in _TASK.findall(message.content)
    ]
    prompt = "\n".join(message.content for message in messages if message.role != "assistant")
    match tasks[0] if tasks else "":
        case "exploration":
            return action_json(next_action(read_situation(messages)))
        case "analysis":
            return analysis_reply(prompt)
        case "recommendations":
            return recommendations_reply(prompt)
        case "sql_fix":
            return _NO_REPAIR
        case _:
            return _ABOUT


def open_model(settings: ModelSettings) -> Scout:
    """Entry point; the scout takes no settings."""
    del settings
    return Scout()
