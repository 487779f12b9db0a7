"""The shape every stored document shares.

Reads ignore unknown fields, so that an older program can read what a newer one wrote; instances are frozen.
`stored()` is the stored form: field names of the specification, `None` and empty optional parts left out.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """A frozen pydantic model that tolerates unknown fields and drops absent ones when stored."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    def stored(self) -> dict[str, Any]:
        """The document as plain Python values, without fields that are `None`."""
        return self.model_dump(mode="python", exclude_none=True, by_alias=True)

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        """Parse a stored document; `_id` is read as `id` where the model has one."""
        fields = dict(document)
        if "_id" in fields and "id" in cls.model_fields:
            fields.setdefault("id", str(fields["_id"]))
        return cls.model_validate(fields)
