"""The files of a new pack: small, valid, and with every place marked where its author has to write."""

from __future__ import annotations

import json
import re
from pathlib import Path

from assay_core.errors import ConfigError
from assay_core.model.pack import PACK_FORMAT_VERSION

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])")

_AREAS = {
    "areas": [
        {
            "id": "first_area",
            "name": "First area",
            "description": "One sentence: which question of the field this area answers.",
            "keywords": ["words", "that stand in", "purposes", "and columns"],
            "priority": 1,
            "prompt_file": "analysis_first_area.md",
        }
    ]
}
_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "about": {"type": "string", "description": "What this data records, in a sentence"},
        "goals": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What the owner wants to know or improve",
        },
    },
}
_BASE_CONTEXT = """You are an analyst of (name the field). (Say how a good one of that field thinks: which numbers
are trusted, which are suspected first, and what a reader needs beside every number.)

What is known about this data:
{{PROFILE}}

{{PREVIOUS_CONTEXT}}
"""
_EXPLORATION = """## The warehouse

Dataset: {{DATASET}}

Tables (name | columns | rows | hints | possible joins):
{{SCHEMA_INFO}}

{{FILTER_CONTEXT}}
{{FILTER_RULE}}

## What your findings will be read for

{{ANALYSIS_AREAS}}

## How to explore

1. Get your bearings: which tables hold what, over which period, how completely they join.
2. (Say which rows of this field must be left out, and how to recognise them.)
3. (Say what to measure for each area, with its precise definition.)
4. Cover every area above before you dig deeper into one.

Write each statement so that its result can stand as evidence: name every column, aggregate in SQL, order by what
matters, and give the count behind every rate.
"""
_RECOMMENDATIONS = """## From findings to actions

Date: {{DISCOVERY_DATE}}
Findings: {{INSIGHTS_SUMMARY}}

{{INSIGHTS_DATA}}

Recommend what the owner of this data should do next, three to eight actions in all. Each answers one or more of the
findings above and is concrete enough to start on Monday: who is concerned, what to change or test, and how to tell
that it worked.
"""
_AREA = """## First area in {{DATASET}}

(Say what to look for, how it is defined precisely, which traps there are, and what a finding must state.)

{{TOTAL_QUERIES}} results bear on this area:

{{QUERY_RESULTS}}
"""


def write_skeleton(name: str, below: Path) -> Path:
    """Write `below/name` and return it. Raises ConfigError for a bad name or a folder that is there already."""
    if not _SLUG.fullmatch(name):
        raise ConfigError(
            f"a pack's name is two or more lower-case letters, digits and hyphens, such as my-field, not {name!r}"
        )
    folder = below / name
    head = {
        "slug": name,
        "name": name.replace("-", " ").capitalize(),
        "description": "What this pack is for, in a sentence.",
        "version": "0.1.0",
        "author": "",
        "format_version": PACK_FORMAT_VERSION,
        "categories": [{"id": "all", "name": "All", "description": "Every kind of data of this field"}],
    }
    files = {
        "pack.json": _json(head),
        "prompts/base/areas.json": _json(_AREAS),
        "prompts/base/base_context.md": _BASE_CONTEXT,
        "prompts/base/exploration.md": _EXPLORATION,
        "prompts/base/recommendations.md": _RECOMMENDATIONS,
        "prompts/base/analysis_first_area.md": _AREA,
        "profiles/schema.json": _json(_SCHEMA),
    }
    try:
        folder.mkdir(parents=True)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except FileExistsError as error:
        raise ConfigError(f"{folder} is there already; choose another name") from error
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}") from error
    return folder


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"
