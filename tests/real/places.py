"""The clouds that secrets can be tried on, and the variable that says where."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from assay_agent.adapters.gcp_secrets import ENDPOINT
from tests.clouds import Amazon, Cloud, Google


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    variable: str
    at: Callable[[str], Cloud]


def _google(project: str) -> Cloud:
    return Google(project=project, endpoint=os.environ.get("SECRET_GCP_ENDPOINT") or ENDPOINT)


PLACES: Mapping[str, Place] = {
    "gcp": Place(variable="SECRET_GCP_PROJECT_ID", at=_google),
    "aws": Place(variable="SECRET_AWS_REGION", at=lambda region: Amazon(region=region)),
}
