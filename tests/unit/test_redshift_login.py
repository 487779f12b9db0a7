"""As whom Redshift is asked: settings, what the host says of itself, and a password of AWS that is asked anew in time."""

from __future__ import annotations

import builtins
from datetime import timedelta
from typing import Any

import pytest

from assay_agent.adapters.redshift_login import Login, Logins, Place, is_iam, logins_of, place_of
from assay_agent.ports import WarehouseSettings
from assay_core import clock
from assay_core.errors import ConfigError, TransientError
from tests.aws_server import aws_server

CLUSTER = "examplecluster.abc123xyz789.us-west-2.redshift.amazonaws.com"
SERVERLESS = "default-wg.123456789012.eu-central-1.redshift-serverless.amazonaws.com"
KEYS = '{"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "very/secret"}'


def _settings(secret: str | None = None, **config: Any) -> WarehouseSettings:
    return WarehouseSettings(datasource_id="shop", provider="redshift", config=config, secret=secret)


def _target(**given: Any) -> dict[str, Any]:
    return {"host": CLUSTER, "dbname": "dev", "user": "analyst", **given}


def test_a_password_is_used_as_it_is() -> None:
    logins = logins_of(_settings("pw"), _target())
    assert logins.next() == Login(user="analyst", password="pw")
    assert "pw" not in repr(logins.next())


@pytest.mark.parametrize(
    ("secret", "target", "words"),
    [
        (
            None,
            {},
            "datasource shop: there is no password for analyst; give the secret warehouse-credentials",
        ),
        ("pw", {"user": ""}, "datasource shop: config.user is not set"),
    ],
)
def test_a_login_that_says_too_little_is_refused(
    secret: str | None, target: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        logins_of(_settings(secret), _target(**target))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("value", "found"), [(True, True), ("true", True), ("False", False), (False, False)])
def test_iam_is_a_switch(value: Any, found: bool) -> None:
    assert is_iam({"iam": value}) is found


@pytest.mark.parametrize("value", ["yes", 1, "", None])
def test_iam_is_nothing_but_a_switch(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"config\.iam is .*, must be true or false"):
        is_iam({"iam": value})


@pytest.mark.parametrize(
    ("config", "target", "place"),
    [
        ({}, {}, Place(region="us-west-2", database="dev", cluster="examplecluster", user="analyst")),
        (
            {},
            {"host": SERVERLESS, "user": ""},
            Place(region="eu-central-1", database="dev", workgroup="default-wg"),
        ),
        (
            {"cluster_identifier": "c1", "region": "eu-west-1"},
            {"host": "10.0.0.1"},
            Place(region="eu-west-1", database="dev", cluster="c1", user="analyst"),
        ),
        (
            {"workgroup": "w1"},
            {"host": SERVERLESS},
            Place(region="eu-central-1", database="dev", workgroup="w1", user="analyst"),
        ),
    ],
)
def test_the_host_says_what_settings_do_not(
    config: dict[str, Any], target: dict[str, Any], place: Place
) -> None:
    assert place_of(_settings(**config), _target(**target)) == place


