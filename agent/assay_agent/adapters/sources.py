"""What `assay run SOURCE` may name, recognised and made into warehouse settings.

A folder, a glob, one data file, a DuckDB or SQLite file (by its first bytes, whatever it is called) or a database URL.
Data files are loaded once (`file_loading`). Called by the command line. Invariant: a password leaves the URL before
anything is returned, stored, hashed or said; whatever cannot be used is one line of `ConfigError` that says what could.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from assay_agent.adapters.data_files import SUPPORTED, DataFile, FileKind, kind_of_file
from assay_agent.adapters.file_loading import LoadedTable, load_files
from assay_agent.ports import WarehouseSettings
from assay_core.errors import ConfigError

DATASOURCE = "default"
MAX_FILES = 5_000
"""Files of one folder; more is a sign of the wrong folder."""
_PASSWORD_KEYS = ("password", "passwd", "pass", "sslpassword", "passfile")
_BIGQUERY_KEYS = ("location", "maximum_bytes_billed", "api_endpoint")
_SCHEMA_KEYS = ("schema", "schemas", "currentSchema")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """A product behind a host; `keys` are settings of its adapter that a URL may carry after `?`."""

    provider: str
    title: str
    scheme: str
    keys: tuple[str, ...] = ()


_POSTGRES = _Server(provider="postgres", title="PostgreSQL", scheme="postgresql")
_REDSHIFT = _Server(
    provider="redshift",
    title="Redshift",
    scheme="redshift",
    keys=("iam", "cluster_identifier", "workgroup", "region", "api_endpoint"),
)
_SERVERS = {"postgresql": _POSTGRES, "postgres": _POSTGRES, "redshift": _REDSHIFT}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSource:
    """`settings` opens the warehouse; `project_id` is the same for the same path or URL, whatever the password."""

    settings: WarehouseSettings
    project_id: str
    name: str
    description: str
    loaded_tables: tuple[LoadedTable, ...] = field(default=())


def open_source(
    source: str, *, home: Path, report: Callable[[str], None], secret: str | None = None
) -> OpenedSource:
    """Recognise `source` and load its files into `<home>/warehouses` where needed; `report` gets progress lines.

    `secret` is a password from elsewhere and wins over one in a URL. Raises ConfigError.
    """
    text = source.strip()
    if not text:
        raise ConfigError(f"the source is empty; give {SUPPORTED}")
    if "://" in text:
        return _open_url(text, home=home, secret=secret)
    path = Path(os.path.abspath(os.path.expanduser(text)))
    try:
        return _open_path(text, path, home=home, report=report)
    except PermissionError as error:
        raise ConfigError(f"{error.filename or path} cannot be read: {error.strerror}") from error


def project_id_of(identity: str) -> str:
    """The project id of an absolute path or of a URL without password."""
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:24]


# ---------------------------------------------------------------------------------------------------------- URL


def _open_url(text: str, *, home: Path, secret: str | None) -> OpenedSource:
    bare, user, password = _without_credentials(text)
    try:
        url = sa.make_url(bare)
    except (ArgumentError, ValueError):
        raise ConfigError("the source is not a URL such as postgresql://user@host:5432/database") from None
    backend = url.get_backend_name()
    if backend in ("duckdb", "sqlite"):
        if not url.database or url.host:
            raise ConfigError(
                f"a {backend} URL names a file with three or four slashes: {backend}:////path/to/file"
            )
        return _database_file(backend, Path(os.path.abspath(os.path.expanduser(url.database))), home=home)
    if backend == "bigquery":
        return _bigquery(url, secret=secret)
    if backend not in _SERVERS:
        raise ConfigError(f"sources of the kind {backend}:// are not supported here; give {SUPPORTED}")
    return _server(_SERVERS[backend], url, user=user, password=password, secret=secret)


def _server(
    server: _Server, url: sa.URL, *, user: str | None, password: str | None, secret: str | None
) -> OpenedSource:
    query = dict(url.query)
    hidden = [query.pop(key) for key in list(query) if key.lower() in _PASSWORD_KEYS]
    found = password or next((value for value in hidden if isinstance(value, str)), None)
    schemas = [value for key in _SCHEMA_KEYS if isinstance(value := query.pop(key, None), str)]
    config = {key: query.pop(key) for key in server.keys if key in query}
    clean = sa.URL.create(
        server.scheme, username=user, host=url.host, port=url.port, database=url.database, query=query
    )
    shown = clean.render_as_string(hide_password=True)
    return OpenedSource(
        settings=WarehouseSettings(
            datasource_id=DATASOURCE,
            provider=server.provider,
            datasets=tuple(name.strip() for value in schemas for name in value.split(",") if name.strip()),
            config={"url": shown, **config},
            secret=secret or found,
        ),
        project_id=project_id_of("|".join([shown, *sorted(schemas)])),
        name=url.database or server.provider,
        description=f"{server.title} database {url.database} on {url.host or 'localhost'}",
    )


def _bigquery(url: sa.URL, *, secret: str | None) -> OpenedSource:
    """`bigquery://project/dataset`, or all datasets of the project; the key of an account is never in it."""
    unknown = sorted(set(url.query) - set(_BIGQUERY_KEYS))
    if not url.host or unknown:
        wrong = f"{unknown[0]} is not known" if unknown else "the project is missing"
        raise ConfigError(
            f"the BigQuery URL cannot be used: {wrong}; give bigquery://project/dataset, and after ? any of "
            f"{', '.join(_BIGQUERY_KEYS)}"
        )
    datasets = tuple(name for name in (url.database or "").split(",") if name)
    return OpenedSource(
        settings=WarehouseSettings(
            datasource_id=DATASOURCE,
            provider="bigquery",
            datasets=datasets,
            config={"project_id": url.host, **url.query},
            secret=secret,
        ),
        project_id=project_id_of("|".join(["bigquery", url.host, *sorted(datasets)])),
        name=url.database or url.host,
        description=f"BigQuery {f'dataset {url.database}' if datasets else 'datasets'} of project {url.host}",
    )


def _without_credentials(text: str) -> tuple[str, str | None, str | None]:
    """The URL without user and password, and both, decoded. The last `@` before the query ends them.

    So a password with an unescaped `@`, `:` or `/` is still taken out whole; one with `?` or `#` cannot be, and is
    refused rather than shown.
    """
    scheme, _, rest = text.partition("://")
    place, mark, query = rest.partition("?")
    if "@" in query and "@" not in place:
        raise ConfigError("the URL cannot be read safely: write ? and @ of a user or password as %3F and %40")
    credentials, at, address = place.rpartition("@")
    if not at:
        return text, None, None
    user, _, password = credentials.partition(":")
    return f"{scheme}://{address}{mark}{query}", unquote(user) or None, unquote(password) or None


# --------------------------------------------------------------------------------------------------------- path


def _open_path(text: str, path: Path, *, home: Path, report: Callable[[str], None]) -> OpenedSource:
    if path.is_dir():
        return _open_folder(path, home=home, report=report)
    if path.exists():
        if not path.is_file():
            raise ConfigError(f"{path} is neither a file nor a folder")
        kind = kind_of_file(path)
        if kind in (FileKind.DUCKDB, FileKind.SQLITE):
            return _database_file(kind.value, path, home=home)
        if kind is None:
            raise ConfigError(f"{path} is no data file that can be read; give {SUPPORTED}")
        return _load(
            [DataFile(path=path, kind=kind, folder=path.parent)], identity=path, home=home, report=report
        )
    if any(sign in text for sign in "*?["):
        found = sorted(
            Path(os.path.abspath(name)) for name in glob.glob(os.path.expanduser(text), recursive=True)
        )
        files = _data_files(
            [name for name in found if name.is_file()],
            root=Path(os.path.commonpath(found)) if found else path,
        )
        if not files:
            raise ConfigError(f"nothing matches {text} that can be read; give {SUPPORTED}")
        return _load(files, identity=path, home=home, report=report)
    raise ConfigError(f"{path} is not there; give {SUPPORTED}")


def _open_folder(path: Path, *, home: Path, report: Callable[[str], None]) -> OpenedSource:
    names = sorted(_walk(path, skipping=Path(os.path.abspath(home))))
    files = _data_files(names, root=path)
    if files:
        ignored = len(names) - len(files)
        if ignored:
            report(f"{ignored} file(s) in {path} are not data files and are left out")
        return _load(files, identity=path, home=home, report=report)
    databases = [
        (kind, name) for name in names if (kind := kind_of_file(name)) in (FileKind.DUCKDB, FileKind.SQLITE)
    ]
    if len(databases) == 1 and databases[0][0] is not None:
        return _database_file(databases[0][0].value, databases[0][1], home=home)
    if databases:
        raise ConfigError(f"{path} holds {len(databases)} databases; name one of them")
    what = "is empty" if not names else "holds no data file"
    raise ConfigError(f"{path} {what}; give {SUPPORTED}")


def _walk(path: Path, *, skipping: Path) -> list[Path]:
    found: list[Path] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith((".", "__MACOSX")) and Path(folder, name) != skipping
        )
        found.extend(Path(folder, name) for name in names if not name.startswith((".", "~$")))
        if len(found) > MAX_FILES:
            raise ConfigError(
                f"{path} holds more than {MAX_FILES:,} files; name the folder or the files more closely"
            )
    return found


def _data_files(names: list[Path], *, root: Path) -> list[DataFile]:
    kinds = [(name, kind_of_file(name)) for name in names]
    return [
        DataFile(path=name, kind=kind, folder=root)
        for name, kind in kinds
        if kind is not None and kind not in (FileKind.DUCKDB, FileKind.SQLITE)
    ]


def _database_file(provider: str, path: Path, *, home: Path) -> OpenedSource:
    if not path.is_file():
        raise ConfigError(f"{path} is not there; give {SUPPORTED}")
    kind = kind_of_file(path)
    if kind is None or kind.value != provider:
        raise ConfigError(f"{path} is not a {provider} database file")
    config = {"path": str(path)}
    if provider == "duckdb":
        config["temp_directory"] = str(home / "tmp" / path.stem)
    title = {"duckdb": "DuckDB", "sqlite": "SQLite"}[provider]
    return OpenedSource(
        settings=WarehouseSettings(datasource_id=DATASOURCE, provider=provider, config=config),
        project_id=project_id_of(str(path)),
        name=path.stem,
        description=f"{title} file {path.name}",
    )


def _load(
    files: list[DataFile], *, identity: Path, home: Path, report: Callable[[str], None]
) -> OpenedSource:
    target, tables = load_files(files, home=home, report=report)
    rows = sum(table.rows for table in tables)
    return OpenedSource(
        settings=WarehouseSettings(
            datasource_id=DATASOURCE,
            provider="duckdb",
            config={"path": str(target), "temp_directory": str(home / "tmp" / target.stem)},
        ),
        project_id=project_id_of(str(identity)),
        name=identity.stem or "files",
        description=f"{len(tables)} table(s) with {rows:,} rows, loaded from {identity.name or identity}",
        loaded_tables=tables,
    )
