"""What the commands share about runs in a home: which one is meant, which was abandoned, and where its files go."""

from __future__ import annotations

import json
import os
from pathlib import Path

from assay_agent.report import Findings, render_report
from assay_core.errors import ConfigError
from assay_core.model.discovery import DiscoveryResult
from assay_core.model.run import DiscoveryRun
from assay_core.store.client import Store
from assay_core.store.owner import owner_is_gone


def fail_abandoned(store: Store) -> None:
    """Move local runs whose process is gone to failed; said before any command answers about runs."""
    for run in store.runs.active():
        if run.owner and owner_is_gone(run.owner):
            store.runs.fail_unowned(
                run.id, attempt=run.attempt, owner=run.owner, reason="its process is gone"
            )


def choose_run(store: Store, prefix: str | None) -> DiscoveryRun:
    """The run that a prefix names, or the newest one."""
    if prefix:
        return store.runs.find(prefix)
    newest = store.runs.recent(limit=1)
    if not newest:
        raise ConfigError("there is no run yet; start one with `assay run SOURCE` or `assay demo`")
    return newest[0]


def find_discovery(store: Store, run_id: str) -> DiscoveryResult | None:
    """The newest result of a run."""
    results = store.discoveries.of_run(run_id)
    return results[-1] if results else None


def write_outputs(store: Store, discovery: DiscoveryResult, folder: Path) -> list[Path]:
    """report.html and discovery.json, each whole or not at all."""
    logs = store.discoveries.logs(discovery.id)
    run = store.runs.get(discovery.run_id) if discovery.run_id else None
    project = store.projects.get(discovery.project_id)
    page = render_report(
        Findings(
            discovery=discovery,
            exploration=tuple(logs.exploration),
            analysis=tuple(logs.analysis),
            recommendation=logs.recommendation,
            run=run,
            project=project,
        )
    )
    document = json.dumps(store.discoveries.raw(discovery.id), ensure_ascii=False, indent=1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_written(folder / "report.html", page), _written(folder / "discovery.json", document + "\n")]
    except OSError as error:
        raise ConfigError(
            f"--out {folder} cannot be written: {error.strerror}; the run itself is saved"
        ) from error


def check_writable(folder: Path) -> None:
    """Make the folder of the outputs, or say before anything is spent why it cannot be."""
    probe = folder / ".assay-writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_text("", encoding="utf-8")
        probe.unlink()
    except OSError as error:
        raise ConfigError(
            f"--out {folder} cannot be written: {error.strerror}; name a folder that can be"
        ) from error


def _written(path: Path, text: str) -> Path:
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)
    return path
