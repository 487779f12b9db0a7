"""Data of this machine for the command line: what SOURCE names, the flights of the demo, the packs' samples.

Apart from `wiring`, so that an agent in a pod needs no engine for files. Imported by the verbs that use it, when they do.
"""

from assay_agent.adapters.nycflights import load_nycflights
from assay_agent.adapters.samples import load_sample, sample_of
from assay_agent.adapters.sources import open_source

__all__ = ["load_nycflights", "load_sample", "open_source", "sample_of"]
