"""Names of vector collections and points. The index itself is a port of the agent."""
