"""The agent's own flags, and what they make of a run's steps, floor and areas. A wrong one is a ConfigError, exit 10."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import NoReturn

from assay_agent.budgets import FLAGS, Amounts, Budget
from assay_agent.policy import ExplorationPolicy
from assay_agent.wiring import RunOptions
from assay_core.errors import ConfigError

_MAX_STEPS = 10_000
_MAX_AMOUNT = 1e18
DISCOVERY, INDEX_SCHEMA = "discovery", "index-schema"
_EFFORT_STEPS = {"lower": 20, "low": 40, "medium": 60, "high": 80, "higher": 100}


INDEX_BUDGETS = (Budget.TOKENS, Budget.COST_USD, Budget.SECONDS)
"""What an index may be kept from spending; what it reads of a table is bounded as it is."""
_DISCOVERY_FLAGS = (
    *(
        "--run-id",
        "--max-steps",
        "--min-steps",
        "--areas",
        "--effort",
        "--resume",
        "--test",
        "--require-index",
    ),
    *(flag for budget, flag in FLAGS.items() if budget not in INDEX_BUDGETS),
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see --help)")


def parser() -> argparse.ArgumentParser:
    """The agent's own flags."""
    made = _Parser(
        prog="assay-agent",
        allow_abbrev=False,
        description="Run one attempt of one discovery run, or index the tables of a project.",
    )
    made.add_argument(
        "--mode",
        choices=(DISCOVERY, INDEX_SCHEMA),
        default=DISCOVERY,
        help="what to do (discovery); index-schema takes --project-id, --job-id, --refresh and the budgets",
    )
    made.add_argument("--project-id", required=True)
    made.add_argument("--run-id", default=None, help="the run, in mode discovery")
    made.add_argument(
        "--job-id", type=_word, default=None, help="id of an index (the unfinished one, else a new one)"
    )
    made.add_argument("--refresh", action="store_true", help="describe every table again, unchanged ones too")
    made.add_argument("--attempt", type=_at_least(1), default=1, help="which attempt this is (1)")
    made.add_argument("--max-steps", type=_at_least(1), default=None, help="exploration steps at most (100)")
    made.add_argument(
        "--min-steps", type=_at_least(0), default=None, help="steps before the model may end (0)"
    )
    made.add_argument("--areas", type=_names, default=(), help="analysis areas, comma separated (all)")
    made.add_argument(
        "--effort", choices=tuple(_EFFORT_STEPS), default=None, help="sets --max-steps where that is absent"
    )
    made.add_argument(
        "--resume", action="store_true", help="continue from the checkpoints of an earlier attempt"
    )
    for budget, flag in FLAGS.items():
        made.add_argument(
            flag, type=_amount, default=None, help=f"{budget.replace('_', ' ')} the run may spend (no limit)"
        )
    made.add_argument("--test", action="store_true", help="at most 20 steps")
    made.add_argument("--require-index", action="store_true", help="fail instead of reading the schema first")
    made.add_argument("--enable-debug-logs", action="store_true")
    return made


def _at_least(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= _MAX_STEPS:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from {least} to {_MAX_STEPS}, not {text!r}"
            )
        return int(text)

    return whole


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < _MAX_AMOUNT:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return value


def _word(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", text):
        raise argparse.ArgumentTypeError(f"must be 1 to 64 letters, digits, '.', '_' or '-', not {text!r}")
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def run_options(arguments: argparse.Namespace, policy: ExplorationPolicy) -> RunOptions:
    """Steps from flag, effort or default; `--test` caps them."""
    _refuse_mixed(arguments)
    steps = arguments.max_steps or _EFFORT_STEPS.get(arguments.effort or "", policy.max_steps)
    if arguments.test:
        steps = min(steps, policy.test_max_steps)
    floor = policy.min_steps if arguments.min_steps is None else arguments.min_steps
    if floor > steps:
        raise ConfigError(f"--min-steps must be at most --max-steps ({steps}), not {floor}")
    return RunOptions(
        areas=arguments.areas,
        max_steps=steps,
        min_steps=floor,
        resume=arguments.resume,
        require_index=arguments.require_index,
        limits=limits_of(arguments),
    )


def limits_of(arguments: argparse.Namespace) -> Amounts:
    """Budgets that were given."""
    return {
        budget: value
        for budget, flag in FLAGS.items()
        if (value := getattr(arguments, flag[2:].replace("-", "_"))) is not None
    }


def _refuse_mixed(arguments: argparse.Namespace) -> None:
    """A flag of one mode means nothing in the other."""
    if arguments.mode == INDEX_SCHEMA:
        for flag in _DISCOVERY_FLAGS:
            if getattr(arguments, flag[2:].replace("-", "_")):
                raise ConfigError(f"{flag} is of --mode discovery (see --help)")
        return
    if arguments.run_id is None:
        raise ConfigError("the following arguments are required: --run-id (see --help)")
    if arguments.job_id is not None or arguments.refresh:
        flag = "--refresh" if arguments.refresh else "--job-id"
        raise ConfigError(f"{flag} is of --mode index-schema (see --help)")


def check(argv: Sequence[str]) -> None:
    """Raise ConfigError where the flags are wrong; for callers that must know before they start anything."""
    run_options(parser().parse_args(list(argv)), ExplorationPolicy())
