"""What `assay run SOURCE` accepts: files of every kind and state, databases by content, URLs; and what it says otherwise."""

from __future__ import annotations

import gzip
import os
import random
import resource
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assay_agent.adapters import duckdb as duckdb_adapter
from assay_agent.adapters import sqlite as sqlite_adapter
from assay_agent.adapters.nycflights import load_nycflights
from assay_agent.adapters.sources import OpenedSource, open_source
from assay_agent.ports import QueryLimits
from assay_core.errors import ConfigError

LIMITS = QueryLimits(rows=100, cell_chars=100, result_bytes=1 << 20, timeout_s=20)
CSV = "id,name,made\n1,Ann,2020-01-02\n2,Bea,2020-01-03\n"

Opener = Callable[..., OpenedSource]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def opener(tmp_path: Path, said: list[str]) -> Opener:
    def open_it(source: object, **more: Any) -> OpenedSource:
        return open_source(str(source), home=tmp_path / "home", report=said.append, **more)

    return open_it


def rows(opened: OpenedSource, sql: str) -> list[tuple[Any, ...]]:
    warehouse = (duckdb_adapter if opened.settings.provider == "duckdb" else sqlite_adapter).open_warehouse(
        opened.settings
    )
    try:
        return list(warehouse.execute(sql, limits=LIMITS).rows)
    finally:
        warehouse.close()


def tables(opened: OpenedSource) -> dict[str, int]:
    return {table.name: table.rows for table in opened.loaded_tables}


def test_a_csv_file_becomes_a_table_with_types(data: Path, opener: Opener, said: list[str]) -> None:
    (data / "My People (2020).csv").write_text(CSV)
    opened = opener(data / "My People (2020).csv")
    assert tables(opened) == {"my_people_2020": 2}
    assert opened.settings.provider == "duckdb"
    assert opened.name == "My People (2020)"
    assert said == ["[1/1] my_people_2020: 2 rows from My People (2020).csv"]
    assert rows(
        opened, "SELECT sum(id), min(made)::VARCHAR, typeof(any_value(made)) FROM my_people_2020"
    ) == [(3, "2020-01-02", "DATE")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", CSV.encode()),
        ("t.tsv", CSV.replace(",", "\t").encode()),
        ("t.txt", CSV.replace(",", ";").encode()),
        ("t.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("t.csv", CSV.encode("utf-16")),
        ("t.csv", CSV.replace("\n", "\r\n").encode()),
        ("t.csv", CSV.replace("\n", "\r").encode()),
        ("t.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("t.json", b'[{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bea", "x": {"y": [1]}}]'),
        ("t.ndjson", b'{"id": 1, "name": "Ann"}\n{"id": 2, "name": "Bea"}\n'),
        ("t.jsonl", b'\xef\xbb\xbf{"id": 1, "name": "Ann"}\n{"id": 2, "name": "Bea"}\n'),
        ("t.json.gz", gzip.compress(b'[{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bea"}]', mtime=0)),
    ],
)
def test_the_usual_text_files_are_read(data: Path, opener: Opener, name: str, content: bytes) -> None:
    (data / name).write_bytes(content)
    opened = opener(data / name)
    assert tables(opened) == {"t": 2}
    assert rows(opened, "SELECT name FROM t ORDER BY id") == [("Ann",), ("Bea",)]


def test_a_zip_of_one_csv_and_a_parquet_file_are_read(data: Path, opener: Opener) -> None:
    with zipfile.ZipFile(data / "packed.csv.zip", "w") as archive:
        archive.writestr("inner.csv", CSV)
        archive.writestr("__MACOSX/._inner.csv", "junk")
    assert tables(opener(data / "packed.csv.zip")) == {"packed": 2}
    duckdb.sql(f"COPY (SELECT 1 AS a, [1, 2] AS b) TO '{data / 'p.parquet'}'")
    assert rows(opener(data / "p.parquet"), "SELECT a, b FROM p") == [(1, [1, 2])]


