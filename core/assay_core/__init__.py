"""What the operator and the agent agree on: documents, errors, the store and its fence, vector collection names.

Everything else either program needs lives with that program; this package imports neither of them.
"""
