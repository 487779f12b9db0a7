"""A domain pack: what an analyst of a field looks at, as data. Folder packs and stored ones share this shape."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from assay_core.model.document import Document

PACK_FORMAT_VERSION = 1
"""The newest shape of a pack that this program reads."""


class Area(Document):
    """One analysis area. Lower `priority` goes first; `keywords` are lower-case fragments found in step texts."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    name: str
    description: str = ""
    keywords: list[str]
    priority: int = 100
    prompt: str


class PackCategory(Document):
    id: str
    name: str
    description: str = ""


class BasePrompts(Document):
    base_context: str
    exploration: str
    recommendations: str


class CategoryPrompts(Document):
    exploration_context: str = ""


class PackPrompts(Document):
    base: BasePrompts
    categories: dict[str, CategoryPrompts] = {}


class PackAreas(Document):
    base: list[Area]
    categories: dict[str, list[Area]] = {}


class PackProfileSchema(Document):
    """JSON Schema (2020-12) of a project's profile, the category's merged over the base."""

    base: dict[str, Any] = {}
    categories: dict[str, dict[str, Any]] = {}


class DomainPack(Document):
    slug: str = Field(pattern=r"^[a-z0-9](?:[a-z0-9-]*[a-z0-9])$")
    name: str
    description: str = ""
    version: str = "1.0.0"
    author: str = ""
    source_url: str = ""
    is_published: bool = True
    format_version: int = 1
    categories: list[PackCategory]
    prompts: PackPrompts
    analysis_areas: PackAreas
    profile_schema: PackProfileSchema = PackProfileSchema()
