"""MongoDB, the truth: the only importer of pymongo. `client.Store` opens it, `fence.FencedRun` writes what
belongs to a run.
"""
