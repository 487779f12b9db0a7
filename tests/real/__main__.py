"""`make secrets-real`: the contract suite on the secret managers of clouds themselves, as whoever the machine is signed in as.

Needs SECRET_GCP_PROJECT_ID and SECRET_AWS_REGION, or those of the clouds named on the command line (`gcp`, `aws`). It makes three
secrets in each, reads them, and removes them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.real.places import PLACES


def main(wanted: list[str]) -> int:
    """0 when every promise is kept, 2 when there is nothing to try it on."""
    unknown = [name for name in wanted if name not in PLACES]
    if unknown:
        return _refused(f"{unknown[0]} is no cloud known here; known are {', '.join(PLACES)}")
    chosen = wanted or list(PLACES)
    missing = [PLACES[name].variable for name in chosen if not os.environ.get(PLACES[name].variable)]
    if missing:
        return _refused(
            f"secrets-real needs {' and '.join(missing)}: where secrets may be made, read and removed (or name one of CLOUDS)"
        )
    os.environ["ASSAY_REAL_CLOUDS"] = ",".join(chosen)
    return int(pytest.main(["-q", "-n", "0", str(Path(__file__).parent)]))


def _refused(line: str) -> int:
    sys.stderr.write(line + "\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
