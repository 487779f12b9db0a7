"""What a secret may be called. Called by every secret provider, before the name becomes a path, a variable or an address."""

from __future__ import annotations

import re

from assay_core.errors import ConfigError

_KEY = re.compile(r"[a-z0-9][A-Za-z0-9_-]{0,63}")


def checked(key: str) -> str:
    """The key itself; raises ConfigError for one that is no name."""
    if not _KEY.fullmatch(key):
        raise ConfigError(f"{key!r} is not the name of a secret")
    return key
