"""`assay feedback RUN TARGET like|dislike`: what a person says of a result, told to every later run of the project."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from assay_agent.cli.home import choose_run, fail_abandoned, find_discovery
from assay_agent.cli.terminal import console, plain_purpose
from assay_agent.settings import AgentSettings
from assay_agent.stores import open_for_reading
from assay_core import clock
from assay_core.errors import ConfigError
from assay_core.model.discovery import DiscoveryResult
from assay_core.model.feedback import Feedback
from assay_core.store.client import Store

_COMMENT_CHARS = 1_000
"""A comment stands in every later prompt."""
_TITLE_CHARS = 200
_PREFIX = 8
"""Letters of an id that name it."""
_NAMED = 12

Kind = Literal["insight", "recommendation", "exploration_step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something that can be judged; `name` is how a person calls it."""

    kind: Kind
    id: str
    name: str
    title: str


def add_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("run", help="run id or the beginning of one")
    sub.add_argument(
        "target",
        help="a finding (churn-1), an advice (recommendation-2, the second one shown), a step (step-14), or an id",
    )
    sub.add_argument("rating", choices=("like", "dislike"))
    sub.add_argument("--comment", default="", metavar="TEXT", help="why; later runs read it")


def feedback(arguments: argparse.Namespace) -> int:
    """`assay feedback`."""
    comment = " ".join(arguments.comment.split())
    if len(comment) > _COMMENT_CHARS:
        raise ConfigError(f"--comment has {len(comment)} characters; at most {_COMMENT_CHARS} are kept")
    with open_for_reading(home=arguments.home, settings=AgentSettings.load()) as stores:
        fail_abandoned(stores.store)
        run = choose_run(stores.store, arguments.run)
        discovery = find_discovery(stores.store, run.id)
        if discovery is None:
            raise ConfigError(f"run {run.id[:8]} has no result to judge ({run.status})")
        target = find_target(list(targets(stores.store, discovery)), arguments.target)
        stores.store.feedback.put(
            Feedback(
                id=str(uuid4()),
                project_id=discovery.project_id,
                discovery_id=discovery.id,
                tenant=discovery.tenant,
                target_type=target.kind,
                target_id=target.id,
                target_title=target.title[:_TITLE_CHARS],
                rating=arguments.rating,
                comment=comment,
                created_at=clock.now(),
            )
        )
    console().print(f"{arguments.rating}: {target.name}, {target.title}", markup=False, soft_wrap=True)
    return 0


def targets(store: Store, discovery: DiscoveryResult) -> Iterator[Target]:
    """Everything in a discovery that can be judged: findings, advice, then steps."""
    for insight in discovery.insights:
        yield Target(
            kind="insight", id=insight.id, name=insight.slug or insight.id[:_PREFIX], title=insight.name
        )
    for number, item in enumerate(discovery.recommendations, start=1):
        yield Target(kind="recommendation", id=item.id, name=f"recommendation-{number}", title=item.title)
    for step in store.discoveries.logs(discovery.id).exploration:
        title = plain_purpose(step.query_purpose or step.thinking or str(step.action))
        yield Target(
            kind="exploration_step",
            id=str(step.step),
            name=f"step-{step.step}",
            title=f"step {step.step}: {title}",
        )


def find_target(known: list[Target], asked: str) -> Target:
    """The one target that is called so, or whose id begins so."""
    found = [target for target in known if asked in (target.name, target.id)]
    if not found and len(asked) >= _PREFIX:
        found = [target for target in known if target.id.startswith(asked)]
    if len(found) == 1:
        return found[0]
    named = [target.name for target in known if not re.fullmatch(r"step-\d+", target.name)]
    shown = ", ".join(named[:_NAMED]) + (", …" if len(named) > _NAMED else "")
    raise ConfigError(
        f"{asked!r} names {len(found) or 'no'} thing in this result; it has {shown}, and step-N"
    )
