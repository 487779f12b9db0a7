"""The sample warehouse of a pack on another engine than DuckDB: the same tables and rows, in that engine's types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import psycopg
import sqlglot
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from assay_core.model.project import Datasource
from tests.bigquery_emulator import PROJECT
from tests.bigquery_server import BigQueryServer, bigquery_server
from tests.integration.postgres import PASSWORD, postgres_server
from tests.warehouses.facts import warehouse

ENGINES = ("duckdb", "postgres", "bigquery")
_TO_POSTGRES = {"DOUBLE": "DOUBLE PRECISION", "TINYINT": "SMALLINT", "BLOB": "BYTEA", "JSON": "JSONB"}
_TO_BIGQUERY = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "INT64"),
    **{"DOUBLE": "FLOAT64", "BOOLEAN": "BOOL", "VARCHAR": "STRING", "TIMESTAMP": "DATETIME"},
    **{"TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "BLOB": "BYTES", "JSON": "STRING"},
}
_BY_HAND = {
    "postgres": (
        (r"ARG_MAX\((\w+), (\w+)\)", r"(ARRAY_AGG(\1 ORDER BY \2 DESC))[1]"),
        (r"ARG_MIN\((\w+), (\w+)\)", r"(ARRAY_AGG(\1 ORDER BY \2))[1]"),
        (r"MIN\(f\.voucher\)", r"BOOL_AND(f.voucher)"),
        (r"= 'nan'", "= 'NaN'"),
        (r"\('inf', '-inf'\)", "('Infinity', '-Infinity')"),
    ),
}
UNSAID = {"bigquery": frozenset({"longer_sessions_in_the_feed"})}
"""Facts that an engine has no exact aggregate for: BigQuery's median is a window function, or approximate."""
Columns = list[tuple[str, str]]
"""Names and DuckDB's types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Where the sample is now, what opens it, and how its tables are called there."""

    source: Datasource
    dialect: str
    schema: str
    environment: dict[str, str] = field(default_factory=dict)


@contextmanager
def stored(engine: str, pack: str) -> Iterator[Stored]:
    """The sample of a pack on an engine, until the block ends."""
    if engine == "duckdb":
        source = Datasource(provider="duckdb", config={"path": str(warehouse(pack))})
        yield Stored(source=source, dialect="duckdb", schema="main")
    elif engine == "postgres":
        with postgres_server().database() as database:
            yield _into_postgres(pack, database)
    else:
        with bigquery_server() as server, server.dataset() as dataset:
            yield _into_bigquery(pack, server, dataset)


def _into_postgres(pack: str, database: str) -> Stored:
    server = postgres_server()
    with server.connect(database) as connection, TemporaryDirectory() as folder:
        for table, columns in _tables(pack).items():
            declared = ", ".join(f'"{name}" {_postgres_type(kind)}' for name, kind in columns)
            connection.execute(f'CREATE TABLE "{table}" ({declared})'.encode())
            chosen = ", ".join(_postgres_text(name, kind) for name, kind in columns)
            rows = _written(pack, f'SELECT {chosen} FROM "{table}"', Path(folder), "csv, HEADER false")
            _copied(connection, table, rows)
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        connection.execute("ANALYZE")
    source = Datasource(provider="postgres", config=server.config(database, user="reader"))
    environment = {"WAREHOUSE_CREDENTIALS": PASSWORD}
    return Stored(source=source, dialect="postgres", schema="public", environment=environment)


def _copied(connection: psycopg.Connection[Any], table: str, rows: Path) -> None:
    with connection.cursor().copy(f'COPY "{table}" FROM STDIN (FORMAT csv)'.encode()) as copying:
        copying.write(rows.read_bytes())


def _postgres_type(kind: str) -> str:
    if kind.startswith("STRUCT"):
        return "JSONB"
    return _TO_POSTGRES.get(kind, kind)


def _postgres_text(name: str, kind: str) -> str:
    """The column as PostgreSQL reads it from a file."""
    if kind.startswith("STRUCT"):
        return f'to_json("{name}")'
    if kind.endswith("[]"):
        return f"""CASE WHEN "{name}" IS NOT NULL THEN '{{' || array_to_string("{name}", ',') || '}}' END"""
    return f"""'\\x' || hex("{name}")""" if kind == "BLOB" else f'"{name}"'


def _into_bigquery(pack: str, server: BigQueryServer, dataset: str) -> Stored:
    client = bigquery.Client(
        project=PROJECT,
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]  # google-auth is partly untyped
        client_options=ClientOptions(api_endpoint=f"http://127.0.0.1:{server.upstream}"),
    )
    config = bigquery.LoadJobConfig(source_format=bigquery.SourceFormat.NEWLINE_DELIMITED_JSON)
    with TemporaryDirectory() as folder:
        for table, columns in _tables(pack).items():
            name = f"{PROJECT}.{dataset}.{table}"
            declared = ", ".join(f"`{column}` {_bigquery_type(kind)}" for column, kind in columns)
            client.query(f"CREATE TABLE `{name}` ({declared})").result(timeout=60)
            rows = _written(pack, f'SELECT * FROM "{table}"', Path(folder), "json")
            if rows.stat().st_size:
                with rows.open("rb") as file:
                    client.load_table_from_file(file, name, job_config=config).result(timeout=60)
    client.close()  # type: ignore[no-untyped-call]  # and so is the client
    source = Datasource(
        provider="bigquery",
        project_id=PROJECT,
        datasets=[dataset],
        config={"api_endpoint": server.url},
    )
    environment = {"WAREHOUSE_CREDENTIALS": server.key()}
    return Stored(source=source, dialect="bigquery", schema=dataset, environment=environment)


def _bigquery_type(kind: str) -> str:
    return "NUMERIC" if re.match("DECIMAL", kind) else _TO_BIGQUERY.get(kind, kind)


def _tables(pack: str) -> dict[str, Columns]:
    with duckdb.connect(str(warehouse(pack)), read_only=True) as connection:
        rows = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal "
            "ORDER BY table_name, column_index"
        ).fetchall()
    tables: dict[str, Columns] = {}
    for table, column, kind in rows:
        tables.setdefault(table, []).append((column, kind))
    return tables


def _written(pack: str, query: str, folder: Path, form: str) -> Path:
    path = folder / "rows"
    with duckdb.connect(str(warehouse(pack)), read_only=True) as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT {form})")
    return path


def in_dialect(query: str, dialect: str) -> str:
    """A query of DuckDB in another dialect; what the translator leaves is said by hand."""
    if dialect == "duckdb":
        return " ".join(query.split())
    (written,) = sqlglot.transpile(query, read="duckdb", write=dialect)
    for pattern, instead in _BY_HAND.get(dialect, ()):
        written = re.sub(pattern, instead, written)
    return written
