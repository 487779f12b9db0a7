"""`make bench`: every comparison, one table."""

from __future__ import annotations

import importlib
import sys

from tests.bench.table import HEADING

PARTS = (
    *("steps", "replay", "areas", "digest", "guard", "memory"),
    *("index", "startup", "resident", "catalogue"),
)


def main() -> None:
    """Run the parts named on the command line, or all."""
    from assay_core import log

    log.configure(level="error", json=False)
    wanted = [part for part in PARTS if not sys.argv[1:] or part in sys.argv[1:]]
    sys.stdout.write(HEADING + "\n")
    for part in wanted:
        for line in importlib.import_module(f"tests.bench.{part}").lines():
            sys.stdout.write(line.text() + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
