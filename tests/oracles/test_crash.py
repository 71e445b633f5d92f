"""Tests of the oracle `crash` on reports in the form of servers' logs."""

from dataclasses import replace

import pytest

from fuzz.execution.judging import judge_case
from oracles.crash import Crash, crash_origin
from oracles.leak import Leak
from oracles.model.finding import Finding
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, Inconclusive, Verdict
from oracles.result import Result
from tests.oracles.observed import (
    ARMS,
    LOST,
    SKIPPED,
    StubExecutor,
    assigned,
    case,
    finding,
    judged,
    ok,
    query,
    seen,
    timeout,
    variant,
)

ASSERTION = """\
TRAP: failed Assert("owner->nhash == 0"), File: "../src/backend/utils/resowner/resowner.c", Line: 367, PID: 10760
postgres: postgres duel_0 [local] COPY(ExceptionalCondition+0x5d)[0x5570f38e192d]
ResourceOwnerSort at resowner.c:301
pgduel_probe: signal 6 in process 10760 led by 10760
LOG:  server process (PID 10760) was terminated by signal 6: Aborted
"""
SEGFAULT = """\
pgduel_probe: signal 11 in process 10824 led by 10824
/lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7f1fcd85b050]
postgres: postgres duel_0 [local] SELECT(ExecHashJoin+0x5e)[0x5570f35da91e]
ExecScanFetch at execScan.c:132
postgres: postgres duel_0 [local] SELECT(standard_ExecutorRun+0x37)[0x5570f390d7b7]
postgres: postgres duel_0 [local] SELECT(PortalRun+0x37)[0x5570f390d7b7]
LOG:  server process (PID 10824) was terminated by signal 11: Segmentation fault
"""
ADDRESS = """\
==4711==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010 at pc 0x55d0 bp 0x7ffd sp 0x7ffc
READ of size 8 at 0x602000000010 thread T0
    #0 0x55d0c0 in __interceptor_memcpy (/usr/lib/gcc/libasan.so+0x1)
    #1 0x55d0c1 in ResourceOwnerForget ../src/backend/utils/resowner/resowner.c:600:9
    #2 0x55d0c2 in ReleaseBuffer ../src/backend/storage/buffer/bufmgr.c:4900
    #3 0x55d0c3 in heap_endscan ../src/backend/access/heap/heapam.c:1100
freed by thread T0 here:
    #0 0x55d0c4 in free (/usr/lib/gcc/libasan.so+0x2)
"""
UNDEFINED = (
    "../src/backend/utils/hash/dynahash.c:812:23: runtime error: shift exponent 64 is too large for 32-bit type 'int'"
)
PANIC = "PANIC:  could not write to file 16384\nLOG:  server process (PID 7) was terminated by signal 6: Aborted"
KILLED = "LOG:  server process (PID 7) was terminated by signal 9: Killed"
DEBUGGER = """\
Program terminated with signal SIGSEGV, Segmentation fault. signal 11
#0  __pthread_kill_implementation (threadid=1) at pthread_kill.c:44
#1  0x00007f in raise () from libc
#2  0x00005 in tuplestore_end (state=0x0) at tuplestore.c:455
"""


@pytest.mark.parametrize(
    ("report", "origin"),
    [
        (ASSERTION, "assertion owner->nhash == 0 in src/backend/utils/resowner/resowner.c"),
        (SEGFAULT, "signal 11 in ExecHashJoin < ExecScanFetch < standard_ExecutorRun"),
        (DEBUGGER, "signal 11 in tuplestore_end"),
        (ADDRESS, "AddressSanitizer heap-use-after-free in ResourceOwnerForget < ReleaseBuffer < heap_endscan"),
        (
            UNDEFINED,
            "undefined behaviour in src/backend/utils/hash/dynahash.c: "
            "shift exponent N is too large for N-bit type 'int'",
        ),
        (PANIC, "PANIC could not write to file N"),
        (KILLED, "killed by SIGKILL"),
        ("LOG:  server process (PID 7) was terminated by signal 8: Floating point exception", "signal 8"),
        (
            "LOG:  server process (PID 7) exited with exit code 127",
            "crash: LOG:  server process (PID N) exited with exit code N",
        ),
        ("", "crash: no report"),
    ],
)
def test_the_origin_is_the_place_of_the_crash(report: str, origin: str) -> None:
    assert crash_origin(report) == origin