def test_text_that_is_not_utf8_is_read_as_western_and_says_so(data: Path, opener: Opener) -> None:
    (data / "t.csv").write_bytes("a,b\n1,Größe\n".encode("latin-1"))
    opened = opener(data / "t.csv")
    assert rows(opened, "SELECT b FROM t") == [("Größe",)]
    assert "Windows-1252" in opened.loaded_tables[0].note
    warehouse = duckdb_adapter.open_warehouse(opened.settings)
    assert "Windows-1252" in warehouse.describe(["main.t"])[0].comment
    warehouse.close()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b,c\n", (0, 3, "no rows")),
        ("name\nx\ny\n", (2, 1, "")),
        ("a,b,c\n1,2,3\n4,5\n6,7,8,9\n", (3, 4, "differing length")),
        ("a,b\n1,NA\nNA,2\n", (2, 2, "NULL")),
        ("title of it\n\na,b\n1,2\n3,4\n", (2, 2, "before the header")),
        ("a,a,,\n1,2,3,4\n", (1, 4, "")),
        (",".join(f"c{n}" for n in range(2_000)) + "\n" + ",".join("1" * 2_000) + "\n", (1, 2_000, "")),
        ("a\n" + "1\n" * 150_000 + "x\n", (150_001, 1, "")),
        ('a,b\n1,"' + "x" * 5_000_000 + '"\n2,y\n', (2, 2, "")),
    ],
)
def test_an_odd_csv_is_loaded_as_far_as_is_honest(
    data: Path, opener: Opener, content: str, expected: tuple[int, int, str]
) -> None:
    count, columns, note = expected
    (data / "t.csv").write_text(content)
    (table,) = opener(data / "t.csv").loaded_tables
    assert (table.rows, table.columns) == (count, columns)
    assert note in table.note
    assert bool(table.note) == bool(note)


def test_leading_zeros_stay_text(data: Path, opener: Opener) -> None:
    (data / "t.csv").write_text("code,n\n01234,1\n00501,2\n")
    assert rows(opener(data / "t.csv"), "SELECT code FROM t ORDER BY n") == [("01234",), ("00501",)]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "is empty (0 bytes)"),
        ("t.csv", random.Random(1).randbytes(5_000), "is not text: byte"),
        ("t.csv.gz", b"no gzip", "cannot be unpacked"),
        ("t.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:20], "cannot be unpacked"),
        ("t.json", b'[{"a": 1}, {"b', "cannot be read as JSON"),
        ("t.json", b"hello", "cannot be read as JSON"),
        ("t.parquet", b"PAR1 garbage", "cannot be read as Parquet"),
        ("t.xlsx", b"PK\x03\x04...", "no data file that can be read; give a folder"),
        ("t.pdf", b"%PDF", "no data file that can be read; give a folder"),
    ],
)
def test_what_is_no_data_is_one_line_that_names_the_file(
    data: Path, opener: Opener, name: str, content: bytes, words: str
) -> None:
    (data / name).write_bytes(content)
    with pytest.raises(ConfigError) as failed:
        opener(data / name)
    text = str(failed.value)
    assert text.startswith(str(data / name))
    assert words in text
    assert "\n" not in text
    assert len(text) < 700


