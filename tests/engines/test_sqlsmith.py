"""Tests of `ran` and `cases`: SQLsmith's sessions in a server's log, and the cases of a crash."""

from pathlib import Path

from fuzz.engines.sqlsmith import cases, ran
from fuzz.execution.serverlog import split
from oracles.model.case import Kind, Step

POSTGRES = Path("postgres")  # addresses in a backtrace stay
LOG = """\
11|sqlsmith::dut|LOG:  00000: statement: set statement_timeout to '1s';
11|sqlsmith::dut|LOG:  00000: statement: select 1
\tfrom t;
12|other|LOG:  00000: statement: select 'of another session';
11|sqlsmith::dut|ERROR:  22012: division by zero
11|sqlsmith::dut|LOG:  00000: statement: update t set a = 2;
TRAP: failed Assert("false"), File: "x.c", Line: 1, PID: 11
9||LOG:  server process (PID 11) was terminated by signal 6: Aborted
13|sqlsmith::dut|LOG:  00000: statement: select 3;
"""


def test_a_crashed_session_has_all_its_statements() -> None:
    found = ran(split(LOG), POSTGRES)
    assert found.statements == 4
    (death,) = found.deaths
    assert death.statements == ("set statement_timeout to '1s';", "select 1\nfrom t;", "update t set a = 2;")
    assert death.oracle == "crash"
    assert 'failed Assert("false")' in death.report


def test_a_statement_that_ends_in_an_internal_error_is_returned_once_for_each_message() -> None:
    failed = "11|s|ERROR:  XX000: cache lookup failed for type {}\n11|s|LOCATION:  lookup, x.c:1\n"
    select = "11|s|LOG:  00000: statement: select {};\n"
    log = "".join(select.format(number) + failed.format(number) for number in (1, 2))
    found = ran(split(log + select.format(3)), POSTGRES)
    assert (found.statements, found.deaths) == (3, ())
    (error,) = found.errors
    assert (error.oracle, error.statements) == ("internal_error", ("select 1;",))
    assert "cache lookup failed for type 1" in error.report


def test_a_log_without_a_crash_has_no_deaths() -> None:
    assert ran(split(LOG.partition("TRAP")[0]), POSTGRES).deaths == ()


def test_the_last_statement_is_tried_first_and_settings_are_left_out() -> None:
    scene = (Step("CREATE TABLE t (a int)"),)
    alone, whole = cases(scene, ran(split(LOG), POSTGRES).deaths[0].statements)
    assert alone.scene == whole.scene == scene
    assert [(step.sql, step.kind) for step in alone.steps] == [("update t set a = 2", Kind.COMMAND)]
    assert [(step.sql, step.kind) for step in whole.steps] == [
        ("select 1\nfrom t", Kind.QUERY),
        ("update t set a = 2", Kind.COMMAND),
    ]
    assert all(step.may_fail for step in whole.steps)


def test_of_many_statements_growing_numbers_are_tried() -> None:
    sent = [f"select {number};" for number in range(1000)]
    assert [len(case.steps) for case in cases((), sent)] == [1, 10, 300]
    assert list(cases((), ())) == []
