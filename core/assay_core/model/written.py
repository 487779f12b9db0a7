"""A project as a person writes it, in `assay.yaml` or inside a `DiscoveryRun`, and what it becomes.

What is not said has the meaning a reader would expect, and a key that is not known is an error that names those that are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from assay_core import clock
from assay_core.errors import ConfigError
from assay_core.model.project import Project


def project_of(document: Mapping[str, Any]) -> Project:
    """The project of a written document; a value that cannot be is a `ConfigError` naming its place."""
    at = clock.now()
    given = {"created_at": at, "updated_at": at, "llm_config_version": 1, **document}
    if "domain" in document:
        # The default category is the default pack's; without one said, a pack's only one is meant.
        given.setdefault("category", "")
    try:
        return Project.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ConfigError(f"project: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def unknown_key(model: type[BaseModel], document: Mapping[str, Any], *, at: str = "") -> str | None:
    """The first key that the model does not know, told with those it does."""
    for key, value in document.items():
        field = model.model_fields.get(str(key))
        if field is None:
            return f"unknown key {at}{key}; known: {', '.join(sorted(model.model_fields))}"
        nested = _model_in(field.annotation)
        for item in value if isinstance(value, list) else [value]:
            if nested is not None and isinstance(item, dict):
                problem = unknown_key(nested, item, at=f"{at}{key}.")
                if problem:
                    return problem
    return None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    # A mapping from free keys to models is left to the model's own validation.
    if getattr(annotation, "__origin__", None) is dict:
        return None
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)