def test_a_zip_of_two_is_refused(data: Path, opener: Opener) -> None:
    with zipfile.ZipFile(data / "t.csv.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)
    with pytest.raises(ConfigError, match="must hold exactly one"):
        opener(data / "t.csv.zip")


def test_a_folder_is_one_table_per_file_and_one_per_folder_of_parts(
    data: Path, opener: Opener, said: list[str]
) -> None:
    (data / "people.csv").write_text(CSV)
    (data / "People.json").write_text('[{"a": 1}]')
    (data / ".hidden.csv").write_text(CSV)
    (data / "notes.md").write_text("# notes")
    (data / "broken.json").write_text("{")
    (data / "sales").mkdir()
    for month in range(3):
        (data / "sales" / f"part-{month}.csv").write_text(f"month,total\n{month},{month * 10}\n")
    (data / "mixed").mkdir()
    (data / "mixed" / "people.csv").write_text("x\n1\n")
    (data / "mixed" / "other.csv").write_text("y,z\n1,2\n")
    opened = opener(data)
    assert tables(opened) == {
        "people": 2,
        "people_2": 1,
        "sales": 3,
        "mixed_people": 1,
        "other": 1,
    } or tables(opened) == {"people": 1, "people_2": 2, "sales": 3, "mixed_people": 1, "other": 1}
    assert rows(opened, "SELECT sum(total) FROM sales") == [(30,)]
    assert any("left out" in line and "broken.json" in line for line in said)
    assert any("1 file(s)" in line and "not data files" in line for line in said)


def test_a_glob_takes_what_matches(data: Path, opener: Opener) -> None:
    for name in ("a1.csv", "a2.csv", "b.csv"):
        (data / name).write_text(CSV)
    assert set(tables(opener(data / "a*.csv"))) == {"a1", "a2"}
    with pytest.raises(ConfigError, match="nothing matches"):
        opener(data / "z*.csv")


def test_nothing_there_says_what_could_be(data: Path, opener: Opener) -> None:
    for source, words in (
        (data / "missing.csv", "is not there"),
        (data, "is empty"),
        ("", "the source is empty"),
        ("http://example.com/x.csv", "http:// are not supported"),
        ("mysql://h/db", "mysql:// are not supported"),
        ("/dev/null", "neither a file nor a folder"),
    ):
        with pytest.raises(ConfigError, match=words) as failed:
            opener(source)
        assert "\n" not in str(failed.value)
    (data / "x.docx").write_text("x")
    with pytest.raises(ConfigError, match="holds no data file; give a folder"):
        opener(data)


def test_a_database_is_known_by_its_content_and_opened_as_it_is(data: Path, opener: Opener) -> None:
    lite = sqlite3.connect(data / "a.csv")
    lite.execute("CREATE TABLE t (a INTEGER)")
    lite.commit()
    lite.close()
    opened = opener(data / "a.csv")
    assert opened.settings.provider == "sqlite"
    assert rows(opened, "SELECT count(*) FROM t") == [(0,)]
    with duckdb.connect(str(data / "b.sqlite")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 5 AS a")
    opened = opener(data / "b.sqlite")
    assert opened.settings.provider == "duckdb"
    assert rows(opened, "SELECT a FROM t") == [(5,)]
    assert rows(opener(f"duckdb:///{data / 'b.sqlite'}"), "SELECT a FROM t") == [(5,)]
    assert opener(f"sqlite:///{data / 'a.csv'}").settings.provider == "sqlite"
    with pytest.raises(ConfigError, match="is not a sqlite database"):
        opener(f"sqlite:///{data / 'b.sqlite'}")
    with (
        pytest.raises(ConfigError, match="holds 2 databases")
        if not list(data.glob("*.json"))
        else pytest.raises(ConfigError)
    ):
        opener(data)


@pytest.mark.parametrize(
    ("url", "secret", "config"),
    [
        ("postgresql://u:pw@h:5433/db", "pw", "postgresql://u@h:5433/db"),
        ("postgres://u:p%40ss@h/db", "p@ss", "postgresql://u@h/db"),
        ("postgresql+psycopg://u:p@ss:w/rd@h/db", "p@ss:w/rd", "postgresql://u@h/db"),
        ("postgresql://u@h/db?password=pw&sslmode=require", "pw", "postgresql://u@h/db?sslmode=require"),
        ("postgresql://h/db", None, "postgresql://h/db"),
    ],
)
def test_a_password_leaves_the_url_first(opener: Opener, url: str, secret: str | None, config: str) -> None:
    opened = opener(url)
    assert opened.settings.secret == secret
    assert opened.settings.config == {"url": config}
    assert opened.settings.provider == "postgres"
    assert opened.name == "db"
    if secret:
        shown = repr(opened) + opened.project_id + opened.description
        assert secret not in shown.replace("password", "")


def test_a_url_that_cannot_be_read_is_not_repeated(opener: Opener) -> None:
    for url in (
        "postgresql://u:s3cr3t?x@h/db",
        "postgresql://u:s3cr3t@h:port/db",
        "postgresql://u:s3cr3t@[::1/db",
    ):
        with pytest.raises(ConfigError) as failed:
            opener(url)
        assert "s3cr3t" not in str(failed.value)


@pytest.mark.parametrize(
    ("url", "datasets", "config"),
    [
        ("bigquery://shop-1/sales", ("sales",), {"project_id": "shop-1"}),
        ("bigquery://shop-1/sales,web", ("sales", "web"), {"project_id": "shop-1"}),
        ("bigquery://shop-1", (), {"project_id": "shop-1"}),
        ("bigquery://shop-1/sales?location=EU", ("sales",), {"project_id": "shop-1", "location": "EU"}),
    ],
)
def test_a_bigquery_url_names_project_and_datasets(
    opener: Opener, url: str, datasets: tuple[str, ...], config: dict[str, str]
) -> None:
    opened = opener(url, secret="key")
    assert opened.settings.provider == "bigquery"
    assert opened.settings.datasets == datasets
    assert opened.settings.config == config
    assert opened.settings.secret == "key"


def test_a_bigquery_url_that_says_too_little_or_too_much_is_refused(opener: Opener) -> None:
    with pytest.raises(ConfigError, match="the project is missing; give bigquery://project/dataset"):
        opener("bigquery:///sales")
    with pytest.raises(ConfigError, match="credentials_path is not known"):
        opener("bigquery://shop-1/sales?credentials_path=/key.json")


def test_a_redshift_url_may_ask_for_a_password_of_aws(opener: Opener) -> None:
    opened = opener(
        "redshift://analyst@c.abc.eu-west-1.redshift.amazonaws.com/dev?iam=true&schema=sales,lake"
    )
    assert opened.settings.provider == "redshift"
    assert opened.settings.datasets == ("sales", "lake")
    assert opened.settings.config == {
        "url": "redshift://analyst@c.abc.eu-west-1.redshift.amazonaws.com/dev",
        "iam": "true",
    }
    assert (opened.settings.secret, opened.name) == (None, "dev")
    known = opener("redshift://u:p%40ss@h:5439/dev?sslmode=verify-full")
    assert known.settings.secret == "p@ss"
    assert known.settings.config == {"url": "redshift://u@h:5439/dev?sslmode=verify-full"}
    assert "p@ss" not in repr(known)


def test_schemas_and_a_secret_from_elsewhere(opener: Opener) -> None:
    opened = opener("postgresql://u:old@h/db?schema=a,b", secret="new")
    assert opened.settings.datasets == ("a", "b")
    assert opened.settings.secret == "new"


def test_the_project_is_the_same_for_the_same_source(
    data: Path, opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "t.csv").write_text(CSV)
    first = opener(data / "t.csv")
    monkeypatch.chdir(data)
    assert opener("t.csv").project_id == opener("./../data/t.csv").project_id == first.project_id
    assert opener(data).project_id != first.project_id
    one, two, other = (
        opener(url) for url in ("postgresql://u:a@h/db", "postgresql://u:b@h/db", "postgresql://u@h/x")
    )
    assert one.project_id == two.project_id != other.project_id


def test_the_same_files_are_loaded_once_and_changed_ones_again(
    data: Path, opener: Opener, said: list[str]
) -> None:
    (data / "t.csv").write_text(CSV)
    first = opener(data / "t.csv")
    second = opener(data / "t.csv")
    assert second == first
    assert said[-1].startswith("using ")
    (data / "t.csv").write_text(CSV + "3,Cid,2020-01-04\n")
    third = opener(data / "t.csv")
    assert third.settings.config["path"] != first.settings.config["path"]
    assert tables(third) == {"t": 3}
    assert third.project_id == first.project_id


def test_several_threads_may_load_the_same_files(data: Path, opener: Opener) -> None:
    (data / "t.csv").write_text("a,b\n" + "".join(f"{n},x\n" for n in range(20_000)))
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: opener(data / "t.csv"), range(4)))
    assert len({one.settings.config["path"] for one in opened}) == 1
    assert tables(opened[0]) == {"t": 20_000}
    folder = Path(opened[0].settings.config["path"]).parent
    assert [path.suffix for path in folder.iterdir()] == [".duckdb"]


