"""The contract of a vector index, on the local mode and over HTTP; and on a real server when `QDRANT_URL` names one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from assay_agent.adapters.qdrant import QdrantIndex, open_index
from assay_agent.ports import Point, VectorIndex
from assay_core.errors import ConfigError, TransientError
from tests.qdrant_server import serve

ENGINES = ["local", "http", *(["server"] if os.environ.get("QDRANT_URL") else [])]


@pytest.fixture(params=ENGINES)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QdrantIndex]:
    if request.param == "local":
        opened = open_index(path=tmp_path / "vectors")
        yield opened
        opened.close()
    elif request.param == "http":
        with serve(tmp_path / "served") as url:
            opened = open_index(url)
            yield opened
            opened.close()
    else:
        opened = open_index(os.environ["QDRANT_URL"], api_key=os.environ.get("QDRANT_API_KEY"))
        yield opened
        for name in opened.collections():
            if name.startswith("contract_"):
                opened.drop(name)
        opened.close()


@pytest.fixture
def name(index: QdrantIndex) -> str:
    made = f"contract_{uuid4().hex}"
    index.ensure_collection(made, 3)
    return made


def uid(number: int) -> str:
    return str(UUID(int=number))


def points(count: int) -> list[Point]:
    return [
        Point(id=uid(n), vector=[1.0, n / 10, 0.0], payload={"n": n, "kind": "even" if n % 2 == 0 else "odd"})
        for n in range(count)
    ]


def test_it_is_a_vector_index(index: QdrantIndex) -> None:
    as_port: VectorIndex = index
    assert as_port.collections() == []


def test_the_nearest_come_first_with_their_payload(index: QdrantIndex, name: str) -> None:
    index.upsert(name, points(5))
    hits = index.search(name, [1.0, 0.0, 0.0], top_k=2)
    assert [hit.id for hit in hits] == [uid(0), uid(1)]
    assert hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert hits[0].payload == {"n": 0, "kind": "even"}


def test_equals_and_excluding_filter(index: QdrantIndex, name: str) -> None:
    index.upsert(name, points(8))
    found = index.search(name, [1.0, 0.0, 0.0], top_k=10, equals={"kind": "even"}, excluding={"n": [0, 4]})
    assert [hit.payload["n"] for hit in found] == [2, 6]
    assert len(index.search(name, [1.0, 0.0, 0.0], top_k=10, excluding={"n": []})) == 8


def test_a_field_nobody_has_is_not_excluded(index: QdrantIndex, name: str) -> None:
    index.upsert(name, points(2))
    assert len(index.search(name, [1.0, 0.0, 0.0], top_k=5, excluding={"absent": ["x"]})) == 2
    assert index.search(name, [1.0, 0.0, 0.0], top_k=5, equals={"absent": "x"}) == []


def test_min_score_cuts(index: QdrantIndex, name: str) -> None:
    index.upsert(
        name, [Point(id=uid(1), vector=[1, 0, 0], payload={}), Point(id=uid(2), vector=[0, 1, 0], payload={})]
    )
    assert [hit.id for hit in index.search(name, [1.0, 0.1, 0.0], top_k=5, min_score=0.5)] == [uid(1)]


def test_upserting_a_point_again_replaces_it(index: QdrantIndex, name: str) -> None:
    index.upsert(name, points(3))
    index.upsert(name, [Point(id=uid(1), vector=[0, 0, 1], payload={"new": True})])
    assert index.count(name) == 3
    assert index.search(name, [0.0, 0.0, 1.0], top_k=1)[0].payload == {"new": True}


def test_delete_removes_what_is_there(index: QdrantIndex, name: str) -> None:
    index.upsert(name, points(3))
    index.delete(name, [uid(1), uid(77)])
    index.delete(name, [])
    assert index.count(name) == 2


def test_a_collection_that_is_not_there_holds_nothing(index: QdrantIndex) -> None:
    assert index.count("contract_nothing") == 0
    assert index.search("contract_nothing", [1.0, 0.0, 0.0], top_k=3) == []
    index.delete("contract_nothing", [uid(1)])
    index.drop("contract_nothing")
    with pytest.raises(ConfigError, match="contract_nothing"):
        index.upsert("contract_nothing", points(1))


def test_a_dropped_collection_is_gone(index: QdrantIndex, name: str) -> None:
    index.upsert(name, points(2))
    assert name in index.collections()
    index.drop(name)
    assert name not in index.collections()
    assert index.count(name) == 0


def test_ensuring_again_keeps_points_and_refuses_another_size(index: QdrantIndex, name: str) -> None:
    index.upsert(name, points(2))
    index.ensure_collection(name, 3)
    assert index.count(name) == 2
    with pytest.raises(ConfigError, match=r"3 dimensions, not 4.*embedding model"):
        index.ensure_collection(name, 4)


def test_a_vector_of_another_size_is_a_config_error(index: QdrantIndex, name: str) -> None:
    with pytest.raises(ConfigError):
        index.upsert(name, [Point(id=uid(1), vector=[1.0, 2.0], payload={})])


def test_more_than_one_request_of_points_arrives_whole(index: QdrantIndex, name: str) -> None:
    index.upsert(
        name, [Point(id=uid(n), vector=[1, n, 0], payload={"text": "x" * 30_000}) for n in range(300)]
    )
    assert index.count(name) == 300


def test_threads_may_share_it(index: QdrantIndex, name: str) -> None:
    def work(n: int) -> int:
        index.upsert(name, [Point(id=uid(n), vector=[1, n, 0], payload={"n": n})])
        return len(index.search(name, [1.0, 0.0, 0.0], top_k=3))

    with ThreadPoolExecutor(8) as pool:
        assert min(pool.map(work, range(40))) >= 1
    assert index.count(name) == 40


def test_many_who_ensure_at_once_agree(index: QdrantIndex) -> None:
    made = f"contract_{uuid4().hex}"
    gate = threading.Barrier(4)

    def ensure(_: int) -> None:
        gate.wait(10)
        index.ensure_collection(made, 3)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ensure, range(4)))
    assert index.count(made) == 0


# ------------------------------------------------------------------------------------- one kind of engine only


def test_local_points_survive_closing(tmp_path: Path) -> None:
    index = open_index(path=tmp_path / "v")
    index.ensure_collection("c", 3)
    index.upsert("c", points(3))
    index.close()
    again = open_index(path=tmp_path / "v")
    assert again.count("c") == 3
    again.close()


# The client leaves the lock file of its failed try to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_second_owner_of_the_folder_is_refused(tmp_path: Path) -> None:
    index = open_index(path=tmp_path / "v")
    with pytest.raises(ConfigError, match="in use by another process"):
        open_index(path=tmp_path / "v")
    index.close()


def test_a_folder_that_cannot_be_made_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be written"):
        open_index(path=tmp_path / "file" / "v")


def test_neither_address_nor_folder_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="QDRANT_URL"):
        open_index()


def test_a_server_that_is_not_there_is_transient() -> None:
    with pytest.raises(TransientError) as caught:
        open_index("http://127.0.0.1:9")
    assert caught.value.dependency == "vectors"


def test_a_server_that_is_busy_is_asked_again(tmp_path: Path) -> None:
    with serve(tmp_path / "served", busy_answers=2) as url:
        index = open_index(url)
        assert index.collections() == []
        index.close()


def test_a_refused_key_is_a_config_error(tmp_path: Path) -> None:
    with serve(tmp_path / "served", key="right-key") as url:
        with pytest.raises(ConfigError, match="QDRANT_API_KEY"):
            open_index(url, api_key="wrong-key")
        index = open_index(url, api_key="right-key")
        assert index.collections() == []
        index.close()
