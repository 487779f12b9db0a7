"""The contract of a secret provider on real clouds; run by `make secrets-real`, not by CI."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from tests.contract.secret_contract import (
    HELD,
    Held,
    test_key_is_a_name_and_no_path,
    test_projects_are_apart_where_the_place_tells_them_apart,
    test_provider_gives_what_it_holds_and_hides_it,
    test_threads_may_share_it,
    test_what_is_not_there_is_none,
)
from tests.real.places import PLACES

__all__ = [
    "test_key_is_a_name_and_no_path",
    "test_projects_are_apart_where_the_place_tells_them_apart",
    "test_provider_gives_what_it_holds_and_hides_it",
    "test_threads_may_share_it",
    "test_what_is_not_there_is_none",
]
_NAMESPACE = "assay-contract"
_SEEN_WITHIN_S = 60.0


_CLOUDS = os.environ.get("ASSAY_REAL_CLOUDS") or ",".join(PLACES)


@pytest.fixture(scope="module", params=_CLOUDS.split(","))
def held(request: pytest.FixtureRequest) -> Iterator[Held]:
    """New secrets of a project of this run's own, gone afterwards."""
    place = PLACES[request.param]
    if not os.environ.get(place.variable):
        raise pytest.UsageError(f"{place.variable} is not set; `make secrets-real` says what it needs")
    cloud = place.at(os.environ[place.variable])
    project_id = f"p-{uuid4().hex[:12]}"
    provider = cloud.opened(_NAMESPACE)
    with ExitStack() as afterwards:
        for key, value in HELD.items():
            name = cloud.name_of(_NAMESPACE, project_id, key)
            afterwards.callback(cloud.remove, name)
            cloud.put(name, value.encode())
        until = time.monotonic() + _SEEN_WITHIN_S
        while any(provider.get(project_id=project_id, key=key) is None for key in HELD):
            assert time.monotonic() < until, f"what was put is not seen within {_SEEN_WITHIN_S:.0f} s"
            time.sleep(1.0)
        yield Held(provider=provider, project_id=project_id, apart=True)
