"""Opens, locks and ends the stores a program works on; see `opening`."""

from assay_agent.stores.home import HomeTaken, RunningStores, running_stores
from assay_agent.stores.opening import OpenStores, Stores, open_for_reading, open_stores

__all__ = [
    "HomeTaken",
    "OpenStores",
    "RunningStores",
    "Stores",
    "open_for_reading",
    "open_stores",
    "running_stores",
]
