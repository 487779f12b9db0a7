"""Secrets in AWS Secrets Manager, read by botocore; implements the `SecretProvider` port.

The current version of `NAMESPACE/PROJECT/KEY` is the secret. Who asks is whom the machine is signed in as (AWS's usual chain:
variables, profile, web identity, role of the machine). Errors: GetSecretValue in the service's API reference. Nothing is written.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from assay_agent.adapters.cloud_secrets import Patience, in_one_line, patiently, seconds_of, text_of
from assay_agent.adapters.secret_names import checked
from assay_agent.ports import SecretSettings
from assay_core.errors import AssayError, ConfigError, TransientError
from assay_core.log import hide

DEFAULT_REGION = "us-east-1"
_PART = re.compile(r"[A-Za-z0-9._+=@-]{1,128}")
"""AWS takes `/` too, which is where a part ends here."""
_MISSING = "ResourceNotFoundException"
_FORBIDDEN = frozenset({"AccessDeniedException", "AccessDenied", "DecryptionFailure"})
_NOT_SIGNED_IN = frozenset(
    {
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "InvalidClientTokenId",
        "InvalidIdentityToken",
        "ExpiredToken",
        "ExpiredTokenException",
        "RequestExpired",
        "OptInRequired",
    }
)
_BUSY = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "InternalServiceError",
        "InternalServiceErrorException",
        "InternalFailure",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "IDPCommunicationError",
    }
)


class AwsSecrets:
    """Secrets of one namespace in one region of an account. Safe to call from several threads."""

    def __init__(
        self,
        *,
        namespace: str,
        region: str = "",
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._namespace = namespace
        self._patience = patience or Patience()
        self._sleep, self._spread = sleep, spread
        self._client = _client(region, self._patience)

    def get(self, *, project_id: str, key: str) -> str | None:
        """The secret, made known to the log as one to hide; None when there is none."""
        name = name_of(self._namespace, project_id, checked(key))
        value = patiently(
            lambda: self._asked(name), patience=self._patience, sleep=self._sleep, spread=self._spread
        )
        hide(value)
        return value

    def _asked(self, name: str) -> str | None:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        region = self._client.meta.region_name
        try:
            answer = self._client.get_secret_value(SecretId=name)
        except ClientError as error:
            if code_of(error.response) == _MISSING:
                return None
            raise failure(
                error.response, action=error.operation_name, where=f"the secret {name} in {region}"
            ) from error
        except (BotoCoreError, ResponseParserError) as error:
            raise _without_answer(error, region) from error
        return _value(answer, name)


def name_of(namespace: str, project_id: str, key: str) -> str:
    """`NAMESPACE/PROJECT/KEY`; raises ConfigError for what AWS takes in no name."""
    for said, part in (("SECRET_NAMESPACE", namespace), ("the project's id", project_id)):
        if not _PART.fullmatch(part):
            raise ConfigError(
                f"{said} {part!r} cannot be part of a secret's name at AWS: letters, digits and ._+=@- can"
            )
    return f"{namespace}/{project_id}/{key}"


def code_of(response: Mapping[str, Any]) -> str:
    return str(response.get("Error", {}).get("Code", ""))


def failure(response: Mapping[str, Any], *, action: str, where: str) -> AssayError:
    """What an answer other than a value means, by who acts next. `action` is what was called: signing in is one too. Pure."""
    code = code_of(response)
    meta = response.get("ResponseMetadata", {})
    status = int(meta.get("HTTPStatusCode", 0))
    why = in_one_line(f"{response.get('Error', {}).get('Message') or f'status {status}'} ({code})")
    if code in _BUSY or status in (408, 429) or status >= 500:
        after = seconds_of(meta.get("HTTPHeaders", {}).get("retry-after"))
        return TransientError(
            f"AWS Secrets Manager is busy: {why}", dependency="secrets", retry_after_s=after
        )
    if code in _NOT_SIGNED_IN or action != "GetSecretValue":
        return ConfigError(f"AWS does not take the credential: {why} at {action}")
    if code in _FORBIDDEN:
        return ConfigError(
            f"{where} may not be read: {why}; allow secretsmanager:GetSecretValue on it, and kms:Decrypt on its key"
        )
    if code == "InvalidRequestException":
        return ConfigError(f"{where} cannot be read: {why}; is it marked for deletion?")
    return ConfigError(f"{where} cannot be read: {why}")


def _value(answer: Mapping[str, Any], name: str) -> str | None:
    """botocore takes a body that it cannot read for an empty one, which is not the same as no secret."""
    if "SecretString" in answer:
        return text_of(answer["SecretString"].encode(), name=name)
    if "SecretBinary" in answer:
        return text_of(answer["SecretBinary"], name=name)
    raise TransientError(
        f"AWS Secrets Manager gave no readable answer for the secret {name}", dependency="secrets"
    )


def _without_answer(error: Any, region: str) -> AssayError:
    """What it means that the client raised: no answer came, or nothing was asked."""
    from botocore.exceptions import ConnectionError as Unconnected
    from botocore.exceptions import HTTPClientError, IncompleteReadError, MetadataRetrievalError
    from botocore.parsers import ResponseParserError

    cut_off = (HTTPClientError, Unconnected, IncompleteReadError, MetadataRetrievalError, ResponseParserError)
    if isinstance(error, cut_off):
        return TransientError(
            f"AWS Secrets Manager in {region} is not reachable: {type(error).__name__}", dependency="secrets"
        )
    return ConfigError(
        f"SECRET_PROVIDER aws finds no AWS credential that it can use: {type(error).__name__}; set AWS_PROFILE or "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role"
    )


def _client(region: str, patience: Patience) -> Any:
    try:
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise ConfigError(
            "SECRET_PROVIDER aws needs the package botocore: install assay[aws-secrets]"
        ) from error
    # Its debug lines hold whole answers, before their secrets can be known.
    logging.getLogger("botocore").setLevel(logging.INFO)
    config = Config(
        connect_timeout=patience.connect_s,
        read_timeout=patience.read_s,
        retries={"total_max_attempts": 1},
    )
    try:
        session = botocore.session.get_session()
        found = region or session.get_config_variable("region") or DEFAULT_REGION
        return session.create_client("secretsmanager", region_name=found, config=config)
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(f"SECRET_PROVIDER aws cannot be used: {in_one_line(error)}") from error


def open_provider(settings: SecretSettings) -> AwsSecrets:
    """Entry point."""
    return AwsSecrets(namespace=settings.namespace, region=settings.config.get("aws_region", ""))
