"""Whether the files a run reads are still those it started with: their size and time of change, as the run document keeps them.

A run that is continued takes the answers of its former attempts as they are. Where a file has changed since, the findings mix two
states of it, which is said beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay_agent.indexing.scope import datasources_of
from assay_core.model.project import Datasource, Project
from assay_core.model.run import DiscoveryRun, SourceFile

_FILE_PROVIDERS = ("duckdb", "sqlite")


def source_files(project: Project) -> list[SourceFile]:
    """The project's datasources that are files, as they are now; one that is not there is left out."""
    found = (_file_of(source) for source in datasources_of(project) if source.provider in _FILE_PROVIDERS)
    return [file for file in found if file is not None]


def changed_files(run: DiscoveryRun, project: Project) -> list[str]:
    """A sentence for each file that is no longer what it was when the run started."""
    if not run.source_files:
        return []
    now = {file.datasource_id: file for file in source_files(project)}
    return [_said(before) for before in run.source_files if now.get(before.datasource_id) != before]


def copies(project: Project, folder: Path) -> Sequence[str]:
    """Datasources that read a copy in `folder`, made when the files they were loaded from were as the run saw them first."""
    inside = folder.resolve()
    return [file.path for file in source_files(project) if inside in Path(file.path).resolve().parents]


def _file_of(source: Datasource) -> SourceFile | None:
    path = Path(str(source.config.get("path", "")))
    try:
        state = path.stat()
    except OSError:
        return None
    return SourceFile(
        datasource_id=source.id, path=str(path), bytes=state.st_size, changed_ns=state.st_mtime_ns
    )


def _said(before: SourceFile) -> str:
    return (
        f"the source {Path(before.path).name} is not as it was when this run started: the findings mix what it held "
        "before and after; a new run (assay run) sees one state"
    )
