"""Any provider's model through litellm; implements the `LanguageModel` port. Tries and corrections are in `litellm_calls`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from assay_agent.adapters.litellm_calls import Caller, Connection, NoAnswer, sdk
from assay_agent.adapters.litellm_providers import PREFIX, call_arguments, positive
from assay_agent.ports import Completion, CompletionRequest, FinishReason, ModelSettings, Usage
from assay_core.errors import ConfigError

DEFAULT_CONTEXT_TOKENS = 128_000
_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}


class LitellmModel:
    """One model of one connection. Safe to call from several threads."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self.provider = settings.provider
        self.model = settings.model
        self._settings = settings
        self._arguments = call_arguments(
            settings.provider, settings.model, settings.config, secret=settings.secret
        )
        self._window = positive(settings.config, "max_input_tokens")
        self._output_cap = positive(settings.config, "max_output_tokens")
        self._timeout_s = float(positive(settings.config, "timeout_seconds") or settings.timeout_s)
        self._caller = Caller(
            Connection(
                provider=settings.provider,
                model=settings.model,
                secret_key=settings.secret_key,
                tries=settings.tries,
                backoff_s=settings.backoff_s,
                delay_s=settings.request_delay_s,
            ),
            sleep=sleep,
            spread=spread,
        )

    @property
    def context_tokens(self) -> int:
        """The operator's word, else what is known of the model, else 128,000."""
        if self._window is None:
            known = _known(self._arguments["model"]).get("max_input_tokens")
            self._window = known if isinstance(known, int) and known > 0 else DEFAULT_CONTEXT_TOKENS
        return self._window

    @property
    def prices_usd(self) -> tuple[float, float] | None:
        """Dollars per input and output token; None where nobody knows."""
        known = _known(self._arguments["model"])
        price_in, price_out = known.get("input_cost_per_token"), known.get("output_cost_per_token")
        return None if price_in is None or price_out is None else (float(price_in), float(price_out))

    def complete(self, request: CompletionRequest) -> Completion:
        """One reply, after the tries the settings allow."""
        limit = min(request.max_output_tokens, self._output_cap or request.max_output_tokens)
        completion: Completion = self._caller.call(
            "completion",
            {
                **self._arguments,
                "messages": [
                    {"role": message.role, "content": message.content} for message in request.messages
                ],
                "max_tokens": limit,
                "timeout": self._timeout_s,
                "num_retries": 0,
            },
            _completion,
        )
        return completion


def _completion(response: Any) -> Completion:
    """The reply in our terms."""
    choices = getattr(response, "choices", None) or []
    if not choices:
        raise NoAnswer("the server sent a reply without choices")
    message = choices[0].message
    text = message.content if isinstance(message.content, str) else ""
    reasoning = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None) or ""
    finish = _FINISH.get(str(choices[0].finish_reason or ""), "unknown")
    if getattr(message, "refusal", None) and not text:
        finish = "refusal"
    return Completion(text=text, reasoning=str(reasoning), finish=finish, usage=_usage(response))


def _usage(response: Any) -> Usage:
    """Tokens and money; what the provider did not say is unknown, not zero."""
    said = getattr(response, "usage", None)
    tokens_in = getattr(said, "prompt_tokens", None) or None
    tokens_out = getattr(said, "completion_tokens", None) or None
    cost: float | None = None
    if tokens_in is not None or tokens_out is not None:
        try:
            cost = float(sdk.module().completion_cost(completion_response=response))
        except Exception:  # noqa: BLE001 - the price of a model that is not on its list
            cost = None
    return Usage(input_tokens=tokens_in, output_tokens=tokens_out, cost_usd=cost)


def _known(model: str) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = sdk.module().get_model_info(model)
    except Exception:  # noqa: BLE001 - a model that is not on its list
        return {}
    return found


def open_model(settings: ModelSettings) -> LitellmModel:
    """Entry point of every provider in the table."""
    if settings.provider not in PREFIX:
        raise ConfigError(
            f"llm.provider is {settings.provider!r}, must be one of: {', '.join(sorted(PREFIX))}"
        )
    return LitellmModel(settings)
