"""`kubectl assay report`: the findings of a run as text, or the stored document, straight from MongoDB."""

from __future__ import annotations

import argparse
import json
import sys

from assay_core import log
from assay_core.errors import ConfigError
from assay_core.model.discovery import DiscoveryResult
from assay_core.settings import StoreSettings
from assay_core.store.client import Store
from assay_operator.plugin.explain import explain
from assay_operator.plugin.reach import Reach


def report(reach: Reach, arguments: argparse.Namespace) -> int:
    body = reach.run(arguments.run)
    discovery_id = (body.get("status") or {}).get("discoveryId")
    if not discovery_id:
        raise ConfigError(f"{arguments.run} has no discovery yet. " + explain(body).splitlines()[0])
    settings = StoreSettings.load()
    if not settings.mongodb_uri:
        raise ConfigError(
            "MONGODB_URI is needed, since findings are stored in MongoDB; from outside of the cluster: "
            "kubectl port-forward service/MONGODB 27017, then MONGODB_URI='mongodb://…@127.0.0.1:27017/?directConnection=true'"
        )
    log.hide(settings.mongodb_uri)
    with Store.connect(settings.mongodb_uri, settings.mongodb_db) as store:
        if arguments.json:
            raw = store.discoveries.raw(str(discovery_id))
            if raw is not None:
                sys.stdout.write(json.dumps(raw, indent=2, default=str) + "\n")
                return 0
        result = store.discoveries.get(str(discovery_id))
    if result is None:
        raise ConfigError(
            f"discovery {discovery_id} is not in this MongoDB: does MONGODB_URI name the right one?"
        )
    sys.stdout.write(findings(result) + "\n")
    return 0


def findings(result: DiscoveryResult) -> str:
    """Insights by severity as they are stored, then what is recommended."""
    lines = [f"{len(result.insights)} insights, {len(result.recommendations)} recommendations", ""]
    for insight in result.insights:
        lines += [f"[{insight.severity}] {insight.name}", f"    {insight.description}", ""]
    if result.recommendations:
        lines.append("Recommended:")
        lines += [f"  - {one.title}: {one.description}" for one in result.recommendations]
    return "\n".join(lines).rstrip()
