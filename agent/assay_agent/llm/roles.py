"""Which model serves which layer, what the calls of a run added up to, and whether the next one fits the budget.

`RoleModels` is itself a `LanguageModel`: it sends a request to the model of its layer (else the default one), estimates usage that
a provider leaves out and says so, and keeps sums by layer and model, earlier attempts included. Every call is reserved in the
ledger before it is made. Built by wiring; safe to share between threads.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assay_agent.budgets import Amounts, Budget, Ledger
from assay_agent.policy import estimate_tokens
from assay_agent.ports import Completion, CompletionRequest, LanguageModel, Usage
from assay_core.model.run import ModelUsage


@dataclass(slots=True)
class _Sum:
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class RoleModels:
    """Layer → model, with accounting."""

    def __init__(self, default: LanguageModel, layers: Mapping[str, LanguageModel] | None = None) -> None:
        self._default = default
        self._layers = dict(layers or {})
        self._sums: dict[tuple[str, str], _Sum] = {}
        self._ledger = Ledger()
        self._lock = threading.Lock()

    def go_on(self, spent: Sequence[ModelUsage], ledger: Ledger) -> None:
        """Begin with what earlier attempts of the run spent, and keep to the ledger from here on."""
        self._ledger = ledger
        for usage in spent:
            self._sums[usage.phase, usage.model] = _Sum(
                calls=usage.calls,
                input_tokens=usage.input_tokens or 0,
                output_tokens=usage.output_tokens or 0,
                cost_usd=usage.cost_usd,
            )

    @property
    def provider(self) -> str:
        return self._default.provider

    @property
    def model(self) -> str:
        return self._default.model

    @property
    def context_tokens(self) -> int:
        return min(model.context_tokens for model in (self._default, *self._layers.values()))

    def complete(self, request: CompletionRequest) -> Completion:
        model = self._layers.get(request.layer, self._default)
        reserved = self._ledger.reserve(_needed(model, request))
        try:
            completion = model.complete(request)
        except BaseException:
            self._ledger.release(reserved)
            raise
        completion = replace(completion, usage=_filled(completion, request))
        self._ledger.settle(reserved, _spent(completion.usage))
        self._account(request.layer, f"{model.provider}/{model.model}", completion.usage)
        return completion

    def _account(self, layer: str, model: str, usage: Usage) -> None:
        with self._lock:
            total = self._sums.setdefault((layer, model), _Sum())
            total.calls += 1
            total.input_tokens += usage.input_tokens or 0
            total.output_tokens += usage.output_tokens or 0
            if usage.cost_usd is not None:
                total.cost_usd = (total.cost_usd or 0.0) + usage.cost_usd

    def usage(self) -> list[ModelUsage]:
        """Sums so far, by layer and model."""
        with self._lock:
            return [
                ModelUsage(
                    phase=layer,
                    model=model,
                    calls=total.calls,
                    input_tokens=total.input_tokens,
                    output_tokens=total.output_tokens,
                    cost_usd=total.cost_usd,
                )
                for (layer, model), total in sorted(self._sums.items())
            ]


def _needed(model: LanguageModel, request: CompletionRequest) -> Amounts:
    """The most a call can take: the prompt estimated high, and all of its output; its price where that is known."""
    asked = sum(estimate_tokens(message.content) for message in request.messages)
    amounts: dict[Budget, float] = {Budget.TOKENS: asked + request.max_output_tokens}
    prices: tuple[float, float] | None = getattr(model, "prices_usd", None)
    if prices is not None:
        amounts[Budget.COST_USD] = asked * prices[0] + request.max_output_tokens * prices[1]
    else:
        amounts[Budget.COST_USD] = 0.0
    return amounts


def _spent(usage: Usage) -> Amounts:
    return {
        Budget.TOKENS: (usage.input_tokens or 0) + (usage.output_tokens or 0),
        Budget.COST_USD: usage.cost_usd or 0.0,
    }


def _filled(completion: Completion, request: CompletionRequest) -> Usage:
    usage = completion.usage
    if usage.input_tokens is not None and usage.output_tokens is not None:
        return usage
    asked = sum(estimate_tokens(message.content) for message in request.messages)
    answered = estimate_tokens(completion.text + completion.reasoning)
    return Usage(
        input_tokens=asked if usage.input_tokens is None else usage.input_tokens,
        output_tokens=answered if usage.output_tokens is None else usage.output_tokens,
        cost_usd=usage.cost_usd,
        estimated=True,
    )
