"""Exploration without I/O: what a reply means, what the model sees, when to stop, and how steps are replayed."""
