"""Tests of faults while a campaign runs: it has the findings, doubts and cases of a campaign without faults.

A file of a user has findings and doubts that only its cases determine. The findings are known faults, so none is
reduced.
"""

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from fuzz import workdir
from fuzz.campaign.catalog import opened
from tests.cli.command import Command, Ended, await_cases, ended, json_of
from tests.servers.disk import fill, of_limited_size

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(900)]

# After the clock is set back, the server's pg_sleep would not end for a day.
_GENERATOR = '''\
"""A table of a megabyte, a pause, and a query of one, two or four rows."""

from fuzz.generators.generator import Generator
from oracles.model.case import Case, Kind, Step


class Rows(Generator):
    """A table of a megabyte, a pause, and a query of one, two or four rows."""

    name = "rows"
    modes = ("plain",)

    def generate(self, rng, scale):
        """Return a case with one table and one query."""
        table = Step("CREATE TABLE t AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
        rows = rng.choice((1, 2, 4, 4))
        pause = Step("SELECT pg_sleep(0.4)")  # so that faults come before the last case, on busy processors too
        return Case(self.name, (table, pause), (Step(f"SELECT generate_series(1, {rows})", Kind.QUERY),))
'''
_ORACLE = """\
from oracles.framework.canaries import canary_case, query
from oracles.model.case import Kind
from oracles.model.finding import Finding
from oracles.model.observation import Outcome, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, Oracle


class FewRows(Oracle):
    name = "few_rows"
    needs_another_arm = False
    canaries = (Canary("drop_row", canary_case(query("SELECT n FROM canary"))),)

    def judge(self, case, arms, observations):
        seen = observations[Run(arms[0], case.modes)].steps
        for number, (step, each) in enumerate(zip(case.all_steps, seen, strict=True)):
            if each.outcome is not Outcome.OK:
                return (Inconclusive("an error"),)
            if step.kind is Kind.QUERY and len(each.rows) % 2:
                return (Finding(self.name, (arms[0], arms[0]), "rows", number, "odd rows", "even", "odd"),)
            if step.kind is Kind.QUERY and len(each.rows) == 2:
                return (Inconclusive("two rows"),)
        return (Agree(len(seen)),)
"""
_KNOWN = """\
[[known]]
oracle = "few_rows"
origin = "rows"
"""

# A library to preload. libfaketime does not fit: without a wrong monotonic clock, Python's sleep fails in it.
_CLOCK = """\
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, clock, now);
    const char *file = getenv("CLOCK_SECONDS");
    if (!failed && clock == CLOCK_REALTIME && file) {
        char text[32] = "";
        int seconds = open(file, O_RDONLY | O_CLOEXEC);
        if (seconds >= 0 && read(seconds, text, sizeof text - 1) > 0)
            now->tv_sec += atol(text);
        close(seconds);
    }
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now)
        *now = precise.tv_sec;
    return precise.tv_sec;
}
"""

_CASES = ("--seed", "10", "--cases", "16")


@dataclass(frozen=True)
class _Results:
    """Everything that a fault must not change."""

    ended: str
    cases: int
    cases_in_ranges: int
    judged: int
    findings: dict[str, int]  # fingerprint → number of cases
    doubts: frozenset[str]


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> tuple[str | Path, ...]:
    directory = tmp_path_factory.mktemp("files")
    generator, oracle, known = directory / "rows.py", directory / "few_rows.py", directory / "known.toml"
    generator.write_text(_GENERATOR)
    oracle.write_text(_ORACLE)
    known.write_text(_KNOWN)
    return ("--arm", "only=upstream", "--generator", generator, "--oracle", oracle, "--known", known)


def _results(pgduel: Command) -> _Results:
    with opened(pgduel.campaigns / "1") as store:
        counters = store.counters
        return _Results(
            store.ended,
            counters.cases.total(),
            sum(store.done().values()),
            counters.judged.total(),
            {each.finding.fingerprint: each.count for each in store.findings()},
            frozenset(each.name for each in store.doubts()),
        )


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, options: tuple[str | Path, ...]) -> _Results:
    """Return the results of a campaign without faults."""
    pgduel = Command(tmp_path_factory.mktemp("expected"))
    done = pgduel("fuzz", *options, *_CASES)
    results = _results(pgduel)
    assert (done.status, results.cases, *results.findings.values(), len(results.doubts)) == (0, 16, 3, 2), done.out
    return results


def _kill_all(process: subprocess.Popen[str]) -> None:
    """Kill a command and all processes that it started, among them its servers and their watchdog."""
    command = psutil.Process(process.pid)
    processes = [*command.children(recursive=True), command]
    for each in processes:
        with suppress(psutil.NoSuchProcess):  # ended by itself, when another one was killed
            each.kill()
    process.communicate()
    psutil.wait_procs(processes)


