"""Laying secrets into a cloud and taking them out again, with its own client: the fake on loopback or the real one, by where it is."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Protocol

from assay_agent.adapters import aws_secrets, gcp_secrets
from assay_agent.ports import SecretProvider, SecretSettings

_TIMEOUT_S = 30.0


class Cloud(Protocol):
    """`name_of` is how the provider calls a secret there."""

    def opened(self, namespace: str) -> SecretProvider: ...
    def name_of(self, namespace: str, project_id: str, key: str) -> str: ...
    def put(self, name: str, value: bytes) -> None: ...
    def remove(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Google:
    """A Google project, as whoever the machine is signed in as."""

    project: str
    endpoint: str = gcp_secrets.ENDPOINT

    def opened(self, namespace: str) -> SecretProvider:
        config = {"gcp_project_id": self.project, "gcp_endpoint": self.endpoint}
        return gcp_secrets.open_provider(SecretSettings(namespace=namespace, config=config))

    def name_of(self, namespace: str, project_id: str, key: str) -> str:
        return gcp_secrets.name_of(namespace, project_id, key)

    def put(self, name: str, value: bytes) -> None:
        if self._call("POST", f"?secretId={name}", {"replication": {"automatic": {}}}) not in (200, 409):
            raise AssertionError(f"{name} cannot be made")
        version = {"payload": {"data": base64.b64encode(value).decode()}}
        assert self._call("POST", f"/{name}:addVersion", version) == 200

    def remove(self, name: str) -> None:
        assert self._call("DELETE", f"/{name}", None) in (200, 404)

    def _call(self, method: str, rest: str, body: object) -> int:
        import google.auth
        from google.auth.transport.requests import AuthorizedSession

        credentials, _ = google.auth.default(scopes=gcp_secrets.SCOPES)
        session: Any = AuthorizedSession(credentials)  # type: ignore[no-untyped-call]  # google-auth is partly untyped
        with session:
            address = f"{self.endpoint}/v1/projects/{self.project}/secrets{rest}"
            return int(session.request(method, address, json=body, timeout=_TIMEOUT_S).status_code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amazon:
    """A region of an AWS account, as whoever the machine is signed in as."""

    region: str

    def opened(self, namespace: str) -> SecretProvider:
        config = {"aws_region": self.region}
        return aws_secrets.open_provider(SecretSettings(namespace=namespace, config=config))

    def name_of(self, namespace: str, project_id: str, key: str) -> str:
        return aws_secrets.name_of(namespace, project_id, key)

    def put(self, name: str, value: bytes) -> None:
        self._call("create_secret", Name=name, SecretString=value.decode())

    def remove(self, name: str) -> None:
        self._call("delete_secret", SecretId=name, ForceDeleteWithoutRecovery=True)

    def _call(self, action: str, **given: object) -> None:
        import botocore.session

        client = botocore.session.get_session().create_client("secretsmanager", region_name=self.region)
        try:
            getattr(client, action)(**given)
        finally:
            client.close()