def test_what_was_loaded_is_open_for_reading_only_and_reaches_nothing_else(
    data: Path, opener: Opener
) -> None:
    (data / "t.csv").write_text(CSV)
    opened = opener(data)
    for sql in (
        f"SELECT * FROM read_csv('{data / 't.csv'}')",
        f"SELECT * FROM '{data / 't.csv'}'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        f"ATTACH '{data / 'x.duckdb'}'",
        f"COPY t TO '{data / 'stolen.csv'}'",
        "INSTALL httpfs",
        "LOAD httpfs",
    ):
        with pytest.raises(
            Exception, match=r"(?i)disabled|locked|read-only|syntax|permission|not allowed|cannot"
        ):
            rows(opened, sql)
    assert not (data / "stolen.csv").exists()


def test_a_home_that_cannot_be_written_is_one_line(data: Path, tmp_path: Path) -> None:
    (data / "t.csv").write_text(CSV)
    home = tmp_path / "file"
    home.write_text("in the way")
    with pytest.raises(ConfigError, match="cannot be written") as failed:
        open_source(str(data / "t.csv"), home=home, report=lambda _: None)
    assert "\n" not in str(failed.value)


def test_a_full_disk_is_one_line(data: Path, tmp_path: Path) -> None:
    (data / "t.csv").write_text("a,b\n" + "".join(f"{n},{n * 7919 % 1_000_003}\n" for n in range(300_000)))
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from assay_agent.adapters.sources import open_source; from assay_core.errors import ConfigError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))\n"
        "try: open_source(sys.argv[1], home=Path(sys.argv[2]), report=lambda _: None)\n"
        "except ConfigError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(data / "t.csv"), str(tmp_path / "home")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert "cannot be written" in done.stdout
    assert done.stdout.count("\n") == 1


