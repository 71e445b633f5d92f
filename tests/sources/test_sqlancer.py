"""Tests of SQLancer's logs and reports, of its jar, and of its command line."""

import stat
from pathlib import Path

import pytest

from fuzz.errors import CaseError
from fuzz.servers.relay import Login
from fuzz.sources.determinism.catalog import Catalog, Function
from fuzz.sources.sqlancer.logs import SqlancerLog, divided, equal_queries, named, read_log, scene_of
from fuzz.sources.sqlancer.options import SqlancerRun, argument_file
from fuzz.sources.sqlancer.running import class_path, command_of, lacking

HEAD = """\
-- Time: 2026/11/21 16:08:52
-- Database: lancer0
-- Database version: 17.11
-- seed value: 7
\\c test;
DROP DATABASE FORCE IF EXISTS lancer0;
CREATE DATABASE lancer0 WITH ENCODING 'UTF8' TEMPLATE template0;
\\c lancer0;
CREATE TABLE t0(c0 int);
SET SESSION statement_timeout = 5000;\\n;
INSERT INTO t0(c0) VALUES(1);
"""
TRACE = """\
--\tat sqlancer.common.oracle.NoRECOracle.check(NoRECOracle.java:130)
--\t... 9 more
"""


def report(message: str, *ending: str) -> SqlancerLog:
    """Return the log of a report, in which each line of the exception is a comment."""
    thrown = "\n--".join(f"java.lang.AssertionError: {message}".split("\n"))
    return read_log(f"--{thrown}\n{TRACE}--{HEAD}" + "".join(f"{line}\n" for line in ending))


def test_statements_are_read_without_those_about_databases() -> None:
    log = read_log(HEAD + "SELECT c0 FROM t0;\nSELECT 1;\n")
    assert log.seed == 7
    assert divided(log) == (
        ("CREATE TABLE t0(c0 int)", "SET SESSION statement_timeout = 5000", "INSERT INTO t0(c0) VALUES(1)"),
        ("SELECT c0 FROM t0", "SELECT 1"),
    )
    assert log.error == ""


def test_an_error_has_its_message_without_the_trace() -> None:
    log = report("the counts mismatch (1 and 2)!")
    assert log.error == "java.lang.AssertionError: the counts mismatch (1 and 2)!"
    assert "INSERT INTO t0(c0) VALUES(1)" in log.statements


@pytest.mark.parametrize(
    ("optimized", "counted"),
    [
        ("SELECT ALL * FROM t0 WHERE c0 > 1", "SELECT count(*) FROM (SELECT ALL * FROM t0 WHERE c0 > 1) AS q"),
        (
            "SELECT COUNT(*) FROM t0 WHERE c0 > 1",
            "SELECT sum(n)::bigint FROM (SELECT COUNT(*) FROM t0 WHERE c0 > 1) AS q (n)",
        ),
    ],
)
def test_a_report_of_norec_has_two_counts(optimized: str, counted: str) -> None:
    summed = "SELECT SUM(count) FROM (SELECT CAST(c0 > 1 AS INT) as count FROM t0) as res"
    log = report(f"the counts mismatch (1 and 2)!\n-- {optimized};\n-- count: 1\n-- {summed};\n-- count: 2")
    assert equal_queries(log) == (counted, f"SELECT coalesce(sum(count), 0)::bigint FROM ({summed}) AS q (count)")


def test_a_report_of_partitions_has_the_whole_query_and_its_parts() -> None:
    log = report(
        'The size of the result sets mismatch (3 and 4)!\nFirst query: "SELECT c0 FROM t0", whose cardinality is: 3\n'
        'Second query:"SELECT c0 FROM t0 WHERE p;SELECT c0 FROM t0 WHERE NOT p ORDER BY 1", whose cardinality is: 4'
    )
    parts = "(SELECT c0 FROM t0 WHERE p) UNION ALL (SELECT c0 FROM t0 WHERE NOT p ORDER BY 1)"
    assert equal_queries(log) == ("SELECT c0 FROM t0", parts)
    log = report(
        'The content of the result sets mismatch!\nFirst query : "SELECT c0 FROM t0"\n'
        'Second query: "-- Query: "SELECT c0 FROM t0 WHERE p UNION ALL SELECT 2"; It misses: "[3]""'
    )
    assert equal_queries(log) == ("SELECT c0 FROM t0", "SELECT c0 FROM t0 WHERE p UNION ALL SELECT 2")


