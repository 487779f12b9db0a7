"""`kubectl assay why`: what a run waits for or why it failed, whose turn it is, what to type. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay_operator.findings import FailureClass
from assay_operator.plugin.advice import ADVICE, BY_CLASS, Advice, Who
from assay_operator.resource import job_name

_WHO: Mapping[str, Who] = {"User": "you", "Platform": "the platform team", "None": "nobody"}


def explain(body: Mapping[str, Any]) -> str:
    """A few lines for a person about one DiscoveryRun."""
    metadata, status = body["metadata"], body.get("status") or {}
    name, namespace = str(metadata["name"]), str(metadata["namespace"])
    phase = str(status.get("phase") or "")
    if not phase:
        return (
            f"{name}: no operator has seen it yet.\n"
            "whose turn: the platform team, if this stays for longer than a minute\n"
            "type:  kubectl get deployments -A -l app.kubernetes.io/name=assay-operator"
        )
    reason = str(status.get("reason") or phase)
    failure = status.get("failure") or {}
    purge = str((status.get("purge") or {}).get("error") or "")
    advice = advice_for(reason, phase, failure)
    who = _WHO.get(str(failure.get("actor") or ""), advice.who)
    words = {
        "run": name,
        "ns": f" -n {namespace}",
        "namespace": namespace,
        "job": job_name(name, int(status.get("attempt") or 1)),
    }
    lines = [f"{name}: {phase}" + (f", {reason}" if reason != phase else "") + f": {advice.means}."]
    if status.get("message"):
        lines.append(f"it says:    {status['message']}")
    if purge and phase in ("Cancelling", "Failed", "Succeeded", "Cancelled"):
        lines.append(f"the purge:  {purge}; it is tried again, and --skip-purge frees the run without it")
    if phase == "Failed":
        lines.append(f"resumable:  {_resumable(status)}")
    lines.append(f"whose turn: {who}")
    wanted = [text for text in advice.type if _useful(text, status)]
    lines += [f"{'type:' if not n else '':<11} {text.format(**words)}" for n, text in enumerate(wanted)]
    return "\n".join(lines)


def advice_for(reason: str, phase: str, failure: Mapping[str, Any]) -> Advice:
    """By the reason, else by the failure's class, else by the phase."""
    if reason in ADVICE:
        return ADVICE[reason]
    if failure.get("class") in {one.value for one in FailureClass}:
        return BY_CLASS[FailureClass(failure["class"])]
    return ADVICE.get(phase, BY_CLASS[FailureClass.UNKNOWN])


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((one for one in status.get("conditions") or () if one.get("type") == kind), {})


def _resumable(status: Mapping[str, Any]) -> str:
    found = _condition(status, "Resumable")
    if found.get("status") == "True":
        step = (status.get("progress") or {}).get("step")
        return f"yes, after step {step}" if step else "yes"
    return f"no: {found.get('message') or found.get('reason') or 'nothing is stored'}"


def _useful(text: str, status: Mapping[str, Any]) -> bool:
    """A resume is not advised where it would be refused; it goes on by itself while it is not over."""
    if "assay resume" not in text:
        return True
    return status.get("phase") == "Failed" and (
        _condition(status, "Resumable").get("status") == "True" or status.get("reason") == "AnotherRunActive"
    )