def test_a_file_that_may_not_be_read_is_one_line(data: Path, opener: Opener) -> None:
    (data / "t.csv").write_text(CSV)
    if os.geteuid() == 0:
        assert resource.getrlimit(resource.RLIMIT_NOFILE)  # root reads everything: nothing to see here
        return
    (data / "t.csv").chmod(0)
    with pytest.raises(ConfigError, match="cannot be read"):
        opener(data / "t.csv")


def test_a_database_another_program_writes_is_one_line_that_says_whom_to_ask(
    data: Path, opener: Opener
) -> None:
    path = data / "busy.duckdb"
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import duckdb; c = duckdb.connect({str(path)!r}); c.execute('CREATE TABLE t (a int)'); "
            "c.execute('CHECKPOINT'); print('ready', flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    try:
        assert holder.stdout.readline() == b"ready\n"
        opened = opener(path)
        with pytest.raises(ConfigError, match="locked by another program; ask whoever") as failed:
            duckdb_adapter.open_warehouse(opened.settings)
        assert "\n" not in str(failed.value)
    finally:
        holder.stdin.close()
        holder.wait(20)
        holder.stdout.close()


def test_the_flights_data_has_five_related_tables_with_types(tmp_path: Path) -> None:
    path = load_nycflights(tmp_path)
    assert load_nycflights(tmp_path) == path
    opened = open_source(str(path), home=tmp_path, report=lambda _: None)
    warehouse = duckdb_adapter.open_warehouse(opened.settings)
    assert [(table.ref, table.row_count) for table in warehouse.tables()] == [
        ("main.airlines", 16),
        ("main.airports", 1_458),
        ("main.flights", 336_776),
        ("main.planes", 3_322),
        ("main.weather", 26_115),
    ]
    (flights,) = warehouse.describe(["flights"])
    kinds = {column.name: column.type for column in flights.columns}
    assert kinds["time_hour"] == "TIMESTAMP"
    assert kinds["dep_delay"] == "BIGINT"
    result = warehouse.execute(
        "SELECT count(*) FILTER (WHERE dep_delay IS NULL), count(*) FILTER (WHERE tailnum = 'NA') FROM flights",
        limits=LIMITS,
    )
    assert result.rows == ((8_255, 0),)
    warehouse.close()
