"""`make chaos`: a run of 20 steps and three areas, killed at every point; prints the table and what went wrong."""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from assay_agent.stores.home import prepare
from assay_agent.stores.server import EmbeddedServer
from assay_core.store.client import Store
from tests.chaos.scenario import Size, World
from tests.chaos.sweep import Finding, sweep

LARGE = Size(steps=20, areas=("data_quality", "trends", "relationships"))
RETENTION_S = 48 * 3600


def main() -> int:
    """0 where every killed run ended like the undisturbed one."""
    with tempfile.TemporaryDirectory(prefix="assay-chaos-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        prepare(home)
        server = EmbeddedServer(home, standalone=False)
        server.start()
        try:
            with Store.connect(server.url(), "chaos") as store:
                store.ensure_indexes(checkpoint_retention_s=RETENTION_S)
                with World(store, server.url(), Path(folder), LARGE) as world:
                    return _table(list(_shown(world)))
        finally:
            server.stop()


def _shown(world: World) -> list[Finding]:
    found: list[Finding] = []
    for finding in sweep(world):
        found.append(finding)
        mark = "WRONG" if finding.wrong() else "ok"
        print(f"{finding.point:38} attempts {finding.attempts}  {mark}", flush=True)
        for line in finding.different[:5]:
            print(f"    {line}")
    return found


def _table(findings: list[Finding]) -> int:
    by_call: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_call[finding.point.rpartition(":")[0]].append(finding)
    print(
        f"\n{'call':34} {'kills':>5} {'queries run again':>18} {'model calls again':>18} {'documents differ':>17}"
    )
    for call, group in sorted(by_call.items()):
        print(
            f"{call:34} {len(group):5} {sum(f.requeried for f in group):18} {max(f.reasked for f in group):14} max "
            f"{sum(bool(f.different) for f in group):17}"
        )
    wrong = [finding for finding in findings if finding.wrong()]
    print(f"\n{len(findings)} kills, {len(wrong)} ended otherwise than the undisturbed run")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
