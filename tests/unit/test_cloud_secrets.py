"""Names of secrets at clouds, pauses between tries, and what a failure means: without a network."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_agent.adapters import aws_secrets, gcp_secrets
from assay_agent.adapters.cloud_secrets import Patience, in_one_line, seconds_of, text_of
from assay_agent.ports import SecretSettings
from assay_core.errors import AssayError, ConfigError, TransientError

PARTS = st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True)
KEYS = st.from_regex(r"[a-z0-9][A-Za-z0-9_-]{0,6}", fullmatch=True)
NAMES = [gcp_secrets.name_of, aws_secrets.name_of]
WHERE = "the secret a in b"


def named(name_of: Callable[[str, str, str], str], parts: tuple[str, str, str]) -> str | None:
    try:
        return name_of(*parts)
    except ConfigError:
        return None


def test_name_says_namespace_project_and_key() -> None:
    assert gcp_secrets.name_of("assay", "shop-eu", "llm-api-key") == "assay__shop-eu__llm-api-key"
    assert aws_secrets.name_of("assay", "shop.eu", "llm-api-key") == "assay/shop.eu/llm-api-key"


@pytest.mark.parametrize("name_of", NAMES)
@given(one=st.tuples(PARTS, PARTS, KEYS), other=st.tuples(PARTS, PARTS, KEYS))
def test_no_two_secrets_share_a_name(
    name_of: Callable[[str, str, str], str],
    one: tuple[str, str, str],
    other: tuple[str, str, str],
) -> None:
    name = named(name_of, one)
    if name is not None and name == named(name_of, other):
        assert one == other


@pytest.mark.parametrize("project_id", ["a__b", "_a", "a_", "a.b", "a/b", "", "größe", "a b", "a\n"])
def test_project_that_google_cannot_name_is_said(project_id: str) -> None:
    with pytest.raises(
        ConfigError, match=r"the project's id '.*' cannot be part of a secret's name at Google"
    ):
        gcp_secrets.name_of("assay", project_id, "llm-api-key")


def test_namespace_that_a_cloud_cannot_name_is_said() -> None:
    with pytest.raises(ConfigError, match=r"SECRET_NAMESPACE 'as\.say'"):
        gcp_secrets.name_of("as.say", "p", "llm-api-key")
    with pytest.raises(ConfigError, match="the project's id 'a/b' cannot be part of a secret's name at AWS"):
        aws_secrets.name_of("assay", "a/b", "llm-api-key")


def test_pauses_double_are_spread_and_end_at_the_cap() -> None:
    patience = Patience(backoff_s=1.0, pause_cap_s=5.0)
    assert [patience.pause_s(n, asked_s=None, spread=0.5) for n in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 5.0]
    assert patience.pause_s(1, asked_s=None, spread=0.0) == 0.75
    assert patience.pause_s(1, asked_s=3.0, spread=0.5) == 3.0
    assert patience.pause_s(1, asked_s=600.0, spread=0.5) == 5.0


def test_value_is_text_of_bounded_length() -> None:
    assert text_of(b"key\r\n", name="a") == "key"
    assert text_of(b"\n", name="a") is None
    with pytest.raises(ConfigError, match="a is not text"):
        text_of(b"\xff\xfe", name="a")
    with pytest.raises(ConfigError, match="longer than"):
        text_of(b"x" * 100_001, name="a")


def test_what_a_cloud_says_is_one_short_line() -> None:
    assert in_one_line("a\n  b") == "a b"
    assert len(in_one_line("x" * 1_000)) == 200
    assert (seconds_of("7"), seconds_of("Thu, 03 Dec 2026 07:00:00 GMT"), seconds_of(None)) == (
        7.0,
        None,
        None,
    )


def google(status: int, code: str = "", message: str = "It is so.") -> AssayError:
    return gcp_secrets.failure(status, {"status": code, "message": message}, where=WHERE, user="u")


def amazon(code: str, status: int = 400, action: str = "GetSecretValue") -> AssayError:
    response = {
        "Error": {"Code": code, "Message": "It is so."},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return aws_secrets.failure(response, action=action, where=WHERE)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (google(401), ConfigError, "does not take the credential of u"),
        (google(403), ConfigError, "u may not read the secret a in b"),
        (google(400, "FAILED_PRECONDITION"), ConfigError, "newest version enabled"),
        (google(404), ConfigError, "SECRET_GCP_ENDPOINT"),
        (google(302), ConfigError, "SECRET_GCP_ENDPOINT"),
        (google(429), TransientError, "busy"),
        (google(503), TransientError, "busy"),
        (amazon("UnrecognizedClientException"), ConfigError, "does not take the credential"),
        (amazon("ExpiredTokenException"), ConfigError, "does not take the credential"),
        (
            amazon("AccessDenied", 403, "AssumeRoleWithWebIdentity"),
            ConfigError,
            "at AssumeRoleWithWebIdentity",
        ),
        (amazon("AccessDeniedException"), ConfigError, "may not be read"),
        (amazon("DecryptionFailure"), ConfigError, "kms:Decrypt"),
        (amazon("InvalidRequestException"), ConfigError, "marked for deletion"),
        (amazon("ValidationException"), ConfigError, "cannot be read"),
        (amazon("ThrottlingException"), TransientError, "busy"),
        (amazon("InternalServiceError", 500), TransientError, "busy"),
        (amazon("", 502), TransientError, "busy"),
    ],
)
def test_failure_says_who_acts_next(error: AssayError, kind: type[AssayError], words: str) -> None:
    assert isinstance(error, kind)
    assert words in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("package", "open_provider", "extra"),
    [
        ("google.auth", gcp_secrets.open_provider, "gcp-secrets"),
        ("google.auth.transport.requests", gcp_secrets.open_provider, "gcp-secrets"),
        ("botocore.session", aws_secrets.open_provider, "aws-secrets"),
    ],
)
def test_package_that_is_not_there_is_told_by_its_extra(
    monkeypatch: pytest.MonkeyPatch, package: str, open_provider: Callable[[SecretSettings], Any], extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=rf"install assay\[{extra}\]"):
        open_provider(SecretSettings())


@pytest.mark.parametrize("endpoint", ["http://elsewhere.example", "ftp://127.0.0.1", "elsewhere", "https://"])
def test_secret_is_asked_for_over_tls_only(endpoint: str) -> None:
    with pytest.raises(ConfigError, match="SECRET_GCP_ENDPOINT must be an address"):
        gcp_secrets.open_provider(SecretSettings(config={"gcp_endpoint": endpoint}))
