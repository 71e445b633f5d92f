"""Tests of the server log: lines belong to their process, and crashes to the session that caused them."""

from pathlib import Path

import pytest

from fuzz.execution.serverlog import ServerLog, about, crash_of, deaths, located_errors, remote, split
from oracles.model.observation import Message, Remote

TRAP = 'TRAP: failed Assert("x > 0"), File: "nodeHash.c", Line: 12, PID: 200'
FRAMES = "postgres: a duel_0 [local] SELECT(ExecHash+0x5d)[0x5646]\n/lib/libc.so.6(+0x2724a)[0x7f01]"
LOG = f"""\
100|pgduel a|ERROR:  division by zero
100|pgduel a|CONTEXT:  a function
\tin two lines
200|pgduel b|WARNING:  resource was not closed: x
{TRAP}
{FRAMES}
pgduel_probe: signal 6 in process 200 led by 200
90||LOG:  server process (PID 200) was terminated by signal 6: Aborted
90||DETAIL:  Failed process was running: select 1
pgduel_probe: signal 11 in process 300 led by 100
{FRAMES}
90||LOG:  background worker "parallel worker" (PID 300) was terminated by signal 11: Segmentation fault
90||LOG:  server process (PID 400) exited with exit code 1
90||LOG:  server process (PID 500) exited with exit code 2
"""
POSTGRES = Path("/nowhere/postgres")


def test_each_process_gets_its_own_lines() -> None:
    entries = split(LOG)
    assert about(100, entries) == (
        "ERROR:  division by zero",
        "CONTEXT:  a function\n\tin two lines",
        f"pgduel_probe: signal 11 in process 300 led by 100\n{FRAMES}",
    )
    assert about(200, entries)[:2] == ("WARNING:  resource was not closed: x", f"{TRAP}\n{FRAMES}")


@pytest.mark.parametrize("character", ["\r", "\f", "\v", "\x1c", "\x85", "\u2028"])
def test_only_a_line_feed_ends_a_line(character: str) -> None:
    text = f'ERROR:  22P02: invalid input syntax for type integer: "a{character}{TRAP}'
    entries = split(f"200|pgduel b|{text}\n200|pgduel b|STATEMENT:  x\n")
    assert about(200, entries) == (text, "STATEMENT:  x")
    assert crash_of(200, entries, POSTGRES) is None
    assert split("") == []


def test_application_names_may_have_bars() -> None:
    entries = split("100|a|b|ERROR:  22023: LOG|WARNING:  x\n200||PANIC:  XX000: y|LOG:  z\n")
    assert about(100, entries) == ("ERROR:  22023: LOG|WARNING:  x",)
    assert about(200, entries) == ("PANIC:  XX000: y|LOG:  z",)


def test_errors_have_their_sqlstate_and_function() -> None:
    log = """\
100|a|ERROR:  XX000: tuple concurrently updated
101|b|ERROR:  22012: division by zero
100|a|LOCATION:  simple_heap_update, heapam.c:4264
101|b|LOCATION:  int4div, int.c:850
101|b|STATEMENT:  SELECT 1 / 0;
"""
    assert list(located_errors(split(log))) == [
        Message("ERROR", "XX000", "tuple concurrently updated", "simple_heap_update"),
        Message("ERROR", "22012", "division by zero", "int4div"),
    ]


def test_only_crashes_count_as_deaths() -> None:
    assert set(deaths(split(LOG)).lines) == {200, 300, 500}


def test_a_crash_is_the_sessions_own_or_its_workers() -> None:
    entries = split(LOG)
    own = crash_of(200, entries, POSTGRES) or ""
    assert own.startswith(f"{TRAP}\n{FRAMES}\npgduel_probe: signal 6")
    assert own.endswith("server process (PID 200) was terminated by signal 6: Aborted")
    assert "signal 11 in process 300" in (crash_of(100, entries, POSTGRES) or "")
    assert crash_of(400, entries, POSTGRES) is None
    assert crash_of(600, entries, POSTGRES) is None


@pytest.mark.parametrize("process", ["checkpointer process", 'background worker "logical replication launcher"'])
def test_a_crash_of_a_process_that_serves_all_sessions_is_each_sessions_own(process: str) -> None:
    trap = 'TRAP: failed Assert("x"), File: "checkpointer.c", Line: 12, PID: 77'
    died = f"LOG:  {process} (PID 77) was terminated by signal 6: Aborted"
    entries = split(f"100|pgduel a|ERROR:  division by zero\n{trap}\n90||{died}\n")
    assert crash_of(100, entries, POSTGRES) == crash_of(200, entries, POSTGRES) == f"{trap}\n{died}"


def test_a_session_that_has_not_begun_has_no_crash() -> None:
    died = "LOG:  checkpointer process (PID 77) was terminated by signal 6: Aborted"
    for log in (LOG, f"90||{died}\n"):
        assert crash_of(0, split(log), POSTGRES) is None


def test_a_crash_of_a_parallel_worker_with_an_unknown_leader_is_no_sessions_own() -> None:
    died = 'LOG:  background worker "parallel worker" (PID 77) was terminated by signal 6: Aborted'
    assert crash_of(100, split(f"90||{died}\n"), POSTGRES) is None


LED = """\
100|pgduel a|LOG:  statement: ANALYZE far
700|duel led by 100|LOG:  statement: START TRANSACTION
800|duel led by 999|LOG:  statement: another's
750|duel led by 700|LOG:  statement: two servers away
100|pgduel a|WARNING:  in between
700|duel led by 100|LOG:  statement: COMMIT TRANSACTION
90||LOG:  server process (PID 750) was terminated by signal 11: Segmentation fault
"""


def test_sessions_behind_foreign_servers_belong_to_the_session_that_opened_them() -> None:
    entries = split(LED)
    assert remote(100, entries) == (
        Remote(1, 1, "LOG:  statement: START TRANSACTION"),
        Remote(2, 1, "LOG:  statement: two servers away"),
        Remote(1, 2, "LOG:  statement: COMMIT TRANSACTION"),
    )
    assert about(100, entries) == ("LOG:  statement: ANALYZE far", "WARNING:  in between")
    assert remote(600, entries) == ()


def test_crashes_behind_foreign_servers_belong_to_the_session_too() -> None:
    assert "signal 11" in (crash_of(100, split(LED), POSTGRES) or "")
    assert crash_of(999, split(LED), POSTGRES) is None


def test_reports_of_sanitizers_and_panic_are_crashes() -> None:
    address = "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n    #0 0x1 in ExecHash nodeHash.c:1"
    undefined = "nodeHash.c:12:3: runtime error: signed integer overflow"
    assert crash_of(7, split(address), POSTGRES) == address
    assert crash_of(8, split(address), POSTGRES) is None
    assert crash_of(8, split(undefined), POSTGRES) == undefined  # the report has no process number
    assert crash_of(7, split("7|pgduel a|PANIC:  stuck spinlock"), POSTGRES) == "PANIC:  stuck spinlock"


def test_the_tail_starts_at_the_mark(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = ServerLog(path)
    assert log.entries() == []
    path.write_text("1||LOG:  old\n")
    log.mark()
    with path.open("a") as file:
        file.write("1||LOG:  new\n")
    assert [entry.text for entry in log.entries()] == ["LOG:  new"]
