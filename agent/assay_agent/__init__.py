"""The agent: one process per run, and the only program that talks to a warehouse."""
