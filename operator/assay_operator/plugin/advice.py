"""What to do about each reason a run can have, as data. `{run}`, `{ns}` and `{job}` are put in where it is shown.

Whose turn it is stands in the failure of a run that has one; here it stands for waits, where nothing has failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from assay_operator.endings import DISRUPTIONS, NODE_REASONS
from assay_operator.findings import FailureClass

Who = Literal["you", "the platform team", "nobody"]

_RESUME = "kubectl assay resume {run}{ns}"
_LOGS = "kubectl assay logs {run}{ns}"
_AGAIN = "apply another DiscoveryRun with that mended, then: kubectl assay purge {run}{ns}"
_EVENTS = "kubectl describe drun {run}{ns}"
_POD = "kubectl describe pod{ns} -l assay.dev/run={run}"


@dataclass(frozen=True, slots=True)
class Advice:
    """One sentence in plain words, whose turn it is, and what to type."""

    means: str
    who: Who
    type: tuple[str, ...]


ADVICE: Mapping[str, Advice] = {
    # it gets on
    "Pending": Advice("it has just been applied; the operator begins it", "nobody", ()),
    "Queued": Advice("its Job waits in the queue for quota", "nobody", ("kubectl get workloads{ns}",)),
    "Starting": Advice("its pod is on the way to a node", "nobody", (_POD,)),
    "Running": Advice("the agent works", "nobody", ("kubectl assay watch {run}{ns}",)),
    "Suspending": Advice("the agent finishes its write and stops", "nobody", ()),
    "Ending": Advice("the attempt is coming to its end", "nobody", ()),
    "Backoff": Advice("the attempt failed; the next one begins by itself after a pause", "nobody", ()),
    "Retrying": Advice("the attempt failed; the next one begins by itself", "nobody", ()),
    "Cancelling": Advice("the agent is stopped and its working data removed", "nobody", ()),
    # it has come to rest
    "Succeeded": Advice("the discovery is saved", "nobody", ("kubectl assay report {run}{ns}",)),
    "Cancelled": Advice("it was cancelled, which is for good", "nobody", (_AGAIN,)),
    "Suspended": Advice(
        "it was asked to wait and keeps its place",
        "you",
        ('kubectl patch drun {run}{ns} --type=merge -p \'{{"spec":{{"suspend":false}}}}\'',),
    ),
    # it waits for something
    "ProjectNotFound": Advice(
        "the project it names is not stored for this namespace; the run begins once it is",
        "you",
        (
            "assay project apply project.yaml --namespace {namespace}",
            "kubectl get drun {run}{ns} -o jsonpath={{.spec.projectRef.name}}",
        ),
    ),
    "ProjectForeign": Advice("the project belongs to another namespace", "you", (_AGAIN,)),
    "ProjectInvalid": Advice("its inline project cannot be used, and a spec is frozen", "you", (_AGAIN,)),
    "ProjectBusy": Advice(
        "another run of the project goes first; this one follows", "nobody", ("kubectl assay runs{ns}",)
    ),
    "StoreUnavailable": Advice(
        "the operator does not reach MongoDB; everything goes on when it does",
        "the platform team",
        (
            "kubectl logs deployment/assay -n OPERATOR_NAMESPACE --tail=20",
            "to delete a run without the purge: kubectl assay purge --skip-purge {run}{ns}",
        ),
    ),
    # a resume that was refused
    "NoCheckpoint": Advice("nothing was stored that a resume could go on from", "you", (_AGAIN,)),
    "Expired": Advice("its checkpoints were older than their retention", "you", (_AGAIN,)),
    "LostRace": Advice("another resume of the run was quicker", "nobody", ("kubectl assay watch {run}{ns}",)),
    "NotFailed": Advice("only a failed run is resumed", "nobody", ()),
    "AnotherRunActive": Advice(
        "another run of the project is active; resume when it has ended",
        "you",
        ("kubectl assay runs{ns}", _RESUME),
    ),
    # the attempt cannot begin
    "InvalidImageName": Advice("the image's name cannot be read", "you", (_AGAIN,)),
    "ErrImageNeverPull": Advice(
        "the image is not on the node, and must not be pulled", "you", (_POD, _AGAIN)
    ),
    "ImageInspectError": Advice("the node cannot read the image", "you", (_POD,)),
    "ImagePullFailed": Advice(
        "the image cannot be pulled; check its name and imagePullSecrets", "you", (_POD,)
    ),
    "SecretOrConfigMissing": Advice(
        "a Secret, a ConfigMap or one of its keys is not there; the run begins once it is",
        "you",
        (_POD, "kubectl get secrets,configmaps{ns}"),
    ),
    "QuotaExceeded": Advice(
        "the namespace's quota leaves no room; the run begins when there is",
        "the platform team",
        ("kubectl describe quota{ns}",),
    ),
    "PodRejected": Advice(
        "the cluster does not admit its pod; the message says why", "you", ("kubectl describe job {job}{ns}",)
    ),
    "Unschedulable": Advice(
        "no node can hold its pod; the run begins when one can", "the platform team", (_POD,)
    ),
    "QuotaNotReserved": Advice(
        "the queue did not admit it within pendingDeadlineSeconds",
        "the platform team",
        ("kubectl get workloads{ns}", _RESUME),
    ),
    "PendingDeadlineExceeded": Advice(
        "its pod did not begin within pendingDeadlineSeconds", "the platform team", (_EVENTS, _RESUME)
    ),
    "JobControllerLag": Advice(
        "Kubernetes' Job controller does not act", "the platform team", ("kubectl get pods -n kube-system",)
    ),
    # the attempt failed
    "NameConflict": Advice(
        "a Job of its name belongs to something else", "you", ("kubectl get job {job}{ns} -o yaml", _RESUME)
    ),
    "ConfigInvalid": Advice(
        "a setting of the project or its secrets is wrong; the message names it", "you", (_LOGS, _RESUME)
    ),
    "NothingToReplay": Advice("its checkpoints cannot be read", "you", (_AGAIN,)),
    "InitFailed": Advice("a container before the agent's failed", "you", (_POD, _RESUME)),
    "ContainerCannotRun": Advice("the agent's container cannot be run", "you", (_POD, _AGAIN)),
    "StartError": Advice(
        "the agent's container cannot be started: does the image hold the agent?", "you", (_POD, _AGAIN)
    ),
    "RunContainerError": Advice("the agent's container cannot be run", "you", (_POD, _AGAIN)),
    "DeadlineExceeded": Advice(
        "its attempt took longer than activeDeadlineSeconds; what it had is kept",
        "you",
        (
            'kubectl patch drun {run}{ns} --type=merge -p \'{{"spec":{{"activeDeadlineSeconds":MORE}}}}\'',
            _RESUME,
        ),
    ),
    "LimitReached": Advice(
        "a budget or the time of the run is used up; a partial result is saved",
        "you",
        ("kubectl edit drun {run}{ns}    # raise spec.budget", _RESUME),
    ),
    "OOMKilled": Advice(
        "the agent needs more memory than podPatch.resources lets it have", "you", (_AGAIN, _RESUME)
    ),
    "ProbablyOOMKilled": Advice(
        "the agent was killed, most likely for want of memory", "you", (_POD, _RESUME)
    ),
    "EphemeralStorageExceeded": Advice(
        "the agent used more scratch space than it may", "you", (_POD, _RESUME)
    ),
    "AgentError": Advice(
        "the agent met an error of its own; please report it with its log", "you", (_LOGS, _RESUME)
    ),
    "AllAreasFailed": Advice(
        "no area could be analysed; the log says what the model or the warehouse answered",
        "you",
        (_LOGS, _RESUME),
    ),
    "CompletedWithoutResult": Advice("the agent ended without saying how", "you", (_LOGS, _RESUME)),
    "DependencyUnavailable": Advice(
        "the model, MongoDB or the warehouse could not be reached", "nobody", (_LOGS, _RESUME)
    ),
    "JobDeletedExternally": Advice("somebody deleted its Job", "the platform team", (_RESUME,)),
    "PodDeletedExternally": Advice("somebody deleted its pod", "nobody", (_RESUME,)),
    "NodeUnreachable": Advice("its node is gone", "nobody", (_RESUME,)),
    "PodEvidenceLost": Advice("its pod is gone, and nobody saw how it ended", "nobody", (_RESUME,)),
    "Disrupted": Advice("Kubernetes took its pod away", "nobody", (_RESUME,)),
    **dict.fromkeys(DISRUPTIONS | NODE_REASONS, Advice("its node took its pod away", "nobody", (_RESUME,))),
}

BY_CLASS: Mapping[FailureClass, Advice] = {
    FailureClass.AGENT: Advice("the agent failed", "you", (_LOGS, _RESUME)),
    FailureClass.CONFIG: Advice("something it was told is wrong", "you", (_LOGS, _RESUME)),
    FailureClass.INFRASTRUCTURE: Advice("something beside the run failed", "nobody", (_RESUME,)),
    FailureClass.LIMIT: Advice(
        "a limit is reached: raise it and resume", "you", ("kubectl edit drun {run}{ns}", _RESUME)
    ),
    FailureClass.RESOURCE: Advice("it was given too little", "you", (_POD, _RESUME)),
    FailureClass.CAPACITY: Advice("the cluster has no room for it", "the platform team", (_EVENTS, _RESUME)),
    FailureClass.UNKNOWN: Advice("nobody saw how it ended", "nobody", (_LOGS, _RESUME)),
}
"""For reasons that the agent or the kubelet word themselves."""
