"""Tests of a worker's stop within a case: it ends at once and keeps findings. Doubts are tried again."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Timer
from typing import ClassVar

import pytest

from fuzz.campaign import worker
from fuzz.campaign.catalog import opened
from fuzz.campaign.counters import failed_checks
from fuzz.campaign.plan import Plan
from fuzz.campaign.schedule import Range, RangeResult, Reduction, ReductionResult, Retry, RetryResult
from fuzz.campaign.store import doubt_of
from fuzz.campaign.worker import CaseWork, attached, revive
from fuzz.engines import seeded
from fuzz.execution.executor import Executor
from fuzz.execution.judging import Assignment, JudgedCase, judge_despite_errors
from fuzz.generators.generator import Scale
from fuzz.servers import cluster as clusters
from fuzz.servers.arm import Arm
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.sessions import session
from fuzz.sources.source import SourceContext
from fuzz.triage.interestingness import ReducedCase
from oracles.framework.shared_runs import REPEATED
from oracles.model.case import Case, CaseId, Kind, Step
from oracles.model.feature import Feature
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Canary, Observations, Oracle, Unstable, Verdict, all_oracles
from oracles.result import Result
from tests.servers.disk import fill, of_limited_size

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]

ON_B = "current_setting('data_directory') LIKE '%/b-%'"


@pytest.fixture(scope="module")
def arms(build: Build) -> Iterator[tuple[Arm, ...]]:
    with ExitStack() as stack:
        yield tuple(Arm(name, build, stack.enter_context(Cluster(build, name)), ()) for name in ("a", "b"))


@pytest.fixture
def stop() -> Event:
    return Event()


def cases(monkeypatch: pytest.MonkeyPatch, *made: Case) -> Range:
    """Return a range with these cases."""

    def case_of(case_id: CaseId, _: Scale, __: SourceContext, ___: Sequence[Feature]) -> Case:
        return made[case_id.index]

    monkeypatch.setattr(seeded, "case_of", case_of)
    return Range(0, "test", 0, len(made))


def queries(*sql: str) -> Case:
    return Case("test", (), tuple(Step(each, Kind.QUERY) for each in sql))


def begin(directory: Path) -> None:
    with opened(directory) as store:
        store.begin(Plan(1, {}, None, None, stop_at_first=False, arms=ArmOptions()), {})


def run(arms: tuple[Arm, ...], directory: Path, stop: Event, job: Range) -> RangeResult:
    begin(directory)
    with CaseWork(attached(arms), directory, 1, "", {})(0, stop.is_set) as do:
        result = do(job)
    assert isinstance(result, RangeResult)
    assert (result.outage, result.fatal, result.failures) == (None, None, {})
    return result


def stop_after_first_runs(monkeypatch: pytest.MonkeyPatch, stop: Event) -> None:
    """Set `stop` as soon as runs of several arms are observed."""
    observe = Executor.observe

    def observe_and_stop(executor: Executor, case: Case, runs: Sequence[Run]) -> dict[Run, CaseObservation]:
        observed = observe(executor, case, runs)
        if len(runs) > 1:
            stop.set()
        return observed

    monkeypatch.setattr(Executor, "observe", observe_and_stop)


def test_a_running_case_is_abandoned_and_not_counted(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "REPORTED", 600.0)
    slow = cases(monkeypatch, queries("SELECT 1"), queries(*20 * ["SELECT pg_sleep(4)"]))
    Timer(10, stop.set).start()
    result = run(arms, tmp_path, stop, slow)
    assert (result.done, result.counters.cases["test"], result.found) == (1, 1, [])


def test_a_finding_of_an_abandoned_case_is_kept(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of b is found in the first runs. Judging the rows needs repetitions, which the stop interrupts."""
    locking = "SELECT count(pg_advisory_lock(7)) WHERE current_setting('data_directory') LIKE '%/b-%'"
    stop_after_first_runs(monkeypatch, stop)
    result = run(arms, tmp_path, stop, cases(monkeypatch, queries(locking, *3 * ["SELECT pg_sleep(2)"])))
    assert (result.done, result.counters.cases["test"]) == (0, 0)
    with opened(tmp_path) as store:
        assert [found.finding.fingerprint for found in store.findings()] == result.found
    assert len(result.found) == 1


