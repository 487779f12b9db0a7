"""Evidence, all pure: the catalogue, digests of results, which steps an area sees, and numbers computed from rows."""
