"""The schema index: list → describe → sample → description → embed → store, table by table, by `pipeline`."""
