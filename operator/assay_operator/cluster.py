"""The Kubernetes API as the operator writes and lists it: plain bodies in, plain bodies out. The one importer of its client.

Reading goes through the watch; what is here is the relist at the start, own writes, and events that are asked for. A conflict, an
object that is gone and one that exists already are answers, not errors; anything else is a `TransientError`, or a `Forbidden` where
the API server says no.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTResponse

from assay_core.errors import AssayError, ConfigError, TransientError
from assay_operator import metrics
from assay_operator.resource import GROUP, PLURAL, RUN_UID_LABEL, VERSION

PAGE = 500
_TIMEOUT_S = (5, 30)
"""Seconds to connect, and to read."""

Body = dict[str, Any]
Wrote = Callable[[str, Mapping[str, Any]], None]


class Gone(AssayError):
    """The object is not there, or it is another one by now."""


class Conflict(AssayError):
    """The object has changed, or one of that name exists."""


class Forbidden(AssayError):
    """The API server does not let us; the text is its own."""


class Cluster:
    """One client. Safe between threads. `namespace` limits everything to one; None is the whole cluster."""

    def __init__(self, api: client.ApiClient, *, namespace: str | None, wrote: Wrote | None = None) -> None:
        self._api = api
        self.namespace = namespace
        self._wrote = wrote or (lambda _resource, _body: None)

    @classmethod
    def connect(cls, *, namespace: str | None, threads: int, wrote: Wrote | None = None) -> Cluster:
        """By the pod's service account, or by the kubeconfig of the environment. `wrote` hears of own writes that a watch shows."""
        try:
            config.load_incluster_config()
        except config.ConfigException:
            try:
                config.load_kube_config()
            except config.ConfigException as error:
                raise ConfigError(f"no way to a Kubernetes API: {error}; set KUBECONFIG") from None
        settings = client.Configuration.get_default_copy()
        settings.connection_pool_maxsize = threads + 4
        settings.retries = False
        return cls(client.ApiClient(settings), namespace=namespace, wrote=wrote)

    @classmethod
    def of_user(cls, *, kubeconfig: str | None, context: str | None) -> tuple[Cluster, str]:
        """As kubectl would reach it, and the namespace it would take."""
        settings = client.Configuration()
        try:
            config.load_kube_config(kubeconfig, context=context, client_configuration=settings)
            known, active = config.list_kube_config_contexts(kubeconfig)
        except (config.ConfigException, OSError, TypeError) as error:
            raise ConfigError(
                f"no way to a Kubernetes API: {error}; set KUBECONFIG or --kubeconfig"
            ) from None
        settings.retries = False
        chosen = next((one for one in known if one["name"] == context), active)
        return cls(client.ApiClient(settings), namespace=None), str(
            chosen["context"].get("namespace") or "default"
        )

    def identity(self) -> str:
        """What tells clusters apart: the uid of kube-system, or of the own namespace where no more may be read."""
        try:
            return self._uid_of("kube-system")
        except Forbidden:
            if self.namespace is None:
                raise
            return self._uid_of(self.namespace)

    # ------------------------------------------------------------------------------------------------ listing

    def runs(self) -> Iterator[Body]:
        yield from self._pages(f"/apis/{GROUP}/{VERSION}{self._scope()}/{PLURAL}")

    def jobs(self) -> Iterator[Body]:
        yield from self._pages(f"/apis/batch/v1{self._scope()}/jobs", labelSelector=RUN_UID_LABEL)

    def pods(self) -> Iterator[Body]:
        yield from self._pages(f"/api/v1{self._scope()}/pods", labelSelector=RUN_UID_LABEL)

    def runs_of(self, namespace: str) -> Iterator[Body]:
        yield from self._pages(f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}")

    def run(self, namespace: str, name: str) -> Body:
        return self._call("GET", self._run_path(namespace, name))

    def pods_of(self, namespace: str, *, labels: str) -> list[Body]:
        return list(self._pages(f"/api/v1/namespaces/{namespace}/pods", labelSelector=labels))

    def log(self, namespace: str, pod: str, container: str, *, follow: bool) -> Iterator[bytes]:
        """What a container has said, as it comes; with `follow` until it ends."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        query = {"container": container, "follow": str(follow).lower()}
        answer = self._ask("GET", path, query=query, timeout_s=(5, None) if follow else _TIMEOUT_S)
        if not 200 <= answer.status <= 299:
            raise _meaning(answer.status, answer.read().decode(errors="replace")[:500])
        yield from answer.response.stream(65_536)

    def job(self, namespace: str, name: str) -> Body | None:
        try:
            return self._call("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
        except Gone:
            return None

    def events(self, namespace: str, uid: str) -> list[Body]:
        """Events about one object, a page at most."""
        found = self._call(
            "GET",
            f"/api/v1/namespaces/{namespace}/events",
            query={"fieldSelector": f"involvedObject.uid={uid}", "limit": PAGE},
        )
        return list(found.get("items") or [])

    # ------------------------------------------------------------------------------------------------ writing

    def create_job(self, body: Mapping[str, Any]) -> Body:
        """`Conflict` when one of that name exists."""
        namespace = body["metadata"]["namespace"]
        made = self._call("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", body=body)
        self._wrote("jobs", made)
        return made

    def delete_job(self, namespace: str, name: str, *, uid: str) -> None:
        """In the foreground: the Job goes when its pods are gone. One that is gone already is no error."""
        path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"
        self._delete(path, uid=uid, propagation="Foreground")

    def delete_pod(self, namespace: str, name: str, *, uid: str) -> None:
        self._delete(f"/api/v1/namespaces/{namespace}/pods/{name}", uid=uid, propagation="Background")

    def delete_run(self, namespace: str, name: str, *, uid: str) -> None:
        self._delete(self._run_path(namespace, name), uid=uid, propagation="Background")

    def write_status(self, body: Mapping[str, Any], status: Mapping[str, Any]) -> Body:
        """Replace the status of exactly this version of a run; `Conflict` when there is a newer one."""
        metadata = body["metadata"]
        path = f"{self._run_path(metadata['namespace'], metadata['name'])}/status"
        made = self._call("PUT", path, body={**body, "status": status})
        self._wrote(PLURAL, made)
        return made

    def set_finalizers(self, body: Mapping[str, Any], finalizers: list[str]) -> Body:
        """Replace the finalizers of exactly this version of a run; `Conflict` when there is a newer one."""
        metadata = body["metadata"]
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
            {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
            {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
        ]
        path = self._run_path(metadata["namespace"], metadata["name"])
        return self._call("PATCH", path, body=patch, content="application/json-patch+json")

    def annotate(self, namespace: str, name: str, annotations: Mapping[str, str]) -> Body:
        """Set annotations of a run; its spec is its owner's."""
        path = self._run_path(namespace, name)
        patch = {"metadata": {"annotations": dict(annotations)}}
        return self._call("PATCH", path, body=patch, content="application/merge-patch+json")

    def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        """One of the same name has said the same already."""
        try:
            self._call("POST", f"/api/v1/namespaces/{namespace}/events", body=body)
        except Conflict:
            return

    def replicas(self, namespace: str, name: str) -> int:
        """Pods that a Deployment has."""
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"
        return int((self._call("GET", path).get("status") or {}).get("replicas") or 0)

    def scale_to_zero(self, namespace: str, name: str) -> None:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"
        self._call("PATCH", path, body={"spec": {"replicas": 0}}, content="application/merge-patch+json")

    # ------------------------------------------------------------------------------------------------ inside

    def _uid_of(self, namespace: str) -> str:
        return str(self._call("GET", f"/api/v1/namespaces/{namespace}")["metadata"]["uid"])

    def _scope(self) -> str:
        return f"/namespaces/{self.namespace}" if self.namespace else ""

    @staticmethod
    def _run_path(namespace: str, name: str) -> str:
        return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}/{name}"

    def _delete(self, path: str, *, uid: str, propagation: str) -> None:
        body = {"propagationPolicy": propagation, "preconditions": {"uid": uid}}
        try:
            self._call("DELETE", path, body=body)
        except (Gone, Conflict):
            return  # gone, or one of the same name that is not meant

    def _pages(self, path: str, **query: Any) -> Iterator[Body]:
        token: str | None = None
        while True:  # ends: each page comes with the token of the next, the last with none
            found = self._call(
                "GET", path, query={**query, "limit": PAGE, **({"continue": token} if token else {})}
            )
            for item in found.get("items") or []:
                yield {"apiVersion": found.get("apiVersion"), **item}
            token = (found.get("metadata") or {}).get("continue")
            if not token:
                return

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content: str = "application/json",
    ) -> Body:
        try:
            answer = self._ask(method, path, query=query, body=body, content=content)
            found: Body = json.loads(answer.read() or b"{}")
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise _unreachable(error) from error
        metrics.API_REQUESTS.labels(verb=method, code=answer.status).inc()
        if not 200 <= answer.status <= 299:
            raise _meaning(answer.status, str(found.get("message") or answer.reason)[:500])
        return found

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content: str = "application/json",
        timeout_s: tuple[float, float | None] = _TIMEOUT_S,
    ) -> RESTResponse:
        try:
            request = self._api.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params={"Accept": "application/json", "Content-Type": content},
                body=body,
                auth_settings=["BearerToken"],
            )
            answer: RESTResponse = self._api.call_api(*request, _request_timeout=timeout_s)
        except (ApiException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise _unreachable(error) from error
        return answer


def _unreachable(error: Exception) -> TransientError:
    return TransientError(
        f"the Kubernetes API is not reachable: {type(error).__name__}", dependency="kubernetes"
    )


def _meaning(status: int, text: str) -> AssayError:
    match status:
        case 404 | 410:
            return Gone(text)
        case 409:
            return Conflict(text)
        case 400 | 401 | 403 | 422:
            return Forbidden(text)
        case _:
            return TransientError(f"the Kubernetes API answered {status}: {text}", dependency="kubernetes")
