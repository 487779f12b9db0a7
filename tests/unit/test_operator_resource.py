"""The hand-written CRD says what the models say; and the pure parts around a Job and a status keep their promises."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from assay_core.errors import ConfigError
from assay_core.model.run import DiscoveryRun, RunLifecycleEvent, RunStatus
from assay_operator.decide import Asked, Observed, decide
from assay_operator.endings import CONTRACT
from assay_operator.findings import Going
from assay_operator.job import JobSettings, build_job
from assay_operator.resource import Object, Phase, PodPatch, Spec, job_name, run_id_of
from assay_operator.status import auto_retries, status_of

CRD = yaml.safe_load((Path(__file__).parents[2] / "crds" / "discoveryruns.yaml").read_text())
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
SETTINGS = JobSettings(image="assay-agent:1", environment_secrets=("assay",))


def an_object(status: Mapping[str, Any] | None = None, **spec: Any) -> Object:
    return Object.read(
        {
            "metadata": {
                "name": "shop",
                "namespace": "team",
                "uid": "u-1",
                "generation": 3,
                "creationTimestamp": "2026-12-01T11:00:00Z",
            },
            "spec": {"projectRef": {"name": "p"}, **spec},
            "status": dict(status or {}),
        }
    )


def compare(model: type[BaseModel], schema: Mapping[str, Any], at: str) -> None:
    """Names, defaults, limits and kinds of one object and of those inside it."""
    described = model.model_json_schema(by_alias=True)
    properties = schema["properties"]
    assert set(properties) == set(described["properties"]), at
    for name, field in described["properties"].items():
        _compare_field(properties[name], _resolved(field, described), described, f"{at}.{name}")


def _compare_field(
    found: Mapping[str, Any], field: Mapping[str, Any], whole: Mapping[str, Any], at: str
) -> None:
    kind = field.get("type")
    assert found.get("type") == kind or (kind == "number" and found["type"] == "number"), at
    for limit in ("minimum", "maximum", "minLength", "maxLength", "maxItems", "enum"):
        if limit in field:
            assert found.get(limit) == field[limit], f"{at}: {limit}"
    if field.get("default") not in (None, [], {}) and not isinstance(field["default"], dict):
        assert found.get("default", field["default"]) == field["default"], at
    if "properties" in field:
        assert set(found["properties"]) == set(field["properties"]), at
        for name, inner in field["properties"].items():
            _compare_field(found["properties"][name], _resolved(inner, whole), whole, f"{at}.{name}")


def _resolved(field: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without references and without the `null` of an optional field."""
    options = [one for one in field.get("anyOf", []) if one.get("type") != "null"]
    chosen = {**field, **options[0]} if options else field
    if "$ref" in chosen:
        chosen = {**whole["$defs"][chosen["$ref"].rsplit("/", 1)[-1]], **chosen}
    return chosen


def test_crd_and_models_say_the_same_of_the_spec() -> None:
    compare(Spec, SCHEMA["properties"]["spec"], "spec")


def test_crd_knows_every_phase_and_requires_a_spec() -> None:
    assert SCHEMA["properties"]["status"]["properties"]["phase"]["enum"] == [phase.value for phase in Phase]
    assert SCHEMA["required"] == ["spec"]
    assert SCHEMA["properties"]["status"]["default"] == {"observedGeneration": -1}


def test_spec_the_operator_does_not_know_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"spec\.newField: .*CRD"):
        an_object(newField=1)


def test_a_created_again_object_is_another_run_and_jobs_are_named_by_attempt() -> None:
    assert run_id_of("u-1") == run_id_of("u-1") != run_id_of("u-2")
    assert job_name("shop", 3) == "shop-a3"


def test_job_carries_names_and_never_values_and_is_fit_for_a_restricted_namespace() -> None:
    run = an_object(
        secretRefs=[{"name": "warehouse", "keys": ["warehouse-credentials"]}, {"name": "more", "env": True}],
        budget={"maxTokens": 1000, "maxDurationSeconds": 600},
        areas=["trends", "anomalies"],
    )
    job = build_job(run, project_id="p", attempt=2, replay=True, settings=SETTINGS)
    pod = job["spec"]["template"]["spec"]
    [agent] = pod["containers"]
    assert agent["args"] == [
        *("--project-id", "p", "--run-id", run.run_id, "--attempt", "2", "--areas", "trends,anomalies"),
        *("--max-tokens", "1000", "--resume"),
    ]
    assert agent["envFrom"] == [
        {"secretRef": {"name": "assay"}},
        {"secretRef": {"name": "more", "optional": False}},
    ]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert agent["securityContext"]["readOnlyRootFilesystem"] is True
    assert agent["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["activeDeadlineSeconds"] == 600 + 900 + 3600
    rule = job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]
    assert rule["operator"] == "In"
    assert set(rule["values"]) == {*CONTRACT, 13}
    assert 143 not in rule["values"]
    assert "suspend" not in job["spec"]


