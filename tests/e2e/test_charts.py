"""The charts as the real helm installs, upgrades and uninstalls them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.conftest import SECRET, a_namespace, a_secret, values
from tests.e2e.installation import CHARTS, Installation
from tests.e2e.kubernetes import KubectlError, until
from tests.e2e.tenant import Tenant

PLURAL = "discoveryruns.assay.dev"


@contextmanager
def own_operator(tenant: Tenant) -> Iterator[Installation]:
    """An operator in the tenant's namespace and for it alone; that of the whole cluster is away."""
    made = Installation(kubernetes=tenant.kubernetes, namespace=tenant.namespace, release="assay-own")
    tenant.operator.stop()
    try:
        made.install(values(scope="namespace"))
        yield made
    finally:
        tenant.operator.start()


def may(tenant: Tenant, account: str, verb: str, resource: str, *, namespace: str) -> bool:
    try:
        said = tenant.kubernetes.kubectl("auth", "can-i", verb, resource, "-n", namespace, f"--as={account}")
    except KubectlError as error:
        said = str(error)
    return said.startswith("yes")


def test_install_for_one_tenant_sees_its_namespace_alone_and_frees_its_runs_when_it_goes(
    tenant: Tenant,
) -> None:
    elsewhere = f"{tenant.namespace}-other"
    tenant.kubernetes.apply(a_namespace(elsewhere), a_secret(elsewhere, tenant.beside))
    with own_operator(tenant) as own:
        tenant.apply()
        foreign = tenant.manifest()
        foreign["metadata"]["namespace"] = elsewhere
        tenant.kubernetes.apply(foreign)
        tenant.phase("Succeeded")
        found = tenant.kubernetes.get("discoveryrun", "shop", namespace=elsewhere)
        assert "phase" not in found["status"]
        account = f"system:serviceaccount:{tenant.namespace}:assay-own"
        for verb, resource in (("list", PLURAL), ("create", "jobs"), ("list", "pods"), ("create", "events")):
            assert may(tenant, account, verb, resource, namespace=tenant.namespace), (verb, resource)
            assert not may(tenant, account, verb, resource, namespace=elsewhere), (verb, resource)
        for verb, resource in (("get", "secrets"), ("list", "secrets"), ("create", "pods"), ("update", PLURAL), ("get", "configmaps"), ("create", "pods/exec")):  # fmt: skip
            assert not may(tenant, account, verb, resource, namespace=tenant.namespace), (verb, resource)
        assert tenant.run()["metadata"]["finalizers"] == ["assay.dev/purge"]
        own.uninstall()
        assert tenant.run()["metadata"].get("finalizers") is None
        assert tenant.kubernetes.list("deployments,jobs", namespace=tenant.namespace, labels="app.kubernetes.io/instance=assay-own") == []  # fmt: skip
        assert tenant.kubernetes.list("roles,rolebindings,serviceaccounts,networkpolicies", namespace=tenant.namespace, labels="app.kubernetes.io/instance=assay-own") == []  # fmt: skip
        tenant.kubernetes.delete("discoveryrun", "shop", namespace=tenant.namespace, wait=True)
    # The one for the whole cluster takes over what no other serves.
    until(
        lambda: (
            tenant.kubernetes.get("discoveryrun", "shop", namespace=elsewhere)["status"].get("phase")
            == "Succeeded"
        ),
        what="the run of the other namespace",
        limit_s=120,
    )
    tenant.kubernetes.delete("discoveryrun", "shop", namespace=elsewhere, wait=True)
    tenant.kubernetes.kubectl("delete", "namespace", elsewhere, "--wait=false")


def test_run_that_goes_on_during_an_upgrade_finishes_under_the_next_revision(tenant: Tenant) -> None:
    tenant.apply(slow=True, maxSteps=16)
    tenant.at_step(1)
    before = {pod["metadata"]["uid"] for pod in tenant.operator.pods()}
    said = values()
    tenant.operator.install({**said, "operator": {**said["operator"], "workers": 4}})
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in tenant.operator.pods())
    assert tenant.run()["status"]["phase"] == "Running"
    done = tenant.phase("Succeeded")["status"]
    assert done["attempt"] == 1
    tenant.operator.helm("rollback", tenant.operator.release, "-n", tenant.operator.namespace, "--wait")
    tenant.apply("next")
    tenant.phase("Succeeded", name="next")


def test_wrong_value_is_refused_by_name(tenant: Tenant) -> None:
    own = Installation(kubernetes=tenant.kubernetes, namespace=tenant.namespace, release="wrong")
    try:
        own.install({**values(scope="namespace"), "scoop": "namespace"})
    except AssertionError as error:
        assert "scoop" in str(error)
    else:
        raise AssertionError("it was installed")
    assert tenant.kubernetes.list("deployments", namespace=tenant.namespace) == []


def test_custom_resources_outlive_the_chart_of_their_definition(tenant: Tenant) -> None:
    tenant.apply(suspend=True)
    tenant.phase("Suspended")
    crds = Installation(kubernetes=tenant.kubernetes, namespace="default", release="assay-crds")
    crds.uninstall()
    time.sleep(2)
    assert tenant.run()["status"]["phase"] == "Suspended"
    crds.install({}, chart=CHARTS / "assay-crds")
    assert tenant.run()["spec"]["suspend"] is True
    tenant.patch({"suspend": False})
    tenant.phase("Succeeded")


def test_operator_without_its_secret_says_so_and_begins_once_it_is_there(tenant: Tenant) -> None:
    own = Installation(kubernetes=tenant.kubernetes, namespace=tenant.namespace, release="assay-early")
    tenant.operator.stop()
    try:
        tenant.kubernetes.kubectl("delete", "secret", SECRET, "-n", tenant.namespace)
        own.install(values(scope="namespace"), wait=False)
        until(lambda: "CreateContainerConfigError" in str(own.pods()), what="what the pod waits for")
        tenant.kubernetes.apply(a_secret(tenant.namespace, tenant.beside))
        own.ready()
        tenant.apply()
        tenant.phase("Succeeded")
        own.uninstall()
    finally:
        tenant.operator.start()
