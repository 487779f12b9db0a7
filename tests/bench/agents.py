"""An agent as a process of its own, beside servers in this one: a document store, a vector store, a model over HTTP, a warehouse.

Used by the parts that measure the process itself. The model is the scout over the OpenAI protocol, and notes when it was asked first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay_agent.ports import Message
from assay_agent.scout.model import answer
from assay_agent.stores.home import prepare
from assay_agent.stores.server import EmbeddedServer
from assay_core import clock
from assay_core.model.project import Datasource, LayerModel, LLMProviderEntry, Project
from assay_core.model.run import DiscoveryRun
from assay_core.store.client import Store
from tests.builders import an_id
from tests.openai_server import OpenAiServer, Said, serving
from tests.qdrant_server import serve as serving_vectors

_RUN_S = 300.0
_LOOK_S = 0.02
MODEL = "gpt-4o-mini"
BARE = """
import os, sys
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm
litellm.completion(model="openai/gpt-4o-mini", api_base=sys.argv[1], api_key="k", num_retries=0,
                   messages=[{"role": "user", "content": "Task: exploration"}])
"""
"""What any program that asks a model through litellm does at least."""


@dataclass(slots=True)
class Rig:
    """The servers of the agents. `asked` are the times, by this process's clock, at which the model was asked."""

    store: Store
    mongo_uri: str
    vectors_url: str
    model: OpenAiServer
    folder: Path
    asked: list[float] = field(default_factory=list)

    def project(self, source: Datasource) -> Project:
        entry = LLMProviderEntry(id="main", provider="openai-compatible", config={"base_url": self.model.url})
        made = Project(
            id=an_id(),
            datasources=[source],
            llm_providers=[entry],
            layer_models={"default": LayerModel(provider_id="main", model=MODEL)},
            llm_config_version=1,
        )
        self.store.projects.upsert(made)
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process that has ended: when it was started, its most resident memory, and when it first asked the model."""

    first_request_s: float
    resident_mib: float


@contextmanager
def rig() -> Iterator[Rig]:
    asked: list[float] = []

    def said(request: dict[str, Any]) -> Said:
        asked.append(time.monotonic())
        return Said(text=answer([Message(item["role"], item["content"]) for item in request["messages"]]))

    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="assay-bench-")))
        home = folder / "home"
        home.mkdir()
        prepare(home)
        server = EmbeddedServer(home)
        server.start()
        opened.callback(server.stop)
        store = opened.enter_context(Store.connect(server.url(), "bench_agents"))
        store.ensure_indexes(checkpoint_retention_s=3600)
        vectors = opened.enter_context(serving_vectors(folder / "vectors"))
        model = opened.enter_context(serving(said))
        yield Rig(store, server.url(), vectors, model, folder, asked)


def agent(here: Rig, project: Project, *flags: str, environment: Mapping[str, str] | None = None) -> Ended:
    """One whole run of the agent, as its container starts it."""
    at = clock.now()
    run = DiscoveryRun(id=an_id(), project_id=project.id, attempt=1, started_at=at, updated_at=at)
    here.store.runs.create(run)
    given = {
        "MONGODB_URI": here.mongo_uri,
        "MONGODB_DB": here.store.database.name,
        "QDRANT_URL": here.vectors_url,
        "LLM_API_KEY_MAIN": "k",
        "LOG_LEVEL": "error",
        **(environment or {}),
    }
    return _ended(
        here,
        ["-m", "assay_agent.agentserver", "--project-id", project.id, "--run-id", run.id, *flags],
        given,
    )


def bare(here: Rig) -> Ended:
    """`import litellm` and one completion."""
    return _ended(here, ["-c", BARE, here.model.url], {})


def _ended(here: Rig, arguments: list[str], environment: Mapping[str, str]) -> Ended:
    here.asked.clear()
    started = time.monotonic()
    with tempfile.TemporaryFile(dir=here.folder) as said:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=here.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                **environment,
            },
            stdout=said,
            stderr=said,
        )
        most = 0.0
        # Not what the system tells of an ended process: that counts the pages of the one that started it.
        while process.poll() is None:
            most = _most_resident_mib(process.pid) or most
            if time.monotonic() - started > _RUN_S:
                process.kill()
            time.sleep(_LOOK_S)
        if process.returncode or not here.asked:
            said.seek(0)
            raise RuntimeError(f"exit {process.returncode}: {said.read()[-2000:].decode()}")
    return Ended(first_request_s=here.asked[0] - started, resident_mib=most)


def _most_resident_mib(pid: int) -> float:
    """The high-water mark of a process that runs; 0 where it has just ended."""
    try:
        said = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    mark = next((line for line in said.splitlines() if line.startswith("VmHWM")), None)
    return int(mark.split()[1]) / 1024 if mark else 0.0
