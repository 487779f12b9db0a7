"""A model that answers by script: the stand-in for a real one in tests, rehearsals and custom builds.

`ScriptedLlm` takes replies in order, per layer; a reply is a text, a `Completion` (truncation, refusal …), an exception to raise,
or a function of the request. When the script runs out it says so with a `ConfigError`: a script that is too short is the
author's mistake, never an empty answer. From a project: provider `scripted`, config `{"script": "replies.json"}` or
`{"replies": {"exploration": […], …}}`; a reply object is `{"text", "finish"}`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from assay_agent.ports import Completion, CompletionRequest, FinishReason, ModelSettings
from assay_core.errors import ConfigError

Reply = str | Completion | BaseException | Callable[[CompletionRequest], "str | Completion"]
_FINISH = ("stop", "length", "refusal", "unknown")


class ScriptedLlm:
    """Replies by script; every request is kept in `requests`."""

    provider = "scripted"

    def __init__(
        self,
        replies: Mapping[str, Sequence[Reply]],
        *,
        repeat_last: bool = False,
        context_tokens: int = 200_000,
        model: str = "script-1",
    ) -> None:
        self.model = model
        self.context_tokens = context_tokens
        self.requests: list[CompletionRequest] = []
        self._replies = {layer: list(items) for layer, items in replies.items()}
        self._repeat_last = repeat_last
        self._lock = threading.Lock()

    def complete(self, request: CompletionRequest) -> Completion:
        reply = self._next(request)
        if isinstance(reply, BaseException):
            raise reply
        if callable(reply):
            reply = reply(request)
        return reply if isinstance(reply, Completion) else Completion(text=reply)

    def _next(self, request: CompletionRequest) -> Reply:
        with self._lock:
            self.requests.append(request)
            queue = self._replies.get(request.layer, self._replies.get("*", []))
            if not queue:
                raise ConfigError(f"the script has no further reply for {request.layer}")
            return queue[0] if self._repeat_last and len(queue) == 1 else queue.pop(0)


def open_model(settings: ModelSettings) -> ScriptedLlm:
    """A scripted model from configuration."""
    replies = settings.config.get("replies")
    script = settings.config.get("script")
    if replies is None and isinstance(script, str):
        try:
            replies = json.loads(Path(script).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"llm.config.script {script!r} cannot be read as JSON: {error}") from error
    if not isinstance(replies, dict):
        raise ConfigError("provider scripted needs llm.config.script (a JSON file) or llm.config.replies")
    parsed: dict[str, list[Reply]] = {
        str(layer): [_reply(item) for item in items]
        for layer, items in cast("dict[str, list[Any]]", replies).items()
    }
    return ScriptedLlm(
        parsed, repeat_last=bool(settings.config.get("repeat_last")), model=settings.model or "script-1"
    )


def _reply(item: Any) -> Reply:
    if isinstance(item, dict) and "text" in item and set(item) <= {"text", "finish", "reasoning"}:
        finish = item.get("finish", "stop")
        if finish not in _FINISH:
            raise ConfigError(
                f"a scripted reply's finish must be one of {', '.join(_FINISH)}, not {finish!r}"
            )
        return Completion(
            text=str(item["text"]),
            finish=cast("FinishReason", finish),
            reasoning=str(item.get("reasoning", "")),
        )
    return item if isinstance(item, str) else json.dumps(item)
