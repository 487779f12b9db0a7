"""The one-file form of a pack: `{"format": "assay-domain-pack", "format_version": 1, "pack": {…}}`. Pure."""

from __future__ import annotations

import json
from typing import Any

from assay_agent.packs.checking import Problem, dotted, newer_format, problems_of
from assay_agent.packs.folders import Examined
from assay_core.model.pack import PACK_FORMAT_VERSION, DomainPack

_FORMAT = "assay-domain-pack"


def packed(pack: DomainPack) -> str:
    """The text of a pack's file."""
    content = {key: value for key, value in pack.stored().items() if key != "format_version"}
    envelope = {"format": _FORMAT, "format_version": PACK_FORMAT_VERSION, "pack": content}
    return json.dumps(envelope, ensure_ascii=False, indent=1) + "\n"


def unpacked(text: str, *, name: str) -> Examined:
    """The pack of a file's text, or what is wrong with it; `name` is the file's."""
    try:
        envelope: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        return _refused(name, f"is not JSON: {error}")
    if not isinstance(envelope, dict) or envelope.get("format") != _FORMAT:
        given = envelope.get("format") if isinstance(envelope, dict) else None
        return _refused(f"{name}: format", f"must be {_FORMAT!r}, not {given!r}")
    newer = newer_format(envelope)
    if newer:
        return _refused(name, newer)
    document = envelope.get("pack")
    if not isinstance(document, dict):
        return _refused(f"{name}: pack", "must be the pack, a JSON object")
    document = {**document, "format_version": envelope.get("format_version", 1)}
    problems = problems_of(document, lambda place: f"{name}: pack.{dotted(place)}")
    if problems:
        return Examined(pack=None, problems=tuple(problems))
    return Examined(pack=DomainPack.model_validate(document), problems=())


def _refused(where: str, text: str) -> Examined:
    return Examined(pack=None, problems=(Problem(where=where, text=text),))
