"""Tests of the analysis of statements by a real server's parser: which of them are deterministic."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from fuzz.execution.source_database import SourceDatabase
from fuzz.sources.determinism.analysis import Unanalysable, doubts, is_determined_query, is_quick
from fuzz.sources.determinism.catalog import Catalog
from oracles.model.case import Step

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

SCENE = (
    Step("CREATE TABLE t (a int PRIMARY KEY, b text, c float8, d timestamptz, e numeric)"),
    Step("INSERT INTO t SELECT g, g, g, '2024-01-01', g FROM generate_series(1, 1000) AS g"),
    Step("CREATE FUNCTION own(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'"),
    Step("CREATE VIEW unstable AS SELECT a, random() AS r FROM t"),
    Step("CREATE VIEW stable AS SELECT a FROM t"),
    Step("CREATE VIEW few AS SELECT a, b FROM t ORDER BY b LIMIT 3"),
    Step("CREATE VIEW page AS SELECT a FROM (SELECT a, b FROM t OFFSET 3) AS s"),
    Step("CREATE VIEW each AS SELECT DISTINCT ON (b) b, a FROM t ORDER BY b"),
    Step("CREATE VIEW sorted AS (SELECT a, b FROM t ORDER BY b, a LIMIT 3) UNION ALL SELECT a, b FROM t"),
    Step("CREATE VIEW firsts AS SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, a"),
    Step("CREATE VIEW ties AS SELECT a, b FROM t ORDER BY b FETCH FIRST 3 ROWS WITH TIES"),
)


@pytest.fixture(scope="module")
def connection(target: SourceDatabase) -> Iterator[psycopg.Connection[Any]]:
    with target.session(SCENE) as connection:
        yield connection


@pytest.fixture(scope="module")
def catalog(connection: psycopg.Connection[Any]) -> Catalog:
    return Catalog.of(connection)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, b || 'x', upper(b), own(a) FROM t WHERE a IN (1, 2) AND b ~ 'a'",
        "SELECT count(*), sum(a), avg(e), max(b), bool_and(a > 1), stddev(a) FROM t",
        "SELECT array_agg(a ORDER BY a), string_agg(DISTINCT b, ',' ORDER BY b), sum(c ORDER BY c) FROM t",
        "SELECT sum(a) OVER (PARTITION BY b ORDER BY e) FROM t",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY c) FROM t",
        "SELECT to_char(d, 'YYYY'), d + interval '1 day', date_trunc('day', d), extract(epoch FROM d) FROM t",
        "SELECT a FROM stable UNION ALL SELECT a FROM t",
        "SELECT a FROM sorted, LATERAL (SELECT count(*) FROM ties) AS s UNION ALL SELECT a FROM firsts",
        "SELECT t.a, s.a FROM t, LATERAL (SELECT u.a FROM t AS u WHERE u.a < t.a) AS s",
        "INSERT INTO t (a) VALUES (5000) ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING a",
        "UPDATE t SET b = 'x' WHERE a = 1",
        "DELETE FROM t USING t AS u WHERE t.a = u.a",
        "MERGE INTO t USING t AS u ON t.a = u.a WHEN MATCHED THEN DELETE",
    ],
)
def test_deterministic_statements_have_no_doubts(
    connection: psycopg.Connection[Any], catalog: Catalog, sql: str
) -> None:
    assert doubts(connection, catalog, sql) == frozenset()


@pytest.mark.parametrize(
    ("sql", "determined"),
    [
        ("SELECT a, sum(a) OVER (PARTITION BY b ORDER BY e) FROM stable JOIN t USING (a)", True),
        ("SELECT a FROM t ORDER BY a LIMIT 3", True),
        ("SELECT a FROM t LIMIT 3", False),
        ("SELECT a, b FROM t ORDER BY b LIMIT 3", False),
        ("SELECT DISTINCT ON (b) b, a FROM t ORDER BY b", False),
        ("SELECT random() FROM t", False),
        ("SELECT a FROM t FOR UPDATE", False),
        ("WITH d AS (DELETE FROM t RETURNING a) SELECT a FROM d", False),
        ("UPDATE t SET b = 'x' WHERE a = 1", False),
    ],
)
def test_queries_that_nobody_repaired_are_determined_only_if_they_need_no_repair(
    connection: psycopg.Connection[Any], catalog: Catalog, sql: str, *, determined: bool
) -> None:
    assert is_determined_query(connection, catalog, sql) == determined


@pytest.mark.parametrize(
    ("sql", "doubt"),
    [
        ("SELECT network_cmp('192.168.1.5', '0.0.0.0')", "function network_cmp"),  # of memcmp, 192 or 1
        ("SELECT random() FROM t", "function random"),
        ("TABLE pgduel_tools.numbers_before", "relation of pgduel"),
        ("INSERT INTO pgduel_tools.numbers_before DEFAULT VALUES", "relation of pgduel"),
        ("SELECT now()", "function now"),
        ("SELECT current_timestamp", "session's value"),
        ("SELECT a FROM t WHERE b = current_user", "session's value"),
        ("SELECT pg_backend_pid()", "function pg_backend_pid"),
        ("SELECT age(d) FROM t", "function age"),
        ("SELECT pg_postmaster_start_time()", "function pg_postmaster_start_time"),
        ("SELECT pg_column_size(b) FROM t", "function pg_column_size"),
        ("SELECT 't'::regclass::oid = 1 FROM t WHERE to_regclass(b) IS NULL", "function to_regclass"),
        ("SELECT sum(c) FROM t", "aggregate sum"),
        ("SELECT array_agg(a) FROM t", "aggregate array_agg"),
        ("SELECT json_agg(a) FROM t", "aggregate json_agg"),
        ("SELECT any_value(a) FROM t", "aggregate any_value"),
        ("SELECT row_number() OVER (ORDER BY b) FROM t", "window function row_number"),
        ("SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING) FROM t", "frame of rows"),
        ("SELECT ctid FROM t", "system column"),
        ("SELECT relname FROM pg_class", "system catalog"),
        ("SELECT a FROM t TABLESAMPLE system (50)", "random sample"),
        ("SELECT a FROM unstable", "function random"),
        ("SELECT a FROM few", "view of some rows"),
        ("SELECT a FROM page", "view of some rows"),
        ("SELECT a FROM each", "view of some rows"),
        ("SELECT table_name FROM information_schema.tables", "system catalog"),
        ("SELECT (SELECT max(x) FROM (SELECT random() AS x FROM t) AS s)", "function random"),
        ("UPDATE t SET b = u.b FROM t AS u WHERE u.a > t.a", "update by a join"),
        ("INSERT INTO t (a) SELECT a + 1 FROM t ON CONFLICT DO NOTHING", "several rows in conflict"),
    ],
)
def test_other_statements_have_doubts(
    connection: psycopg.Connection[Any], catalog: Catalog, sql: str, doubt: str
) -> None:
    assert doubt in doubts(connection, catalog, sql)


@pytest.mark.parametrize("sql", ["SELECT nothing FROM t", "CREATE TABLE u (a int)", "SELECT 1; END; SELECT 2"])
def test_statements_that_the_parser_refuses_raise_unanalysable(
    connection: psycopg.Connection[Any], catalog: Catalog, sql: str
) -> None:
    with pytest.raises(Unanalysable):
        doubts(connection, catalog, sql)


def test_the_analysis_leaves_nothing(connection: psycopg.Connection[Any], catalog: Catalog) -> None:
    doubts(connection, catalog, "DELETE FROM t")
    kept = "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM pg_proc WHERE proname LIKE 'pgduel_analysed%')"
    assert connection.execute(kept).fetchone() == (1000, 0)


def test_slow_queries_have_high_estimates(connection: psycopg.Connection[Any]) -> None:
    assert is_quick(connection, "SELECT a FROM t")
    assert not is_quick(connection, "SELECT 1 FROM t AS x, t AS y, t AS z")
    assert is_quick(connection, "SELECT nothing FROM t")
