"""Functions that no dialect may call, in every place of a statement; and questions about the system."""

from __future__ import annotations

from tests.unit.sql_corpus.attacks.forms import sources, spellings, values

CALLS = (
    "load_extension('x')",
    "load_extension('x', 'init')",
    "pg_sleep(10)",
    "sleep(10)",
    "benchmark(1000000, 1)",
    "waitfor_delay('0:0:10')",
    "no_such_function(1)",
    "my_udf(1, 2)",
    "system('id')",
    "shell('id')",
    "xp_cmdshell('id')",
    "sys_exec('id')",
    "sys_eval('id')",
    "eval('1')",
    "getenv('HOME')",
    "current_setting('x')",
    "set_config('a', 'b', false)",
    "readfile('/etc/passwd')",
    "writefile('/tmp/x', 'y')",
    "load_file('/etc/passwd')",
    "file_read('/etc/passwd')",
    "nextval('s')",
    "currval('s')",
    "setval('s', 1)",
    "lastval()",
    "http_get('http://x')",
    "http_post('http://x', 'y')",
    "url_fetch('http://x')",
    "dblink('host=x', 'SELECT 1')",
    "dblink_exec('host=x', 'DROP TABLE t')",
    "get_lock('x', 10)",
    "release_lock('x')",
    "extractvalue(1, 'x')",
    "updatexml(1, 'x', 'y')",
    "utl_http.request('http://x')",
    "dbms_lock.sleep(10)",
    "sqlite_version_evil()",
    "ai_complete('x')",
)

TABLE_CALLS = (
    "read_file('/etc/passwd')",
    "read_csv('/etc/passwd')",
    "external_query('c', 'SELECT 1')",
    "openrowset('x', 'y', 'z')",
    "s3('http://x', 'CSV')",
    "url('http://x', 'CSV')",
    "file('/etc/passwd')",
    "remote('host', 'db', 't')",
    "mysql('host', 'db', 't')",
    "no_such_rows(1)",
    "query('SELECT 1')",
    "eval_rows('SELECT 1')",
)

FUNCTIONS = (
    *values(CALLS),
    *sources(TABLE_CALLS, each=2),
    *spellings(
        ("load_extension", "pg_sleep", "readfile", "writefile", "system", "eval", "getenv", "set_config")
    ),
    "SELECT sum(x) FILTER (WHERE load_extension('x') = 1) FROM t",
    "SELECT sum(x) OVER (PARTITION BY load_extension('x')) FROM t",
    "SELECT sum(x) OVER (ORDER BY a ROWS BETWEEN load_extension('x') PRECEDING AND CURRENT ROW) FROM t",
    "VALUES (load_extension('x'))",
    "SELECT * FROM t WHERE (a, b) = (1, load_extension('x'))",
    "SELECT upper(lower(trim(load_extension('x'))))",
    "WITH load_extension(a) AS (SELECT 1) SELECT load_extension('x') FROM load_extension",
    "WITH load_extension AS (SELECT 1 AS a) SELECT load_extension('x') FROM load_extension",
    "SELECT load_extension('x') FROM t AS load_extension(a)",
    "SELECT abs(1), load_extension('x'), abs(2)",
    "SELECT CAST(load_extension('x') AS integer)",
    "SELECT NOT load_extension('x')",
    "SELECT -load_extension('x')",
    "SELECT 'a' || load_extension('x') || 'b'",
    "SELECT load_extension('x') IS NULL",
    "SELECT a LIKE load_extension('x') FROM t",
)

SYSTEM = (
    *sources(
        (
            "information_schema.tables",
            "INFORMATION_SCHEMA.COLUMNS",
            "Information_Schema.Schemata",
            "information_schema.views",
            "information_schema.table_privileges",
            "information_schema.routines",
        )
    ),
    "SELECT (SELECT count(*) FROM information_schema.tables)",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM information_schema.schemata)",
    "WITH a AS (SELECT * FROM information_schema.tables) SELECT * FROM a",
    "SELECT current_user",
    "SELECT CURRENT_USER",
    "SELECT current_user, count(*) FROM t",
    "SELECT a FROM t WHERE b = current_user",
)