def test_a_report_of_aggregates_has_both_queries() -> None:
    log = report(
        "the results mismatch!\n-- SELECT MAX(c0) FROM t0;\n-- result: 3\n-- SELECT MAX(a) FROM x;\n-- result: 4"
    )
    assert equal_queries(log) == ("SELECT MAX(c0) FROM t0", "SELECT MAX(a) FROM x")


def test_a_report_of_a_pivot_row_has_its_query() -> None:
    query = "SELECT * FROM (SELECT t0.c0 AS t0c0 FROM t0 WHERE (c0) IS TRUE) as result WHERE result.t0c0 = 1"
    log = report("SELECT t0.c0", f"{query};", "-- pivot row values:;")
    assert equal_queries(log) == (f"SELECT count(*) > 0 FROM ({query}) AS q", "SELECT true")


def test_statements_of_other_reports_become_steps() -> None:
    broken = "SELECT c0 FROM t0 GROUP BY 1\nCaused by: org.postgresql.util.PSQLException: ERROR: no idea"
    assert equal_queries(report(broken)) is None
    assert named(report(broken)) == ("SELECT c0 FROM t0 GROUP BY 1",)
    estimates = (
        "Inconsistent result for query: EXPLAIN SELECT c0 FROM t0; --5\nEXPLAIN SELECT c0 FROM t0 WHERE c0 > 1; --9"
    )
    assert named(report(estimates))[:2] == ("SELECT c0 FROM t0", "SELECT c0 FROM t0 WHERE c0 > 1")
    assert named(report("this is no SQL")) == ()


def test_nondeterministic_statements_are_no_part_of_a_scene() -> None:
    functions = (Function(1, "clock_timestamp", 0, "f", False, "x"), Function(2, "lower", 1, "f", True, "text"))  # noqa: FBT003
    catalog = Catalog({each.oid: each for each in functions}, {})
    kept = ("CREATE TABLE t (a text)", "INSERT INTO t VALUES (lower('A'))", "ANALYZE t", "not even SQL")
    left = ("INSERT INTO t VALUES (clock_timestamp()::text)", "VACUUM (VERBOSE) t", "ANALYZE (VERBOSE) t")
    assert [step.sql for step in scene_of((*kept, *left), catalog)] == list(kept)


def test_a_missing_jar_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert lacking(None).startswith("its jar is not there: name it in PGDUEL_SQLANCER_JAR")
    assert lacking(str(tmp_path / "none.jar")).startswith(f"there is no jar {tmp_path}/none.jar")
    with pytest.raises(CaseError, match="SQLancer cannot run: its jar is not there"):
        class_path(None)
    (tmp_path / "it.jar").touch()
    assert class_path(str(tmp_path / "it.jar")) == str(tmp_path / "it.jar")


def test_the_arguments_have_the_seed_the_oracle_and_the_login() -> None:
    arguments = SqlancerRun("NOREC", seed=7, queries=9).arguments("a.jar", Login(5433, "me", "secret"), "duel")
    assert arguments[arguments.index("--random-seed") + 1] == "7"
    assert arguments[arguments.index("--username") :][:4] == ["--username", "me", "--password", "secret"]
    assert arguments[arguments.index("postgres", arguments.index("--database-prefix")) :][:3] == [
        "postgres",
        "--oracle",
        "NOREC",
    ]


def test_the_arguments_are_hidden_from_other_users(tmp_path: Path) -> None:
    java, file = command_of(["--password", "secret"], tmp_path)
    assert java == "java"
    assert "secret" not in file
    written = Path(file.removeprefix("@"))
    assert written.read_text() == '"--password"\n"secret"\n'
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_special_characters_in_a_file_of_arguments_are_quoted() -> None:
    assert argument_file(["a b", "#c", r"C:\d", '"e"']) == '"a b"\n"#c"\n"C:\\\\d"\n"\\"e\\""\n'
