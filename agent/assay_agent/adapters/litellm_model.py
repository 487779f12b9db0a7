"""Any provider's model through litellm; implements the `LanguageModel` port and is the only importer of the SDK.

The import takes seconds, so it happens on a thread of its own from the moment a model is opened, and the first call waits for it.
Tries, waits and corrections are ours (`litellm_failures` decides them): the SDK's own retries hide errors.
"""

from __future__ import annotations

import os
import random
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from assay_agent.adapters.litellm_failures import Again, End, Failure, Without, decide
from assay_agent.adapters.litellm_providers import PREFIX, call_arguments, positive
from assay_agent.ports import Completion, CompletionRequest, FinishReason, ModelSettings, Usage
from assay_core.errors import ConfigError

DEFAULT_CONTEXT_TOKENS = 128_000
BACKOFF_CAP_S = 60.0
JITTER = 0.25
_IMPORT_S = 120.0
"""Seconds the first call waits for the import at most."""
_CORRECTIONS = 6
"""Parameters that may be left out or renamed for one model."""
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


class _Import:
    """litellm, imported once per process, off the main thread."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._module: ModuleType | None = None
        self._error: ImportError | None = None

    def start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._import, name="litellm-import", daemon=True)
                self._thread.start()

    def module(self) -> Any:
        self.start()
        assert self._thread is not None
        self._thread.join(_IMPORT_S)
        if self._module is None:
            raise ConfigError(
                "the package litellm is not installed: install assay with the extra litellm, or use provider scout"
            ) from self._error
        return self._module

    def _import(self) -> None:
        # Otherwise it fetches a price list from the network as it is imported.
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import litellm
        except ImportError as error:
            self._error = error
            return
        # It builds some of its own models as it is first used, and warns of them.
        warnings.filterwarnings("ignore", message="Items? .* on TypedDict class", category=UserWarning)
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        litellm.drop_params = False
        self._module = litellm


_sdk = _Import()


class _NoChoices(Exception):
    """A reply that is none; a fault of the server like any other."""


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
        self._sleep, self._spread = sleep, spread
        self._corrections: dict[str, str | None] = {}
        self._lock = threading.Lock()
        _sdk.start()

    @property
    def context_tokens(self) -> int:
        """The operator's word, else what is known of the model, else 128,000."""
        if self._window is None:
            known = _known(_sdk.module(), self._arguments["model"]).get("max_input_tokens")
            self._window = known if isinstance(known, int) and known > 0 else DEFAULT_CONTEXT_TOKENS
        return self._window

    @property
    def prices_usd(self) -> tuple[float, float] | None:
        """Dollars per input and output token; None where nobody knows."""
        known = _known(_sdk.module(), self._arguments["model"])
        price_in, price_out = known.get("input_cost_per_token"), known.get("output_cost_per_token")
        return None if price_in is None or price_out is None else (float(price_in), float(price_out))

    def complete(self, request: CompletionRequest) -> Completion:
        """One reply. Corrections cost no try; tries are spaced by what the provider asks for, or by a growing pause."""
        sdk = _sdk.module()
        tries = 0
        while True:
            if self._settings.request_delay_s:
                self._sleep(self._settings.request_delay_s)
            sent = self._sent(request)
            try:
                return _completion(sdk, sdk.completion(**sent))
            except Exception as error:
                verdict = decide(
                    _failure(error),
                    provider=self.provider,
                    model=self.model,
                    setting=self._settings.secret_key,
                    sent=sent,
                    now=datetime.now(UTC),
                )
                if isinstance(verdict, End):
                    raise verdict.error from error
                if isinstance(verdict, Without):
                    self._correct(verdict, verdict_of=error)
                    continue
                tries += 1
                if tries >= self._settings.tries:
                    raise verdict.error from error
                self._sleep(self._pause(verdict, tries))

    def _sent(self, request: CompletionRequest) -> dict[str, Any]:
        limit = min(request.max_output_tokens, self._output_cap or request.max_output_tokens)
        sent = {
            **self._arguments,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "max_tokens": limit,
            "timeout": self._timeout_s,
            "max_retries": 0,
            "num_retries": 0,
        }
        with self._lock:
            corrections = dict(self._corrections)
        for name, renamed in corrections.items():
            if name in sent:
                value = sent.pop(name)
                if renamed:
                    sent[renamed] = value
        return sent

    def _correct(self, found: Without, *, verdict_of: Exception) -> None:
        with self._lock:
            turned_back = (
                found.renamed_to is not None and self._corrections.get(found.renamed_to) == found.parameter
            )
            if turned_back or found.parameter in self._corrections or len(self._corrections) >= _CORRECTIONS:
                raise ConfigError(
                    f"{self.provider}/{self.model} accepts the request neither with {found.parameter} nor without it"
                ) from verdict_of
            self._corrections[found.parameter] = found.renamed_to

    def _pause(self, verdict: Again, tries: int) -> float:
        """Seconds: what was asked for, or the doubled pause within a quarter either way; never above the cap."""
        own: float = self._settings.backoff_s * 2 ** (tries - 1) * (1 + JITTER * (2 * self._spread() - 1))
        return min(max(own, verdict.after_s or 0.0), BACKOFF_CAP_S)


def _failure(error: Exception) -> Failure:
    """What litellm's exception says, whatever it is: its own classes, the SDK's below, or a plain one."""
    status = getattr(error, "status_code", None)
    kind = type(error).__name__
    text = str(getattr(error, "message", None) or error)
    # A connection that was refused arrives as an internal error of the server that was never reached.
    if kind in ("Timeout", "APIConnectionError") or text.endswith("Connection error."):
        status = None
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}
    after = headers.get("retry-after") if hasattr(headers, "get") else None
    return Failure(
        kind=kind,
        text=text,
        status=status if isinstance(status, int) and status >= 400 else None,
        retry_after=str(after) if after else None,
    )


def _completion(sdk: Any, response: Any) -> Completion:
    """The reply in our terms."""
    choices = getattr(response, "choices", None) or []
    if not choices:
        raise _NoChoices("the server sent a reply without choices")
    message = choices[0].message
    text = message.content if isinstance(message.content, str) else ""
    reasoning = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None) or ""
    finish = _FINISH.get(str(choices[0].finish_reason or ""), "unknown")
    if getattr(message, "refusal", None) and not text:
        finish = "refusal"
    return Completion(text=text, reasoning=str(reasoning), finish=finish, usage=_usage(sdk, response))


def _usage(sdk: Any, response: Any) -> Usage:
    """Tokens and money; what the provider did not say is unknown, not zero."""
    said = getattr(response, "usage", None)
    tokens_in = getattr(said, "prompt_tokens", None) or None
    tokens_out = getattr(said, "completion_tokens", None) or None
    cost: float | None = None
    if tokens_in is not None or tokens_out is not None:
        try:
            cost = float(sdk.completion_cost(completion_response=response))
        except Exception:  # noqa: BLE001 - the price of a model that is not on its list
            cost = None
    return Usage(input_tokens=tokens_in, output_tokens=tokens_out, cost_usd=cost)


def _known(sdk: Any, model: str) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = sdk.get_model_info(model)
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
