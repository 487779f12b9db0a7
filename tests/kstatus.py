"""How a kstatus reader (`kubectl wait`, Flux, Argo CD's sync) sees an object: the rules of sigs.k8s.io/cli-utils for one with conditions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from lupa import LuaRuntime

HEALTH = Path(__file__).parents[1] / "charts" / "assay" / "files" / "argocd-health.lua"

Seen = Literal["Current", "InProgress", "Failed", "Terminating"]
AGREES: Mapping[str, Seen] = {
    "Healthy": "Current",
    "Progressing": "InProgress",
    "Suspended": "InProgress",
    "Degraded": "Failed",
}
"""What kstatus says where Argo CD says this; it has no word for suspended."""


def kstatus(body: Mapping[str, Any]) -> Seen:
    metadata, status = body["metadata"], body.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    observed = status.get("observedGeneration")
    if observed is not None and observed != metadata.get("generation"):
        return "InProgress"
    found = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    if found.get("Reconciling") == "True":
        return "InProgress"
    if found.get("Stalled") == "True":
        return "Failed"
    return "Current" if found.get("Ready", "True" if not found else "False") == "True" else "InProgress"


def argocd(body: Mapping[str, Any]) -> tuple[str, str]:
    """Status and message by the chart's own health check, run by a real Lua as Argo CD runs it."""
    lua = LuaRuntime(unpack_returned_tuples=True)
    check = lua.eval(f"function(obj) {HEALTH.read_text()} end")
    answer = check(_table(lua, body))
    return str(answer["status"]), str(answer["message"])


def _table(lua: Any, value: Any) -> Any:
    match value:
        case dict():
            return lua.table_from({key: _table(lua, one) for key, one in value.items()})
        case list() | tuple():
            return lua.table_from([_table(lua, one) for one in value])
        case _:
            return value
