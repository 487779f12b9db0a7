"""The stable key of a question, as it stands at the end of a purpose and in the line an old turn is folded to. Pure.

`[group:main.flights:carrier:arr_delay]`: family, table, and what else tells the question apart. A name may hold anything, so what
would end a part or the key is percent-encoded. Invariant: `parts_of(key_of(*parts)) == parts`, and a key survives folding.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from urllib.parse import unquote

_MARKED = re.compile(r"\[([a-z]+:[^\[\]]*)\]")
_FOLDED_CHARS = 120
"""Characters of a purpose that the line of a folded turn keeps."""
_LEAST_WORDS = 24
_UNSAFE = {ord(char): f"%{ord(char):02X}" for char in "%[]:"}


def key_of(family: str, *parts: str) -> str:
    return ":".join((family, *(_encoded(part) for part in parts)))


@lru_cache(maxsize=4096)
def parts_of(key: str) -> tuple[str, ...]:
    """Family, table, and the rest, as they were given."""
    return tuple(unquote(part) for part in key.split(":"))


def keys_in(text: str) -> list[str]:
    return _MARKED.findall(text)


def told(purpose: str, key: str) -> str:
    """The purpose with its key, short enough that folding leaves the key whole.

    A key too long for that stands in full for the analysis; a digest before it keeps the folded beginning unlike any other.
    """
    room = _FOLDED_CHARS - len(key) - len(" []")
    if len(purpose) <= room:
        return f"{purpose} [{key}]"
    if room >= _LEAST_WORDS:
        return f"{purpose[: room - 1].rstrip()}… [{key}]"
    return f"{key.partition(':')[0]} {zlib.crc32(key.encode()):08x} {purpose[:60].rstrip()}… [{key}]"


def folded(purpose: str) -> str:
    """What a folded line surely keeps of a purpose."""
    return " ".join(purpose.split())[:_FOLDED_CHARS]


def _encoded(part: str) -> str:
    text = part.translate(_UNSAFE)
    if " ".join(text.split()) == text:
        return text
    return "".join(
        "".join(f"%{byte:02X}" for byte in char.encode()) if char.isspace() else char for char in text
    )
