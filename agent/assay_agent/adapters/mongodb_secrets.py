"""Secrets in MongoDB, each sealed with AES-256-GCM under the installation's key; implements the `SecretProvider` port.

A sealed value is base64 of a fresh 12-byte nonce and the ciphertext. Namespace, project and key are authenticated with it, so
that a value moved to another place does not open. Without its key the provider stores nothing and reads nothing.
"""

from __future__ import annotations

import base64
import os

from assay_agent.adapters.secret_names import checked
from assay_agent.ports import SecretSettings
from assay_core.errors import ConfigError
from assay_core.log import hide
from assay_core.store.client import Store
from assay_core.store.secrets import StoredSecret

_NONCE_BYTES = 12
_KEY_BYTES = 32
_VALUE_CHARS = 100_000


class MongodbSecrets:
    """Sealed secrets of one namespace. Safe to call from several threads."""

    def __init__(self, store: Store, *, namespace: str, encryption_key: str) -> None:
        self._rows = store.secrets
        self._namespace = namespace
        self._cipher = _cipher(encryption_key)

    def get(self, *, project_id: str, key: str) -> str | None:
        """The secret, made known to the log as one to hide; None when there is none."""
        sealed = self._rows.get(self._namespace, project_id, checked(key))
        if sealed is None:
            return None
        value = self._opened(sealed, project_id, key)
        hide(value)
        return value

    def put(self, *, project_id: str, key: str, value: str) -> None:
        """Seal and store a secret."""
        if not value or len(value) > _VALUE_CHARS:
            raise ConfigError(f"the secret {key} is empty or longer than {_VALUE_CHARS:,} characters")
        hide(value)
        nonce = os.urandom(_NONCE_BYTES)
        place = self._place(project_id, checked(key))
        sealed = nonce + self._cipher.encrypt(nonce, value.encode(), place)
        self._rows.put(self._namespace, project_id, key, base64.b64encode(sealed).decode())

    def listed(self, *, project_id: str) -> list[StoredSecret]:
        return self._rows.listed(self._namespace, project_id)

    def delete(self, *, project_id: str, key: str) -> bool:
        return self._rows.delete(self._namespace, project_id, checked(key))

    def _opened(self, sealed: str, project_id: str, key: str) -> str:
        from cryptography.exceptions import InvalidTag

        try:
            raw = base64.b64decode(sealed, validate=True)
            place = self._place(project_id, key)
            value: str = self._cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], place).decode()
        except (InvalidTag, ValueError):
            raise ConfigError(
                f"the secret {key} of project {project_id} cannot be opened: "
                "SECRET_ENCRYPTION_KEY is not the one it was stored with"
            ) from None
        return value

    def _place(self, project_id: str, key: str) -> bytes:
        return "\x1f".join((self._namespace, project_id, key)).encode()


def _cipher(encryption_key: str):  # type: ignore[no-untyped-def]  # a class of an optional package
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise ConfigError(
            "SECRET_PROVIDER mongodb needs the package cryptography: install assay[secrets]"
        ) from error
    try:
        key = base64.b64decode(encryption_key, validate=True)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ConfigError(
            "SECRET_ENCRYPTION_KEY must be 32 bytes in base64 (make one with `openssl rand -base64 32`); "
            "without it the provider mongodb stores no secret"
        )
    return AESGCM(key)


def open_provider(settings: SecretSettings) -> MongodbSecrets:
    """Entry point."""
    if settings.store is None:
        raise ConfigError(
            "SECRET_PROVIDER mongodb needs the document store, which this command does not open"
        )
    return MongodbSecrets(
        settings.store, namespace=settings.namespace, encryption_key=settings.encryption_key or ""
    )
