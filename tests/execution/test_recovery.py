"""Tests of recovery: a crash is reported for its own case only, and later cases run."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
import pytest

from fuzz.errors import ServerError
from fuzz.execution import executor as executors
from fuzz.execution import messages, worker_database
from fuzz.execution.exchanges import Abandoned
from fuzz.execution.executor import Executor
from fuzz.execution.wire import Wire
from fuzz.servers import modules
from fuzz.servers.arm import Arm
from oracles.model.case import Case, Step
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Outcome, Run
from tests.execution.conftest import query

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]

SLOW = Case("test", (), (query("SELECT pg_sleep(1)"), query("SELECT 1")))
CANARY = Case("test", (Step("CREATE TABLE canary (n int)"),), (query("SELECT n FROM canary"), query("SELECT 1")))


def observe(executor: Executor, case: Case, *modes: Mode, fault: str = "") -> CaseObservation:
    (observed,) = executor.observe(case, [Run("a", modes, fault=fault)]).values()
    return observed


@contextmanager
def meanwhile(action: Callable[[], object]) -> Iterator[None]:
    """Execute the action in a thread, a moment later."""
    thread = threading.Timer(0.3, action)
    thread.start()
    yield
    thread.join()


def kill(arm: Arm, which: LiteralString, number: int) -> Callable[[], None]:
    def send_signal() -> None:
        kwargs = arm.cluster.connect_kwargs
        with psycopg.connect(host=str(kwargs["host"]), port=arm.cluster.port, user="postgres") as connection:
            rows = connection.execute(b"SELECT pid FROM pg_stat_activity WHERE " + which.encode()).fetchall()
        assert rows
        for (pid,) in rows:
            os.kill(pid, number)

    return send_signal


@pytest.mark.parametrize(("fault", "origin"), [("assert", "TRAP: failed Assert("), ("segv", "signal 11 in process")])
def test_a_crash_is_reported_with_its_backtrace_once(
    twins: tuple[Arm, ...], executor: Executor, fault: str, origin: str
) -> None:
    modules.ensure_module(twins[0].build, "pgduel_faults")
    observed = observe(executor, CANARY, fault=fault)
    assert observed.crash is not None
    assert observed.crash.startswith(("TRAP: ", "pgduel_probe: "))
    assert origin in observed.crash
    assert observed.crash.count("(PostgresMain+") == 1
    for static in ("exec_simple_query at postgres.c:", "at pgduel_faults.c:"):
        assert static in observed.crash
    assert "was terminated by signal" in observed.crash
    assert [step.outcome for step in observed.steps] == [Outcome.OK, Outcome.LOST, Outcome.SKIPPED]
    assert observed.residue is None
    assert observe(executor, CANARY).crash is None


def test_a_crash_of_a_parallel_worker_is_its_leaders(twins: tuple[Arm, ...], executor: Executor) -> None:
    always = Mode("in a worker", (("debug_parallel_query", "on"),))
    with meanwhile(kill(twins[0], "backend_type = 'parallel worker'", signal.SIGSEGV)):
        observed = observe(executor, SLOW, always)
    assert observed.crash is not None
    assert "ParallelWorkerMain" in observed.crash
    assert observed.steps[0].outcome is Outcome.LOST


def test_a_crash_of_another_session_is_not_the_cases_own(twins: tuple[Arm, ...], executor: Executor) -> None:
    modules.ensure_module(twins[0].build, "pgduel_faults")
    with Executor(twins, "neighbour") as neighbour:
        seen: list[CaseObservation] = []
        with meanwhile(lambda: seen.append(observe(neighbour, CANARY, fault="segv"))):
            observed = observe(executor, SLOW)
    assert seen[0].crash is not None
    assert observed.crash is None
    assert [step.outcome for step in observed.steps] == [Outcome.OK, Outcome.OK]  # executed again


def test_a_crash_of_the_checkpointer_is_the_cases_own(twins: tuple[Arm, ...], executor: Executor) -> None:
    with meanwhile(kill(twins[0], "backend_type = 'checkpointer'", signal.SIGSEGV)):
        observed = observe(executor, SLOW)
    assert observed.crash is not None
    assert observed.crash.splitlines()[-1].startswith("LOG:  checkpointer process (PID")
    assert observed.steps[0].outcome is Outcome.LOST


@pytest.mark.parametrize("parallel", ["off", "on"])
def test_a_killed_postmaster_is_started_again(twins: tuple[Arm, ...], executor: Executor, parallel: str) -> None:
    mode = Mode("in a worker", (("debug_parallel_query", parallel),))  # its leader fails an assertion at its exit
    with meanwhile(lambda: os.kill(twins[0].cluster.pid, signal.SIGKILL)):
        observed = observe(executor, SLOW, mode)
    assert observed.crash is None
    assert [step.outcome for step in observed.steps] == [Outcome.OK, Outcome.OK]


def test_a_crash_of_the_postmaster_is_the_cases_own(twins: tuple[Arm, ...], executor: Executor) -> None:
    with meanwhile(lambda: os.kill(twins[0].cluster.pid, signal.SIGSEGV)):
        observed = observe(executor, SLOW)
    assert observed.crash is not None
    assert "signal 11 in process" in observed.crash
    assert "ServerLoop" in observed.crash
    assert [step.outcome for step in observe(executor, CANARY).steps] == [Outcome.OK, Outcome.OK, Outcome.OK]


def test_an_executor_works_after_a_run_that_failed(executor: Executor) -> None:
    case = Case("test", (Step("CREATE TABLE t (n int)"),), (query("SELECT pg_sleep(0.2)"),))
    refused = Run("b", (Mode("nonsense", (("work_mem", "plenty"),)),))
    with pytest.raises(ServerError, match="work_mem"):
        executor.observe(case, [Run("a", ()), refused])  # the other arm abandons its run
    assert [step.outcome for step in observe(executor, case).steps] == [Outcome.OK, Outcome.OK]


def test_a_session_that_ends_without_a_message_is_not_executed_again(
    twins: tuple[Arm, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    modules.ensure_module(twins[0].build, "pgduel_faults")
    lost = []

    class Silent(Wire):
        def pump_in(self) -> None:
            super().pump_in()
            if self.lost:
                self.partial.others.clear()
                lost.append(self)

    with Executor(twins, "silent") as executor:
        monkeypatch.setattr(worker_database, "Wire", Silent)
        observed = observe(executor, CANARY, fault="disconnect")
    assert [step.outcome for step in observed.steps] == [Outcome.OK, Outcome.LOST, Outcome.SKIPPED]
    assert (len(lost), observed.crash) == (1, None)


def test_a_session_ended_by_its_own_statement_is_lost_not_crashed(executor: Executor) -> None:
    unfed = Case("test", (Step("CREATE TABLE t (n int)"),), (Step("COPY t FROM STDIN"), query("SELECT 1")))
    observed = observe(executor, unfed)
    assert observed.crash is None
    assert [step.outcome for step in observed.steps] == [Outcome.OK, Outcome.LOST, Outcome.SKIPPED]
    assert observed.steps[1].sqlstate == "08P01"


@pytest.mark.long
def test_a_backend_that_hangs_is_a_timeout_and_killed(twins: tuple[Arm, ...]) -> None:
    case = Case("test", (), (query("SELECT 1"), query("SELECT pg_sleep(9)"), query("SELECT 2")))
    with Executor(twins, "hanging", statement_timeout_ms=1000) as executor:
        with meanwhile(kill(twins[0], "query LIKE 'SELECT pg_sleep(9)%'", signal.SIGSTOP)):
            observed = observe(executor, case)
        assert [step.outcome for step in observed.steps] == [Outcome.OK, Outcome.TIMEOUT, Outcome.SKIPPED]
        assert observed.crash is not None
        assert observe(executor, CANARY).crash is None


@pytest.mark.parametrize("factor", [0, 2])
def test_a_query_that_returns_rows_without_end_is_a_timeout(
    twins: tuple[Arm, ...], monkeypatch: pytest.MonkeyPatch, factor: int
) -> None:
    """The server does not enforce statement_timeout, as under a patch that ignores interrupts."""
    never = Mode("no timeout", (("statement_timeout", "0ms"),))
    monkeypatch.setattr(executors, "time_limit", lambda _run, milliseconds: milliseconds / 1000)
    case = Case("test", (), (query("SELECT generate_series(1, 1000000000000)"), query("SELECT 1")))
    with Executor(twins, "endless", statement_timeout_ms=1000) as executor:
        (observed,) = executor.observe(case, [Run("a", (never,), timeout_factor=factor)]).values()
    assert [step.outcome for step in observed.steps] == [Outcome.TIMEOUT, Outcome.SKIPPED]


def test_a_session_that_does_not_end_after_the_case_is_lost(
    twins: tuple[Arm, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Wire):
        def send(self, frames: bytes, expected: int) -> None:
            if frames == messages.TERMINATE:
                os.kill(self.pid, signal.SIGSTOP)
                threading.Timer(7, os.kill, (self.pid, signal.SIGCONT)).start()
            super().send(frames, expected)

    with Executor(twins, "lingering", statement_timeout_ms=500) as executor:
        monkeypatch.setattr(worker_database, "Wire", Stopped)
        observed = observe(executor, CANARY)
    assert [step.outcome for step in observed.steps] == [Outcome.OK] * 3
    assert observed.residue is None


def test_a_process_that_is_none_of_the_servers_is_not_killed(
    twins: tuple[Arm, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("test", (), (query("SELECT pg_sleep(9)"),))
    stranger = subprocess.Popen(["sleep", "600"])

    class Lying(Wire):
        pid = property(lambda _: stranger.pid, lambda _self, _sent: None)

    try:
        with Executor(twins, "lying", statement_timeout_ms=1000) as executor:
            monkeypatch.setattr(worker_database, "Wire", Lying)
            with meanwhile(kill(twins[0], "query = 'SELECT pg_sleep(9)'", signal.SIGSTOP)):
                observed = observe(executor, case)
            kill(twins[0], "query = 'SELECT pg_sleep(9)'", signal.SIGCONT)()
        assert [step.outcome for step in observed.steps] == [Outcome.TIMEOUT]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_executor_that_is_stopped_abandons_the_case_at_once_and_can_be_used_again(twins: tuple[Arm, ...]) -> None:
    stop = threading.Event()
    endless = Case("test", (Step("CREATE TABLE t (n int)"),), (query("SELECT pg_sleep(600)"),))
    with Executor(twins, "stopped", statement_timeout_ms=600_000, stop=stop.is_set) as executor:
        with meanwhile(stop.set), pytest.raises(Abandoned):
            executor.observe(endless, [Run("a", ()), Run("b", ())])
        stop.clear()
        assert [step.outcome for step in observe(executor, CANARY).steps] == [Outcome.OK] * 3
        stop.set()
