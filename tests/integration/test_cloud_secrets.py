"""Secret managers of clouds that fail, over real HTTP: what is missing, forbidden and out of reach are told apart, in one line."""

from __future__ import annotations

import base64
import logging
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assay_agent import plugins
from assay_agent.adapters.aws_secrets import AwsSecrets
from assay_agent.adapters.cloud_secrets import Patience
from assay_agent.adapters.environment_secrets import WithEnvironment
from assay_agent.adapters.gcp_secrets import GcpSecrets
from assay_agent.ports import SecretProvider
from assay_agent.settings import AgentSettings
from assay_agent.wiring import open_secrets
from assay_core.errors import AssayError, ConfigError, TransientError
from tests.secret_server import (
    ACCOUNT,
    GOOGLE_PROJECT,
    REGION,
    Answer,
    SecretServer,
    aws_error,
    google_error,
    secret_server,
    signed_out_of_aws,
)

VALUE = "sk-marked-41d7c0b2e95f6a38"
SOON = Patience(connect_s=1.0, read_s=0.3, backoff_s=0.1)
ASKED = {"project_id": "p", "key": "llm-api-key"}
NAMES = {"gcp": "assay__p__llm-api-key", "aws": "assay/p/llm-api-key"}


class Naps:
    """Remembers the pauses instead of taking them."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SecretServer]:
    with secret_server() as opened:
        opened.sign_in(monkeypatch, tmp_path)
        yield opened


@pytest.fixture(params=["gcp", "aws"])
def cloud(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(cloud: str, server: SecretServer, naps: Naps | None = None, **changed: Any) -> SecretProvider:
    given: dict[str, Any] = {
        "namespace": "assay",
        "patience": SOON,
        "sleep": naps or Naps(),
        "spread": lambda: 0.5,
    }
    if cloud == "gcp":
        google = {"google_project": GOOGLE_PROJECT, "endpoint": server.url}
        return GcpSecrets(**given | google | changed)
    return AwsSecrets(**given | {"region": REGION} | changed)


def refused(provider: SecretProvider, kind: type[AssayError]) -> str:
    """What is said, which is one line without the value."""
    with pytest.raises(kind) as caught:
        provider.get(**ASKED)
    said = str(caught.value)
    assert VALUE not in said
    assert "\n" not in said
    if isinstance(caught.value, TransientError):
        assert caught.value.dependency == "secrets"
    return said


def busy(cloud: str, **fields: Any) -> Answer:
    body = (
        google_error(429, "RESOURCE_EXHAUSTED", "Quota exceeded.")
        if cloud == "gcp"
        else aws_error("ThrottlingException", "Rate exceeded.")
    )
    return Answer(status=429 if cloud == "gcp" else 400, body=body, **fields)


def test_newest_version_is_the_secret(cloud: str, server: SecretServer) -> None:
    server.kept[NAMES[cloud]] = [b"older", VALUE.encode() + b"\n"]
    provider = opened(cloud, server)
    assert provider.get(**ASKED) == VALUE
    server.kept[NAMES[cloud]].append(b"rotated-while-it-ran")
    assert provider.get(**ASKED) == "rotated-while-it-ran"
    assert len(server.calls) == 2


def test_what_is_missing_is_asked_for_once_and_is_none(cloud: str, server: SecretServer) -> None:
    naps = Naps()
    assert opened(cloud, server, naps).get(**ASKED) is None
    assert (len(server.calls), naps.taken) == (1, [])


def test_secret_without_a_value_is_none(cloud: str, server: SecretServer) -> None:
    server.kept[NAMES[cloud]] = [b""]
    assert opened(cloud, server).get(**ASKED) is None


def test_value_that_is_no_text_is_said(cloud: str, server: SecretServer) -> None:
    server.kept[NAMES[cloud]] = [b"\xff\xfe\x00"]
    assert "is not text" in refused(opened(cloud, server), ConfigError)


def test_what_is_forbidden_names_who_where_and_what_to_grant(cloud: str, server: SecretServer) -> None:
    denied = "Permission denied on resource\n(or it may not exist)."
    body = google_error(403, "PERMISSION_DENIED", denied)
    if cloud == "aws":
        body = aws_error("AccessDeniedException", denied)
    server.scripted.append(Answer(status=403 if cloud == "gcp" else 400, body=body))
    said = refused(opened(cloud, server), ConfigError)
    assert NAMES[cloud] in said
    words = (
        ("secretmanager.secretAccessor", ACCOUNT) if cloud == "gcp" else ("secretsmanager:GetSecretValue",)
    )
    assert [word for word in words if word not in said] == []
    assert len(server.calls) == 1


def test_credential_that_is_not_taken_is_said(cloud: str, server: SecretServer) -> None:
    body = google_error(401, "UNAUTHENTICATED", "Request had invalid credentials.")
    if cloud == "aws":
        body = aws_error("ExpiredTokenException", "The security token is expired.")
    server.scripted.append(Answer(status=401 if cloud == "gcp" else 400, body=body))
    assert "does not take the credential" in refused(opened(cloud, server), ConfigError)


def test_busy_cloud_is_asked_again_after_the_pause_it_names(cloud: str, server: SecretServer) -> None:
    server.kept[NAMES[cloud]] = [VALUE.encode()]
    server.scripted += [busy(cloud, headers={"Retry-After": "3"}), Answer(status=503, body=b"<html>")]
    naps = Naps()
    assert opened(cloud, server, naps).get(**ASKED) == VALUE
    assert naps.taken == [3.0, 0.2]


def test_busy_cloud_is_given_up_after_three_tries(cloud: str, server: SecretServer) -> None:
    server.scripted += [busy(cloud) for _ in range(9)]
    naps = Naps()
    assert "is busy" in refused(opened(cloud, server, naps), TransientError)
    assert (len(server.calls), naps.taken) == (3, [0.1, 0.2])


@pytest.mark.parametrize(
    "answer",
    [
        Answer(stall_s=0.8),
        Answer(body={"payload": {"data": base64.b64encode(VALUE.encode()).decode()}}, cut=9),
        Answer(body={"SecretString": VALUE}, cut=9),
        Answer(body=b"<html>welcome to the hotel's network</html>"),
    ],
    ids=["silent", "cut", "cut too", "of another kind"],
)
def test_answer_that_is_none_is_asked_for_again(cloud: str, server: SecretServer, answer: Answer) -> None:
    server.kept[NAMES[cloud]] = [VALUE.encode()]
    server.scripted.append(answer)
    assert opened(cloud, server).get(**ASKED) == VALUE
    assert len(server.calls) == 2
    server.scripted += [answer] * 3
    refused(opened(cloud, server), TransientError)


def test_cloud_that_is_not_there_is_said(
    cloud: str, server: SecretServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", nobody)
    naps = Naps()
    provider = opened(cloud, server, naps, **({"endpoint": nobody} if cloud == "gcp" else {}))
    assert "is not reachable" in refused(provider, TransientError)
    assert len(naps.taken) == 2


def test_secret_that_nobody_can_read_now_is_said(cloud: str, server: SecretServer) -> None:
    body = google_error(400, "FAILED_PRECONDITION", "Secret Version [7] is in DISABLED state.")
    if cloud == "aws":
        body = aws_error("InvalidRequestException", "It was marked for deletion.")
    server.scripted.append(Answer(status=400, body=body))
    said = refused(opened(cloud, server), ConfigError)
    assert ("DISABLED" if cloud == "gcp" else "marked for deletion") in said


def test_google_that_refuses_the_sign_in_is_a_persons_turn(server: SecretServer) -> None:
    invalid = {"error": "invalid_grant", "error_description": "Invalid grant: account not found"}
    server.signing_in.append(Answer(status=400, body=invalid))
    said = refused(opened("gcp", server), ConfigError)
    assert f"does not sign {ACCOUNT} in: invalid_grant" in said
    assert server.calls == []


def test_google_whose_sign_in_is_out_of_reach_is_times_turn(server: SecretServer) -> None:
    server.signing_in.append(Answer(body={}, stall_s=0.8))
    assert "sign-in is not reachable" in refused(opened("gcp", server), TransientError)


def test_one_sign_in_serves_many_look_ups(server: SecretServer) -> None:
    provider = opened("gcp", server)
    for _ in range(3):
        provider.get(**ASKED)
    assert server.tokens == 1


def test_machine_that_is_not_signed_in_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(ConfigError, match="no Google credential"):
        GcpSecrets(namespace="assay", google_project=GOOGLE_PROJECT)
    signed_out_of_aws(monkeypatch)
    said = refused(AwsSecrets(namespace="assay", patience=SOON), ConfigError)
    assert "no AWS credential" in said


def test_damaged_google_key_is_said_without_any_of_it(
    server: SecretServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "key.json").write_text(f'{{"type": "service_account", "private_key": "{VALUE}"}}')
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    with pytest.raises(ConfigError, match="no Google credential that it can use") as caught:
        opened("gcp", server)
    assert VALUE not in str(caught.value)


def test_google_project_is_the_credentials_where_none_is_set(server: SecretServer) -> None:
    server.kept[NAMES["gcp"]] = [VALUE.encode()]
    assert opened("gcp", server, google_project="").get(**ASKED) == VALUE


def test_region_is_the_installations_then_the_machines_then_the_first(
    server: SecretServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.kept[NAMES["aws"]] = [VALUE.encode()]
    said = refused(opened("aws", server, region=""), ConfigError)
    assert "UnrecognizedClientException" in said  # us-east-1, where this server is not
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    assert opened("aws", server, region="").get(**ASKED) == VALUE
    assert opened("aws", server).get(**ASKED) == VALUE


def test_clients_debug_lines_do_not_hold_the_value(
    cloud: str, server: SecretServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.kept[NAMES[cloud]] = [VALUE.encode()]
    with caplog.at_level(logging.DEBUG):
        assert opened(cloud, server).get(**ASKED) == VALUE
    assert VALUE not in caplog.text
    assert base64.b64encode(VALUE.encode()).decode() not in caplog.text


def test_settings_choose_the_provider_and_the_environment_fills_in(
    cloud: str, server: SecretServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_PROVIDER", cloud)
    monkeypatch.setenv("SECRET_NAMESPACE", "other")
    monkeypatch.setenv("SECRET_GCP_PROJECT_ID", GOOGLE_PROJECT)
    monkeypatch.setenv("SECRET_GCP_ENDPOINT", server.url)
    monkeypatch.setenv("SECRET_AWS_REGION", REGION)
    monkeypatch.setenv("WAREHOUSE_CREDENTIALS", "from-the-shell-0123")
    server.kept[NAMES[cloud].replace("assay", "other", 1)] = [VALUE.encode()]
    secrets = open_secrets(AgentSettings.load())
    assert secrets.get(**ASKED) == VALUE
    assert secrets.get(project_id="p", key="warehouse-credentials") == "from-the-shell-0123"
    assert cloud in plugins.available("secret_providers")


def test_cloud_out_of_reach_is_not_taken_for_a_secret_that_is_missing(
    cloud: str, server: SecretServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "an-older-key-from-the-shell")
    server.scripted += [busy(cloud) for _ in range(3)]
    refused(WithEnvironment(opened(cloud, server)), TransientError)
