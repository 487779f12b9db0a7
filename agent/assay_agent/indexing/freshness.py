"""Whether a run can use the index it finds, and in words why not. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from assay_core.store.schema import IndexProgress


def why_not_fresh(
    progress: IndexProgress | None,
    *,
    warehouse_hash: str,
    cached: int,
    vectors: int | None,
    embedding_model: str,
    now: datetime,
    fresh_s: float,
) -> str | None:
    """None when the index is whole, of this warehouse and young enough. `vectors` is None where nobody could say."""
    if progress is None:
        return "nothing was indexed yet"
    if progress.warehouse_hash != warehouse_hash:
        return "the project's datasources have changed since"
    if progress.status != "completed":
        return "the last index was not finished"
    if (progress.completed_at or progress.started_at) + timedelta(seconds=fresh_s) < now:
        return f"the last index is older than {fresh_s / 86_400:.0f} days"
    if not cached or cached < progress.tables_done:
        return f"{progress.tables_done - cached} of {progress.tables_done} tables have expired"
    if vectors is not None and (progress.embedding_model != embedding_model or vectors < cached):
        return "the tables cannot be searched"
    return None
