"""Implementations of the seams in `ports`, found by entry point and imported by `wiring` alone."""