def test_a_campaign_whose_processes_are_all_killed_at_once_is_resumed(
    pgduel: Command, options: tuple[str | Path, ...], expected: _Results
) -> None:
    process = pgduel.start("fuzz", *options, *_CASES)
    await_cases(process, pgduel)
    _kill_all(process)
    process = pgduel.start("fuzz", "--resume", "1")
    await_cases(process, pgduel)
    _kill_all(process)
    done = pgduel("fuzz", "--resume", "1")
    assert (done.status, _results(pgduel)) == (0, expected), done.out + done.err


def test_a_named_campaign_whose_processes_are_all_killed_at_once_starts_again(
    pgduel: Command, options: tuple[str | Path, ...], tmp_path: Path
) -> None:
    process = pgduel.start("campaign", "start", "nightly", *options)
    await_cases(process, pgduel)
    _kill_all(process)
    killed = _results(pgduel)
    done = pgduel("campaign", "start", "nightly", "--minutes", "0.05")
    assert done.status in (0, 2), done.out + done.err  # a few cases may prove too little
    assert _results(pgduel) == killed
    file = tmp_path / "status.json"
    status = json_of(pgduel("campaign", "status", "nightly", "--json", file), file, 0)
    assert [(run["campaign"], run["seed"]) for run in status["runs"]] == [("1", 1), ("2", 2)]


def _acting(process: subprocess.Popen[str], line: str, action: Callable[[], object]) -> Ended:
    """Wait for the end of a command, and act each time it prints a line with this text."""
    assert process.stdout is not None
    assert process.stderr is not None
    printed = []
    with process:
        for each in process.stdout:
            printed.append(each)
            if line in each:
                action()
        errors = process.stderr.read()
    return Ended(process.returncode, "".join(printed), errors)


@dataclass(frozen=True)
class _Disk:
    """A small disk, and a command that uses it."""

    pgduel: Command
    directory: Path


@pytest.fixture(params=["store", "servers"])
def disk(request: pytest.FixtureRequest, pgduel: Command, open_directory: Path) -> Iterator[_Disk]:
    if request.param == "store":
        with of_limited_size(pgduel.campaigns, 4) as directory:
            yield _Disk(pgduel, directory)
        return
    home = open_directory / "home"
    with of_limited_size(home / "clusters", 400) as directory:
        for each in workdir.root().iterdir():
            if each.name != "clusters":
                (home / each.name).symlink_to(each)
        yield _Disk(Command(pgduel.campaigns, home), directory)


def test_a_campaign_outlasts_a_full_disk(disk: _Disk, options: tuple[str | Path, ...], expected: _Results) -> None:
    process = disk.pgduel.start("fuzz", *options, *_CASES)
    await_cases(process, disk.pgduel)
    filling = fill(disk.directory)
    done = _acting(process, "trying again for 10 minutes", filling.unlink)
    assert (done.status, _results(disk.pgduel)) == (0, expected), done.out + done.err
    assert "make room" in done.out


def _kill_backend(process: subprocess.Popen[str]) -> None:
    """Kill a backend that executes a statement of a case."""
    while True:
        for each in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if re.match(r"postgres: \w+ duel_w\d \[local\] (BIND|CREATE|PARSE|SELECT)", " ".join(each.cmdline())):
                    each.kill()
                    return
        assert process.poll() is None, process.communicate()


def test_a_killed_backend_is_no_finding(pgduel: Command, options: tuple[str | Path, ...], expected: _Results) -> None:
    process = pgduel.start("fuzz", *options, *_CASES)
    for _ in range(3):
        await_cases(process, pgduel)
        _kill_backend(process)
    done = ended(process)
    results = _results(pgduel)
    assert (done.status, results.ended, results.cases) == (0, "all cases done", 16), done.out + done.err
    assert results.findings.keys() == expected.findings.keys()
    with opened(pgduel.campaigns / "1") as store:
        others = {each.reason for each in store.doubts() if each.name not in expected.doubts}
    # A changed query was killed; its reason begins with the name of the relation.
    others -= {each for each in others if each.endswith(": a variant was not executed to its end")}
    # The second reason is that of a session that was lost after its last step, the third that of `few_rows`.
    assert others <= {"killed by SIGKILL", "connection lost", "an error"}


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file with the seconds by which the clock of commands is wrong."""
    source, library, seconds = tmp_path / "clock.c", tmp_path / "clock.so", tmp_path / "seconds"
    source.write_text(_CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    seconds.write_text("0")
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("CLOCK_SECONDS", str(seconds))
    return seconds


@pytest.mark.parametrize("dask", [(), ("--dask", "local")])
def test_a_campaign_outlasts_changes_of_the_clock(
    pgduel: Command, options: tuple[str | Path, ...], expected: _Results, clock: Path, dask: tuple[str, ...]
) -> None:
    process = pgduel.start("fuzz", *options, *_CASES, "--minutes", "600", *dask)
    for seconds in (86400, -86400):
        await_cases(process, pgduel)
        clock.write_text(str(seconds))
    done = ended(process)
    assert (done.status, _results(pgduel)) == (0, expected), done.out + done.err
    with opened(pgduel.campaigns / "1") as store:
        times = [each.at for each in store.samples()]
    assert times != sorted(times)
