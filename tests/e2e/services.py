"""What a run needs beside Kubernetes, served to pods from the test's own process: MongoDB, Qdrant, a warehouse, and the scout as model.

Each is reached by a pod at the cluster's own address, through a relay that a test can cut and mend.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from assay_agent.scout.server import make_server
from assay_agent.stores.home import prepare
from assay_agent.stores.server import EmbeddedServer
from assay_core.store.client import Store
from assay_core.vectors.collections import Collections
from tests.integration.postgres import PASSWORD, PostgresServer, postgres_server
from tests.qdrant_server import serve
from tests.relay import Relay, relay_to

DATABASE = "assay"
PACE_S = 0.7
MODEL_KEY = "sk-marked-model-key-7f3a"
"""Marked, so that a test can search for it wherever it must not stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Addresses as pods see them, and the same stores as the test sees them."""

    host: str
    mongo: Relay
    mongo_direct: str
    qdrant: str
    model: str
    slow_model: str
    """The same model, which takes its time: a run over it can be met at a step."""
    warehouse: Relay
    postgres: PostgresServer
    store: Store
    collections: Collections

    @property
    def mongo_uri(self) -> str:
        return f"mongodb://{self.host}:{self.mongo.port}/?directConnection=true"

    def warehouse_config(self, database: str) -> dict[str, object]:
        return {"host": self.host, "port": self.warehouse.port, "database": database, "user": "reader"}

    @property
    def secrets(self) -> dict[str, str]:
        """What the installation's Secret holds, as variables of the agent."""
        return {
            "MONGODB_URI": self.mongo_uri,
            "MONGODB_DB": DATABASE,
            "QDRANT_URL": self.qdrant,
            "LLM_API_KEY": MODEL_KEY,
            "WAREHOUSE_CREDENTIALS": PASSWORD,
            "EMBEDDING_PROVIDER": "hashing",
        }


@contextmanager
def services(host: str, folder: Path) -> Iterator[Services]:
    """All of them, until the end of the block."""
    with ExitStack() as ends:
        home = folder / "mongo"
        home.mkdir()
        prepare(home)
        server = EmbeddedServer(home, standalone=False)
        server.start()
        ends.callback(server.stop)
        mongo = relay_to(server.url(), host=host)
        ends.callback(mongo.close)
        postgres = postgres_server()
        warehouse = Relay(("127.0.0.1", postgres.port), host=host)
        ends.callback(warehouse.close)
        qdrant = ends.enter_context(serve(folder / "qdrant", host=host))
        model, slow_model = (ends.enter_context(_scout(host, pace_s=pace_s)) for pace_s in (0.0, PACE_S))
        store = ends.enter_context(Store.connect(server.url(), DATABASE))
        store.ensure_indexes(checkpoint_retention_s=48 * 3600)
        yield Services(
            host=host,
            mongo=mongo,
            mongo_direct=server.url(),
            qdrant=qdrant,
            model=model,
            slow_model=slow_model,
            warehouse=warehouse,
            postgres=postgres,
            store=store,
            collections=Collections(qdrant),
        )


@contextmanager
def _scout(host: str, *, pace_s: float) -> Iterator[str]:
    """The scout over the OpenAI protocol, `pace_s` seconds a reply at least; yields its base URL."""
    with make_server(host, 0) as server:
        plain = server.RequestHandlerClass

        class Paced(plain):  # type: ignore[misc,valid-type]  # the server's own handler
            def do_POST(self) -> None:
                time.sleep(pace_s)
                super().do_POST()

        server.RequestHandlerClass = Paced
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        try:
            yield f"http://{host}:{server.server_address[1]}/v1"
        finally:
            server.shutdown()


SHOP = """
CREATE TABLE customers (id int PRIMARY KEY, country text NOT NULL, joined date NOT NULL);
INSERT INTO customers SELECT n, (ARRAY['DE','SE','GB','AT'])[1 + n % 4], DATE '2024-01-01' + n % 400 FROM generate_series(1, 2000) n;
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, placed date NOT NULL, amount numeric(10, 2), channel text);
INSERT INTO orders
SELECT n, 1 + (n * 7) % 2100, DATE '2025-01-01' + n % 365,
       CASE WHEN n % 20 = 0 THEN NULL ELSE round((20 + (n * 13) % 180 + CASE WHEN n % 3 = 0 THEN 60 ELSE 0 END)::numeric, 2) END,
       (ARRAY['shop','web','app'])[1 + n % 3]
FROM generate_series(1, 6000) n;
GRANT USAGE ON SCHEMA public TO reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
ANALYZE;
"""


@contextmanager
def shop(postgres: PostgresServer) -> Iterator[str]:
    """A small warehouse with planted facts; yields the name of its database."""
    with postgres.database() as name:
        with postgres.connect(name) as connection:
            connection.execute(SHOP)
            connection.execute(f"ALTER DATABASE {name} SET log_statement = 'all'")
        yield name