def test_another_case_is_tried_for_a_finding_whose_first_case_did_not_show_it_again(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    differing = "SELECT current_setting('data_directory') LIKE '%/b-%'"
    job = cases(monkeypatch, queries(differing), queries("SELECT 1", differing), queries("SELECT 2", differing))
    result = run(arms, tmp_path, stop, replace(job, end=1))
    (fingerprint,) = result.found
    with opened(tmp_path) as store:
        first = store.finding(fingerprint)
        store.record_reduction(fingerprint, ReducedCase(first.case, first.finding, 0, 3), 1.0)
    result = run(arms, tmp_path, stop, replace(job, first=1))
    assert result.found == [fingerprint]
    with opened(tmp_path) as store:
        found = store.finding(fingerprint)
    assert (found.case_id, found.reduced, found.count) == ("1/test/1", False, 2)


class Failing(Oracle):
    """An oracle that raises an error."""

    name: ClassVar[str] = "failing"
    canaries: ClassVar[tuple[Canary, ...]] = ()

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...]:
        raise KeyError("Plan Rows")


def test_an_oracle_that_fails_is_reported_and_the_findings_of_others_are_stored(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "all_oracles", lambda: (Failing(), *all_oracles()))
    begin(tmp_path)
    job = cases(monkeypatch, queries("SELECT clock_timestamp()", f"SELECT 1 WHERE {ON_B}"))
    with CaseWork(attached(arms), tmp_path, 1, "", {})(0, stop.is_set) as do:
        result = do(job)
    assert isinstance(result, RangeResult)
    assert result.failures.keys() == {"test: KeyError"}
    assert "pgduel failed on case 1/test/0: KeyError('Plan Rows')" in result.failures["test: KeyError"]
    assert "raise KeyError" in (tmp_path / worker.ERRORS).read_text()
    assert failed_checks(result.counters, {"planted": 0, "retried": 0}) == ("pgduel itself failed on 1 cases of test",)
    assert result.counters.cases["test"] == 1
    with opened(tmp_path) as store:
        assert [found.finding.oracle for found in store.findings()] == ["result"]


@pytest.mark.parametrize("name", ["as_executed", "Triage.write"])
def test_a_finding_is_stored_although_its_script_cannot_be_written(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def failing(*_arguments: object) -> None:
        raise KeyError("Plan Rows")

    monkeypatch.setattr(f"fuzz.campaign.worker.{name}", failing)
    result = run(
        arms, tmp_path, stop, cases(monkeypatch, queries("SELECT clock_timestamp()", f"SELECT 1 WHERE {ON_B}"))
    )
    with opened(tmp_path) as store:
        (found,) = store.findings()
        assert [doubt.oracle for doubt in store.doubts()] == ["result"]
    assert result.found == [found.finding.fingerprint]
    assert "Plan Rows" in (tmp_path / worker.ERRORS).read_text()


class FailingElsewhere(Failing):
    """An oracle that raises an error of the same kind at another place."""

    name: ClassVar[str] = "failing_elsewhere"

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...]:
        raise KeyError("Actual Rows")


