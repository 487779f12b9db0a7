"""A run is killed at every point of every call it makes, resumed, and compared with one that nobody disturbed."""
