"""Fixtures of the whole suite: one real MongoDB-protocol server per session, one database per test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings

from assay_agent.stores.home import prepare
from assay_agent.stores.server import EmbeddedServer
from assay_core.store.client import Store

# How long an example takes says something of the machine, not of the code.
settings.register_profile("assay", deadline=None)
settings.load_profile("assay")

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:  # so that tests can import `tests.builders` however pytest was started
    sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session")
def mongo_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that ends with this process, like any embedded one; but a replica set, as a cluster has it."""
    home = tmp_path_factory.mktemp("mongo")
    prepare(home)
    server = EmbeddedServer(home, standalone=False)
    server.start()
    try:
        yield server.url()
    finally:
        server.stop()


@pytest.fixture
def store(mongo_uri: str) -> Iterator[Store]:
    """A store of its own for each test, indexes in place."""
    with Store.connect(mongo_uri, f"test_{uuid4().hex[:12]}") as opened:
        opened.ensure_indexes(checkpoint_retention_s=48 * 3600)
        yield opened
        opened.client.drop_database(opened.database.name)