def test_the_log_of_errors_has_few_errors_of_each_place(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LOGGED", 2)
    monkeypatch.setattr(worker, "REPORTED", 600.0)
    made = [queries(f"SELECT {number}") for number in range(4)]
    begin(tmp_path)
    monkeypatch.setattr(worker, "all_oracles", lambda: (Failing(), FailingElsewhere(), *all_oracles()))
    with CaseWork(attached(arms), tmp_path, 1, "", {})(0, stop.is_set) as do:
        result = do(cases(monkeypatch, *made))
    assert isinstance(result, RangeResult)
    assert result.counters.cases["test"] == 4
    log = (tmp_path / worker.ERRORS).read_text()
    for place in ("Plan Rows", "Actual Rows"):
        assert log.count(f"\nKeyError: '{place}'\n") == 2
    assert log.count("2 errors of this worker at this place are logged; more are only counted\n") == 2
    assert failed_checks(result.counters, {"planted": 0, "retried": 0}) == ("pgduel itself failed on 4 cases of test",)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with of_limited_size(tmp_path / "disk", 4) as directory:
        yield directory


def test_the_log_of_errors_waits_for_room_on_a_full_disk(
    arms: tuple[Arm, ...], small_disk: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(small_disk)

    class Filling(Failing):
        def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...]:
            Timer(3, fill(small_disk).unlink).start()
            return super().judge(case, arms, observations)

    monkeypatch.setattr(worker, "all_oracles", lambda: (Filling(),))
    with CaseWork(attached(arms), small_disk, 1, "", {})(0, stop.is_set) as do:
        result = do(cases(monkeypatch, queries("SELECT 1")))
    assert isinstance(result, RangeResult)
    assert (result.fatal, result.done) == (None, 1)
    assert "raise KeyError" in (small_disk / worker.ERRORS).read_text()


def test_an_oracle_that_fails_in_a_reduction_does_not_end_the_worker(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = cases(monkeypatch, queries(f"SELECT 1 WHERE {ON_B}"))
    (fingerprint,) = run(arms, tmp_path, stop, job).found
    monkeypatch.setattr(Result, "judge", Failing.judge)
    with CaseWork(attached(arms), tmp_path, 1, "", {})(0, stop.is_set) as do:
        result = do(Reduction(fingerprint))
    assert isinstance(result, ReductionResult)
    assert result.note.startswith(f"finding {fingerprint} is not reduced: KeyError('Plan Rows') (")
    assert str(tmp_path / worker.ERRORS) in result.note
    log = (tmp_path / worker.ERRORS).read_text()
    assert log.startswith(f"reduction of finding {fingerprint}\nTraceback")
    assert "raise KeyError" in log
    with opened(tmp_path) as store:
        assert not store.finding(fingerprint).reduced


def test_a_crash_is_stored_although_its_server_does_not_start_again(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run of the arm, which repeats the case, cannot begin. The difference in rows does not count."""
    crash = f"DO $$ BEGIN IF {ON_B} THEN COPY (SELECT 1) TO PROGRAM 'kill -SEGV $PPID'; END IF; END $$"
    case = Case("test", (), (Step(f"SELECT 1 WHERE {ON_B}", Kind.QUERY), Step(crash)), samples=(REPEATED.name,))
    begin(tmp_path)
    with ends_after_a_crash(arms[1].cluster), CaseWork(attached(arms), tmp_path, 1, "", {})(0, stop.is_set) as do:
        result = do(cases(monkeypatch, case))
    assert isinstance(result, RangeResult)
    assert (result.done, result.outage, len(result.found)) == (0, "the server of arm b is down", 1)
    with opened(tmp_path) as store:
        (found,) = store.findings()
    assert (found.finding.oracle, found.finding.arms) == ("crash", ("a", "b"))
    assert "signal 11" in found.finding.origin


def test_a_crash_in_the_additional_explained_run_is_stored(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    explained = "current_setting('pgduel_probe.reach', true) = 'on'"
    crash = f"IF {ON_B} AND {explained} THEN COPY (SELECT 1) TO PROGRAM 'kill -SEGV $PPID'; END IF; RETURN 1;"
    make = Step(f"CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN {crash} END $$")
    begin(tmp_path)
    monkeypatch.setattr(worker, "explained_arm", lambda arms: arms[-1])
    with CaseWork(attached(arms), tmp_path, 1, "", {})(0, stop.is_set) as do:
        result = do(cases(monkeypatch, Case("test", (make,), (Step("SELECT f()", Kind.QUERY),))))
    assert isinstance(result, RangeResult)
    with opened(tmp_path) as store:
        (found,) = store.findings()
    assert (found.finding.oracle, found.finding.arms) == ("crash", ("a", "b"))


def test_a_server_that_does_not_answer_is_restarted(arms: tuple[Arm, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_RECOVERY_SECONDS", 2.0)
    os.kill(arms[0].cluster.pid, signal.SIGSTOP)
    assert revive(arms) == ["the server of arm a does not answer; it is restarted"]
    assert revive(arms) == []


@contextmanager
def ends_after_a_crash(cluster: Cluster) -> Iterator[None]:
    """Let a server end after a crash, until the end of this context. Then it starts again."""
    with session(cluster.connect_kwargs, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET restart_after_crash = off")
        admin.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        cluster.restart()
        with session(cluster.connect_kwargs, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM RESET restart_after_crash")
            admin.execute("SELECT pg_reload_conf()")


def test_a_doubt_is_stored_with_its_case_and_tried_again(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time differs in each repetition, so the reference differs from itself."""
    monkeypatch.setattr(worker, "REPEATED", 2)
    case = queries("SELECT 1", "SELECT clock_timestamp()")
    run(arms, tmp_path, stop, cases(monkeypatch, case))
    with opened(tmp_path) as store:
        (doubt,) = (each for each in store.doubts() if each.oracle == "result")
    assert (doubt.kind, doubt.step, doubt.case, doubt.outcome) == ("unstable", 1, case, "")
    assert all(side.startswith("these rows") for side in doubt.sides)
    with CaseWork(attached(arms), tmp_path, 1, "", {})(0, stop.is_set) as do:
        result = do(Retry(doubt.name))
    assert isinstance(result, RetryResult)
    assert result.found == ()
    with opened(tmp_path) as store:
        assert next(each for each in store.doubts() if each.name == doubt.name).outcome == "same doubt 2 times"


@pytest.mark.parametrize("oracle", ["result", "tlp"])
def test_other_oracles_with_runs_of_their_own_do_not_judge_a_doubt_again(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch, oracle: str
) -> None:
    begin(tmp_path)
    doubt = doubt_of(oracle, Unstable("rows"), "1/test/0", queries("SELECT 1"))
    with opened(tmp_path) as store:
        store.add_doubt(doubt)
    judged = set[str]()

    def judge(executor: Executor, assigned: Sequence[Assignment], case: Case) -> JudgedCase:
        judged.update(assignment.oracle.name for assignment in assigned)
        return judge_despite_errors(executor, assigned, case)

    monkeypatch.setattr(worker, "judge_despite_errors", judge)
    with CaseWork(attached(arms), tmp_path, 1, "", {})(0, stop.is_set) as do:
        do(Retry(doubt.name))
    assert {"result", "crash"} <= judged
    assert judged.isdisjoint({"tlp", "norec"} - {oracle})


def test_a_doubt_in_a_case_that_crashes_servers_is_tried_again_once(
    arms: tuple[Arm, ...], tmp_path: Path, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program lets the server wait for its end first, so that all crashes have one backtrace."""
    crash = "DO $$ BEGIN COPY (SELECT 1) TO PROGRAM 'sleep 0.5; kill -SEGV $PPID; sleep 1'; END $$"
    case = Case("test", (), (Step(crash),))
    run(arms, tmp_path, stop, cases(monkeypatch, case))
    doubt = doubt_of("result", Unstable("rows"), "1/test/0", case)
    with opened(tmp_path) as store:
        (crash_found,) = store.findings()
        store.add_doubt(doubt)
    with CaseWork(attached(arms), tmp_path, 1, "", {})(0, stop.is_set) as do:
        result = do(Retry(doubt.name))
    assert isinstance(result, RetryResult)
    assert result.found == ()
    assert crash_found.finding.oracle == "crash"
    assert result.note.endswith(f"found: {crash_found.finding.fingerprint}")


def test_a_doubt_that_cannot_be_tried_again_makes_room_for_the_next(
    arms: tuple[Arm, ...], tmp_path: Path, open_directory: Path, stop: Event
) -> None:
    """The servers of retries do not start, because initdb fails."""
    begin(tmp_path)
    doubt = doubt_of("result", Unstable("rows"), "1/test/0", queries("SELECT 1"))
    with opened(tmp_path) as store:
        store.add_doubt(doubt)
    prefix = open_directory / "install"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "initdb").symlink_to("/bin/false")
    failing = tuple(replace(arm, build=replace(arm.build, prefix=prefix)) for arm in arms)
    with CaseWork(attached(failing), tmp_path, 1, "", {})(0, stop.is_set) as do:
        result = do(Retry(doubt.name))
    assert isinstance(result, RetryResult)
    with opened(tmp_path) as store:
        (tried,) = store.doubts()
        assert store.untried_doubt() is None
    assert tried.outcome.startswith("could not be tried: initdb of build")
    assert tried.outcome in result.note