def test_queued_job_begins_suspended_with_the_labels_of_its_queue() -> None:
    job = build_job(
        an_object(queueName="team-a", priorityClassName="low"), project_id="p", attempt=1, replay=False, settings=SETTINGS
    )  # fmt: skip
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "low"


def test_profile_gives_what_the_run_does_not_say_and_an_unknown_one_is_named() -> None:
    big = PodPatch.model_validate(
        {"resources": {"limits": {"memory": "8Gi"}}, "nodeSelector": {"pool": "big"}, "labels": {"a": "1"}}
    )
    settings = JobSettings(image="assay-agent:1", profiles={"big": big})
    run = an_object(profile="big", podPatch={"nodeSelector": {"pool": "mine"}, "labels": {"b": "2"}})
    job = build_job(run, project_id="p", attempt=1, replay=False, settings=settings)
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"] == {"limits": {"memory": "8Gi"}}
    assert pod["nodeSelector"] == {"pool": "mine"}
    assert {"a": "1", "b": "2"}.items() <= job["spec"]["template"]["metadata"]["labels"].items()
    with pytest.raises(ConfigError, match=r"spec\.profile: .*'huge'; it has: big"):
        build_job(an_object(profile="huge"), project_id="p", attempt=1, replay=False, settings=settings)


def test_installation_gives_a_queue_to_runs_that_name_none() -> None:
    settings = JobSettings(image="assay-agent:1", queue_name="shared")
    for run, wanted in ((an_object(), "shared"), (an_object(queueName="own"), "own")):
        job = build_job(run, project_id="p", attempt=1, replay=False, settings=settings)
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == wanted
        assert job["spec"]["suspend"] is True


def seen(status: str = "running", **more: Any) -> Observed:
    run = DiscoveryRun(
        id="r", project_id="p", attempt=1, status=RunStatus(status), started_at=NOW, updated_at=NOW, owner="pod"
    )  # fmt: skip
    return Observed(now=NOW, asked=Asked(), run=run, **more)


def test_same_observation_gives_the_same_status_and_times_stay() -> None:
    first = seen(finding=Going(phase="Running"), job_created=True, job_there=True, job_live=True)
    before = status_of(an_object(), first, decide(first))
    later = Observed(
        now=NOW + timedelta(minutes=5), asked=first.asked, run=first.run, finding=first.finding,
        job_created=True, job_there=True, job_live=True,
    )  # fmt: skip
    assert status_of(an_object(before), later, decide(later)) == before
    assert before["phase"] == "Running"
    assert {one["type"]: one["status"] for one in before["conditions"]}["Reconciling"] == "True"


@pytest.mark.parametrize("status", [status.value for status in RunStatus])
def test_kstatus_is_never_contradicted(status: str) -> None:
    """At most one of Ready, Reconciling and Stalled is true, and each carries the observed generation."""
    before = seen(status, finding=Going(phase="Running"))
    conditions = status_of(an_object(), before, decide(before))["conditions"]
    truths = {one["type"]: one["status"] for one in conditions}
    assert sum(truths[kind] == "True" for kind in ("Ready", "Reconciling", "Stalled")) <= 1
    assert {one["observedGeneration"] for one in conditions} == {3}


def test_retries_are_counted_since_a_person_last_asked() -> None:
    def began(reason: str, attempt: int) -> RunLifecycleEvent:
        return RunLifecycleEvent(status=RunStatus.PENDING, at=NOW, reason=reason, attempt=attempt)

    reasons = ["first", "retry", "retry", "resume", "retry", "continue"]
    run = DiscoveryRun(
        id="r", project_id="p", started_at=NOW, updated_at=NOW,
        lifecycle=[began(reason, number) for number, reason in enumerate(reasons, 1)],
    )  # fmt: skip
    assert auto_retries(run) == 1
