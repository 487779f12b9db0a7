"""Verbs of a command that has several, such as `assay packs list`: each a parser of its own with the shared flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable

AddVerb = Callable[[str, str, Callable[[argparse.Namespace], int]], argparse.ArgumentParser]


def verbs_of(command: argparse.ArgumentParser, shared: argparse.ArgumentParser) -> AddVerb:
    """A function that adds a verb: its name, its help, and what it does."""
    verbs = command.add_subparsers(title="commands", metavar="VERB", required=True)

    def verb(
        name: str, help_text: str, action: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        sub = verbs.add_parser(
            name, help=help_text, description=help_text, parents=[shared], allow_abbrev=False
        )
        sub.set_defaults(command=action)
        return sub

    return verb
