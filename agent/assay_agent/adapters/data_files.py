"""Recognising data files by their first bytes and names, and making their text UTF-8.

Used by `sources` and `file_loading`. Text is checked as a whole before a parser sees it, so that a binary file or a
wrong encoding is named with its byte, instead of failing somewhere inside a parser.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zipfile
import zlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, cast

from assay_core.errors import ConfigError

SUPPORTED = (
    "a folder, a glob, a CSV, TSV, Parquet, JSON or NDJSON file (also .gz, or a .zip of one), "
    "a DuckDB or SQLite file, or a URL postgresql://, redshift://, bigquery://, duckdb:/// or sqlite:///"
)
CHUNK = 1 << 20
_TEXT_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".psv": "csv",
    ".json": "json",
    ".ndjson": "json",
    ".jsonl": "json",
}
_PACKED = (".gz", ".zip")


class FileKind(StrEnum):
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    DUCKDB = "duckdb"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file to load; `folder` is what the source named, so that files below it can be told apart."""

    path: Path
    kind: FileKind
    folder: Path


def kind_of_file(path: Path) -> FileKind | None:
    """By magic bytes where a format has them, else by suffix; None for what cannot be loaded."""
    with path.open("rb") as stream:
        head = stream.read(16)
    if head.startswith(b"SQLite format 3\x00"):
        return FileKind.SQLITE
    if head[8:12] == b"DUCK":
        return FileKind.DUCKDB
    if head.startswith(b"PAR1"):
        return FileKind.PARQUET
    found = _TEXT_SUFFIXES.get(_inner_suffix(path))
    if found is None and path.suffix.lower() == ".zip" and head.startswith(b"PK"):
        return _kind_in_zip(path)
    return FileKind(found) if found else None


def plain_stem(path: Path) -> str:
    """The file's name without its data and packing suffixes."""
    name = path.name
    for suffixes in (_PACKED, (*_TEXT_SUFFIXES, ".parquet", ".pq")):
        lowered = name.lower()
        name = next((name[: -len(suffix)] for suffix in suffixes if lowered.endswith(suffix)), name)
    return name or path.stem


def _inner_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in _PACKED else suffix


def _kind_in_zip(path: Path) -> FileKind | None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive)
    except (zipfile.BadZipFile, OSError):
        return None
    kinds = {_TEXT_SUFFIXES.get(Path(name).suffix.lower()) for name in members}
    return FileKind(found) if len(members) == 1 and (found := kinds.pop()) else None


def _members(archive: zipfile.ZipFile) -> list[str]:
    return [
        name
        for name in archive.namelist()
        if not name.endswith("/") and not name.startswith("__MACOSX") and not Path(name).name.startswith(".")
    ]


# --------------------------------------------------------------------------------------------------------- text


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A UTF-8 file a parser can read: the original, or a copy. `note` says what was done to it, for people."""

    path: Path
    note: str = ""
    lines: int = 0


def as_utf8(path: Path, *, folder: Path) -> TextFile:
    """`path` unpacked and in UTF-8, copied into `folder` when it is not so already. Raises ConfigError."""
    try:
        size = path.stat().st_size
        if size == 0:
            raise ConfigError(f"{path} is empty (0 bytes); a table needs a header and rows")
        with _unpacked(path) as stream:
            encoding, lines = _encoding(stream, path)
        packed = path.suffix.lower() in _PACKED
        if encoding == "utf-8" and not packed:
            return TextFile(path=path, lines=lines)
        copy = folder / f"{abs(hash(path))}.txt"
        with _unpacked(path) as stream, copy.open("wb") as target:
            _transcode(stream, target, encoding)
    except (zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ConfigError(f"{path} cannot be unpacked: {error}") from error
    note = "" if encoding == "utf-8" else f"read as {encoding}"
    if encoding == "cp1252":
        note = "not UTF-8: read as Western European (Windows-1252), so letters outside it may be wrong"
    return TextFile(path=copy, note=note, lines=lines)


def _unpacked(path: Path) -> IO[bytes]:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if suffix == ".zip":
        archive = zipfile.ZipFile(path)
        members = _members(archive)
        if len(members) != 1:
            archive.close()
            raise ConfigError(f"{path} holds {len(members)} files; a .zip must hold exactly one")
        return archive.open(members[0])
    return path.open("rb")


def _encoding(stream: IO[bytes], path: Path) -> tuple[str, int]:
    """The encoding and the number of line ends, from the whole text. Raises ConfigError for what is no text."""
    head = stream.read(4)
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark):
            if name == "utf-16":
                return name, 2
            break
    decoder = codecs.getincrementaldecoder("utf-8")()
    position, lines, valid = 0, 0, True
    chunk = head
    while chunk:
        if b"\x00" in chunk:
            where = position + chunk.index(b"\x00")
            raise ConfigError(
                f"{path} is not text: byte {where:,} is NUL; expected UTF-8, UTF-16 with a mark, or Latin text"
            )
        if valid:
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                valid = False
        lines += chunk.count(b"\n") or chunk.count(b"\r")
        position += len(chunk)
        chunk = stream.read(CHUNK)
    if valid:
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            valid = False
    if valid:
        return "utf-8", lines
    return "cp1252", lines


def _transcode(stream: IO[bytes], target: IO[bytes], encoding: str) -> None:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    while chunk := stream.read(CHUNK):
        target.write(decoder.decode(chunk).encode("utf-8", "replace"))
    target.write(decoder.decode(b"", final=True).encode("utf-8", "replace"))


def table_name(stem: str) -> str:
    """A table name from a file name: lower case, letters, digits and underscores, not starting with a digit."""
    name = re.sub(r"\W+", "_", stem.strip().lower()).strip("_")
    name = re.sub(r"__+", "_", name)[:60].rstrip("_")
    if not name:
        return "data"
    return f"t_{name}" if name[0].isdigit() else name