def test_the_origin_stays_when_lines_and_builds_move() -> None:
    moved = ASSERTION.replace("Line: 367", "Line: 401").replace("../src", "/cache/builds/1/source/src")
    assert crash_origin(moved.replace("10760", "22")) == crash_origin(ASSERTION)


def crashed(report: str | None) -> CaseObservation:
    return replace(seen(ok("1"), LOST, SKIPPED), residue=None, crash=report)


SOUND = seen(ok("1"), ok("2"), ok("3"))
CASE = case(query(), query(), query())


def duel(master: CaseObservation, patched: CaseObservation) -> tuple[Verdict, ...]:
    return judged(Crash(), CASE, lambda run: master if run.arm == "master" else patched)


def test_a_crash_is_a_finding_at_the_step_that_lost_its_connection() -> None:
    found = finding(duel(SOUND, crashed(SEGFAULT)))
    assert (found.arms, found.step) == (("master", "patched"), 1)
    assert "ExecHashJoin" in found.actual


def test_a_crash_of_the_first_arm_is_its_own() -> None:
    assert finding(duel(crashed(SEGFAULT), SOUND)).arms == ("patched", "master")


def test_a_crash_of_all_arms_is_about_the_base() -> None:
    verdicts = duel(crashed(SEGFAULT), crashed(SEGFAULT))
    assert finding(verdicts).arms == ("master", "master")
    assert len(verdicts) == 2


@pytest.mark.parametrize(("master", "arms"), [(SEGFAULT, ("master", "master")), (ASSERTION, ("master", "patched"))])
def test_an_arm_that_skips_a_run_shares_the_crash_of_its_other_runs(master: str, arms: tuple[str, str]) -> None:
    forced = (Mode("forced", (("enable_feature", "on"),)),)
    skipped = replace(seen(SKIPPED, SKIPPED, SKIPPED), residue=None)
    observations = {
        Run("master", ()): crashed(master),
        Run("patched", ()): SOUND,
        Run("master", forced): skipped,
        Run("patched", forced): crashed(SEGFAULT),
    }
    found = Crash().judge(CASE, ARMS, observations)
    assert isinstance(found, tuple)
    assert arms in {each.arms for each in found if isinstance(each, Finding)}


def test_two_places_of_crashes_are_two_findings() -> None:
    verdicts = duel(crashed(ASSERTION), crashed(SEGFAULT))
    assert len({verdict.fingerprint for verdict in verdicts if isinstance(verdict, Finding)}) == 2


@pytest.mark.parametrize(("report", "reason"), [(None, "connection lost"), (KILLED, "killed by SIGKILL")])
def test_a_server_killed_from_outside_is_inconclusive(report: str | None, reason: str) -> None:
    assert duel(SOUND, crashed(report)) == (Inconclusive(reason),)


def test_a_timeout_is_no_crash() -> None:
    assert duel(SOUND, seen(ok("1"), timeout(), ok("3"))) == (Agree(2),)


def test_a_backend_that_crashes_at_exit_is_a_finding() -> None:
    found = finding(duel(SOUND, replace(SOUND, crash=SEGFAULT)))
    assert found.step is None


def test_a_sanitizer_that_reports_and_goes_on_is_a_finding() -> None:
    assert finding(duel(SOUND, replace(SOUND, log=("LOG:  hello", UNDEFINED)))).origin.startswith("undefined")


def test_a_crash_in_a_run_that_another_oracle_requested_is_a_finding() -> None:
    def respond(run: Run) -> CaseObservation:
        if variant(run) == "hashed":
            return crashed(SEGFAULT)
        return seen(ok("1" if run.arm == "master" else "2"), ok("2"), ok("3"))

    judged = judge_case(StubExecutor(respond), assigned((Crash(), Leak(), Result()), ARMS), CASE)
    assert {found.oracle for found in judged.findings} == {"crash", "result"}
