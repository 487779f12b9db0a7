"""What a person said of an insight, a recommendation or a step."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from assay_core.model.document import Document


class Feedback(Document):
    id: str
    project_id: str
    discovery_id: str
    tenant: str = ""
    """That of the discovery: a comment may tell of its rows."""
    target_type: Literal["insight", "recommendation", "exploration_step"]
    target_id: str
    target_title: str = ""
    """What the target said, for prompts of runs that no longer read the discovery it stands in."""
    rating: Literal["like", "dislike"]
    comment: str = ""
    created_at: datetime
