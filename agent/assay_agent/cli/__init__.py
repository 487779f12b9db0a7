"""`assay`: the command of people at a terminal. A thin client of the agent's entry point and of the stores."""

from __future__ import annotations

import sys
from typing import NoReturn

from assay_agent.cli.program import execute


def main() -> NoReturn:
    """The console script."""
    sys.exit(execute(sys.argv[1:]))
