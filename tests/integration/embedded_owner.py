"""A program that owns a run home, for the tests of the embedded stores: it writes, says so, and goes on.

`python embedded_owner.py HOME`: prints `ready`, then each number once its write is acknowledged. On Ctrl-C it writes
one more row, says `last`, closes and exits with 0. A `ConfigError` is printed and exits with 10.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from assay_agent.stores import open_stores
from assay_core.errors import ConfigError
from assay_core.settings import StoreSettings


def main(home: Path) -> int:
    try:
        stores = open_stores(home=home, settings=StoreSettings.load(), embedder_dims=4)
    except ConfigError as error:
        print(f"ConfigError: {error}", flush=True)  # noqa: T201
        return 10
    with stores:
        rows = stores.store.database["numbers"]
        print("ready", flush=True)  # noqa: T201
        try:
            for number in itertools.count():
                rows.insert_one({"_id": number, "text": "x" * 500})
                print(number, flush=True)  # noqa: T201
        except KeyboardInterrupt:
            rows.insert_one({"_id": "last"})
            print("last", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
