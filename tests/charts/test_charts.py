"""Both charts, rendered by Helm itself for every values file, and held to what Kubernetes and the operator expect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from helm_python import Chart, HelmError, lint
from prometheus_client import REGISTRY

from assay_operator import metrics
from assay_operator.settings import OperatorSettings

ROOT = Path(__file__).parents[2]
CHARTS = ROOT / "charts"
VALUES = sorted((CHARTS / "assay" / "ci").glob("*-values.yaml"))
VERSIONS = ("1.31", "1.33", "1.35", "1.37")
MARKED = ("marked-password", "marked-vector-key", "marked-model-key")
URL = {"stores": {"mongodb": {"url": "mongodb://mongo:27017"}}}


def render(chart: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    with Chart.load(CHARTS / chart) as loaded:
        rendered = loaded.render(values, name="assay", namespace="team")
    texts = [text for path, text in rendered.items() if path.endswith(".yaml")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def of(path: Path) -> list[dict[str, Any]]:
    return render("assay", yaml.safe_load(path.read_text()))


def pods(objects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for one in objects:
        if one["kind"] in ("Deployment", "Job"):
            yield one["spec"]["template"]["spec"]


def test_all_values_files_are_there() -> None:
    assert [path.name for path in VALUES] == [
        "cluster-values.yaml", "plain-values.yaml", "tenant-values.yaml",
    ]  # fmt: skip


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_rendered_is_valid_for_kubernetes(values: Path, version: str) -> None:
    checked = 0
    for one in of(values):
        if "monitoring.coreos.com" in one["apiVersion"]:
            continue  # its schema is Prometheus' own
        kubernetes_validate.validate(one, version, strict=True)
        checked += 1
    assert checked > 4


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_lint_finds_nothing(values: Path) -> None:
    found = lint(CHARTS / "assay", values=yaml.safe_load(values.read_text()), namespace="team")
    assert [one["error"] for one in found["messages"] if one["error"] != "icon is recommended"] == []
    assert (found["total_charts_linted"], found["errors"]) == (1, [])


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_every_pod_is_fit_for_a_restricted_namespace(values: Path) -> None:
    found = list(pods(of(values)))
    assert found
    for pod in found:
        assert pod["securityContext"] == {
            "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"},
        }  # fmt: skip
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_secret_values_stand_in_secrets_only() -> None:
    objects = render("assay", yaml.safe_load((CHARTS / "assay" / "ci" / "tenant-values.yaml").read_text()))
    secrets = json.dumps([one for one in objects if one["kind"] == "Secret"])
    others = json.dumps([one for one in objects if one["kind"] != "Secret"])
    for marked in MARKED:
        assert marked in secrets
        assert marked not in others


def test_tenant_install_asks_for_nothing_outside_of_its_namespace() -> None:
    objects = render("assay", URL)
    assert {one["kind"] for one in objects} & {"ClusterRole", "ClusterRoleBinding", "Namespace"} == set()
    assert {one["metadata"].get("namespace", "team") for one in objects} == {"team"}


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_roles_name_every_verb_and_hold_no_secret(values: Path) -> None:
    rules = [rule for one in of(values) if one["kind"].endswith("Role") for rule in one["rules"]]
    assert rules
    for rule in rules:
        said = json.dumps(rule)
        assert "*" not in said
        assert "secrets" not in rule["resources"]


def test_operator_understands_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = of(CHARTS / "assay" / "ci" / "cluster-values.yaml")
    [deployment] = [one for one in objects if one["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], variable["value"])
    settings = OperatorSettings.load()
    jobs = settings.job_settings()
    assert jobs.environment_secrets == ("assay-stores", "assay-model", "warehouse")
    assert (jobs.queue_name, jobs.service_account, settings.cluster_id) == ("data", "assay-agent", "prod-1")
    assert jobs.profiles["large"].node_selector == {"pool": "batch"}
    assert jobs.limits == {"memory": "2Gi"}
    assert settings.watch_namespace is None
    known = {name.upper() for name in OperatorSettings.model_fields}
    assert {variable["name"] for variable in container["env"]} <= known
    assert "@sha256:" in container["image"]


def test_drain_runs_before_the_uninstall_and_may_do_just_that() -> None:
    hooks = [
        one for one in render("assay", URL) if "helm.sh/hook" in (one["metadata"].get("annotations") or {})
    ]
    assert {one["metadata"]["annotations"]["helm.sh/hook"] for one in hooks} == {"pre-delete"}
    assert sorted(one["kind"] for one in hooks) == [
        "Job", "Role", "Role", "RoleBinding", "RoleBinding", "ServiceAccount",
    ]  # fmt: skip
    [job] = [one for one in hooks if one["kind"] == "Job"]
    assert job["spec"]["activeDeadlineSeconds"] == 300
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ["drain"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"agents": {}}, "additional properties 'agents'"),
    ({"scope": "everything"}, "/scope"),
    ({"operator": {"workers": 0}}, "/operator/workers"),
    ({"operator": {"image": {"digest": "latest"}}}, "/operator/image/digest"),
    ({"agent": {"environment": {"llm provider": "x"}}}, "invalid propertyName 'llm provider'"),
    ({"agent": {"profiles": {"big": {"hostNetwork": True}}}}, "hostNetwork"),
    ({"agent": {"maxDuration": "a day"}}, "/agent/maxDuration"),
    ({"tenants": ["Team A"]}, "/tenants/0"),
    ({"networkPolicy": {"mongodbPort": "27017"}}, "/networkPolicy/mongodbPort"),
    ({"drain": {"timeoutSeconds": 1}}, "/drain/timeoutSeconds"),
]


@pytest.mark.parametrize(("values", "named"), REFUSED, ids=[one[1] for one in REFUSED])
def test_wrong_value_is_refused_by_its_name(values: dict[str, Any], named: str) -> None:
    with Chart.load(CHARTS / "assay") as chart, pytest.raises(HelmError, match=re.escape(named)):
        chart.render({**URL, **values}, name="assay", namespace="team")


@pytest.mark.parametrize(
    ("stores", "said"),
    [
        ({}, "stores.mongodb.url or stores.existingSecret is needed"),
        ({"mongodb": {"url": "mongo:hidden-password@x"}}, "stores.mongodb.url must begin with mongodb://"),
        ({"mongodb": {"url": "mongodb://m"}, "qdrant": {"url": "qdrant:6333"}}, "stores.qdrant.url must begin with http"),
    ],
)  # fmt: skip
def test_stores_are_asked_for_without_repeating_a_secret(stores: dict[str, Any], said: str) -> None:
    with (
        Chart.load(CHARTS / "assay") as chart,
        pytest.raises(HelmError, match=re.escape(said)) as refused,
    ):
        chart.render({"stores": stores}, name="assay", namespace="team")
    assert "hidden-password" not in str(refused.value)


def test_every_metric_of_dashboard_and_alerts_is_served() -> None:
    assert metrics.RUNS is not None
    served = {name for metric in REGISTRY.collect() for name in (metric.name, f"{metric.name}_total")}
    text = json.dumps(of(CHARTS / "assay" / "ci" / "cluster-values.yaml"))
    asked = set(re.findall(r"\bassay_[a-z_]+", text))
    asked = {re.sub(r"_bucket$", "", name) for name in asked} - {"assay_operator"}
    assert len(asked) > 8
    assert asked <= served, asked - served
    [dashboard] = [one for one in of(CHARTS / "assay" / "ci" / "cluster-values.yaml") if "dashboard" in one["metadata"]["name"]]  # fmt: skip
    panels = json.loads(dashboard["data"]["assay.json"])["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 6


def test_crd_chart_keeps_the_resource_and_is_the_one_of_the_repository() -> None:
    objects = render("assay-crds", {})
    [crd] = [one for one in objects if one["kind"] == "CustomResourceDefinition"]
    assert crd == yaml.safe_load((ROOT / "crds" / "discoveryruns.yaml").read_text())
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    roles = {one["metadata"]["name"]: one for one in objects if one["kind"] == "ClusterRole"}
    assert set(roles) == {"assay-view", "assay-edit"}
    assert render("assay-crds", {"aggregateRoles": False}) == [crd]