@pytest.mark.parametrize(
    ("config", "target", "words"),
    [
        ({}, {"host": "10.0.0.1"}, "needs config.cluster_identifier (or config.workgroup)"),
        ({"cluster_identifier": "c"}, {"host": "10.0.0.1"}, "needs config.region"),
        ({}, {"user": ""}, "needs config.user"),
        (
            {"cluster_identifier": "c", "workgroup": "w"},
            {},
            "config.cluster_identifier is 'c' and config.workgroup is 'w': set one of them",
        ),
    ],
)
def test_a_place_that_is_not_clear_is_refused(
    config: dict[str, Any], target: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        place_of(_settings(iam=True, **config), _target(**target))
    assert words in str(refused.value)


def test_a_password_is_asked_anew_a_minute_before_it_expires() -> None:
    lives = iter((timedelta(hours=1), timedelta(seconds=30), timedelta(hours=1)))
    made = [Login(user=f"u{n}", password="p", expires=clock.now() + life) for n, life in enumerate(lives)]
    waiting = iter(made)
    logins = Logins(lambda: next(waiting))
    assert [logins.next().user for _ in range(3)] == ["u0", "u0", "u0"]
    soon = iter(made[1:])
    logins = Logins(lambda: next(soon))
    assert [logins.next().user for _ in range(3)] == ["u1", "u2", "u2"]


def test_aws_gives_a_password_for_a_cluster() -> None:
    with aws_server() as aws:
        settings = _settings(KEYS, iam=True, api_endpoint=aws.url)
        login = logins_of(settings, _target()).next()
        (asked,) = aws.asked
        assert aws.signed_by == ["AKIAEXAMPLE"]
    assert (login.user, login.password) == ("IAM:analyst", "temporary")
    assert login.expires is not None
    assert timedelta(minutes=59) < login.expires - clock.now() <= timedelta(hours=1)
    assert {key: asked[key] for key in sorted(asked) if key != "Version"} == {
        "Action": "GetClusterCredentials",
        "AutoCreate": "false",
        "ClusterIdentifier": "examplecluster",
        "DbName": "dev",
        "DbUser": "analyst",
        "DurationSeconds": "3600",
    }


def test_aws_gives_a_password_for_a_workgroup() -> None:
    with aws_server() as aws:
        aws.user = "IAMR:reader"
        settings = _settings(KEYS, iam="true", api_endpoint=aws.url)
        login = logins_of(settings, _target(host=SERVERLESS)).next()
        (asked,) = aws.asked
    assert (login.user, login.password) == ("IAMR:reader", "temporary")
    assert asked == {
        "Action": "RedshiftServerless.GetCredentials",
        "workgroupName": "default-wg",
        "dbName": "dev",
        "durationSeconds": 3600,
    }


@pytest.mark.parametrize("host", [CLUSTER, SERVERLESS])
@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        ((403, "AccessDenied", "not authorized to perform it"), ConfigError),
        ((404, "ClusterNotFound", "no such cluster"), ConfigError),
        ((400, "Throttling", "Rate exceeded"), TransientError),
        ((500, "InternalFailure", "try again"), TransientError),
    ],
)
def test_a_refusal_of_aws_is_one_line_that_names_whom_and_why(
    host: str, refusal: tuple[int, str, str], kind: type[Exception]
) -> None:
    with aws_server() as aws:
        aws.refusal = refusal
        logins = logins_of(_settings(KEYS, iam=True, api_endpoint=aws.url), _target(host=host))
        with pytest.raises(kind) as refused:
            logins.next()
    said = str(refused.value)
    assert (
        "workgroup default-wg" if host == SERVERLESS else "user analyst of cluster examplecluster"
    ) in said
    assert refusal[2] in said
    assert "\n" not in said
    assert "very/secret" not in said


def test_an_aws_that_does_not_answer_is_transient() -> None:
    logins = logins_of(_settings(KEYS, iam=True, api_endpoint="http://127.0.0.1:1"), _target())
    with pytest.raises(TransientError, match="AWS gives no password for user analyst"):
        logins.next()


@pytest.mark.parametrize("secret", ["a password", "{}", "[1]", '{"aws_access_key_id": "AKIA"}'])
def test_a_secret_that_is_no_key_of_aws_is_not_repeated(secret: str) -> None:
    with pytest.raises(
        ConfigError, match="is no key of AWS: it must be JSON with aws_access_key_id"
    ) as refused:
        logins_of(_settings(secret, iam=True), _target())
    assert secret not in str(refused.value)


def test_nobody_signed_in_is_the_settings_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="Unable to locate credentials"):
        logins_of(_settings(iam=True), _target()).next()


def test_without_boto3_a_password_still_works_and_iam_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.split(".", maxsplit=1)[0] in ("boto3", "botocore"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert logins_of(_settings("pw"), _target()).next().password == "pw"
    with pytest.raises(ConfigError) as refused:
        logins_of(_settings(iam=True), _target())
    assert str(refused.value) == (
        "config.iam is true, which needs a package that is not installed: boto3; install the extra redshift-iam, "
        "or log in with a password"
    )
