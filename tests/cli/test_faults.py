"""Tests of faults while a campaign runs: it has the findings, doubts and cases of a campaign without faults."""

import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from fuzz import workdir
from fuzz.campaign.catalog import opened
from fuzz.campaign.sqlite import FILE
from tests.cli.command import Command, acting, await_cases, ended, json_of
from tests.cli.known_results import CASES, Results, results_of
from tests.servers.disk import fill, of_limited_size

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(900)]

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
    pgduel: Command, options: tuple[str | Path, ...], expected: Results
) -> None:
    process = pgduel.start("fuzz", *options, *CASES)
    await_cases(process, pgduel)
    _kill_all(process)
    process = pgduel.start("fuzz", "--resume", "1")
    await_cases(process, pgduel)
    _kill_all(process)
    done = pgduel("fuzz", "--resume", "1")
    assert (done.status, results_of(pgduel.campaigns / "1")) == (0, expected), done.out + done.err


def test_a_named_campaign_whose_processes_are_all_killed_at_once_starts_again(
    pgduel: Command, options: tuple[str | Path, ...], tmp_path: Path
) -> None:
    process = pgduel.start("campaign", "start", "nightly", *options)
    await_cases(process, pgduel)
    _kill_all(process)
    killed = results_of(pgduel.campaigns / "1")
    done = pgduel("campaign", "start", "nightly", "--minutes", "0.05")
    assert done.status in (0, 2), done.out + done.err  # a few cases may prove too little
    assert results_of(pgduel.campaigns / "1") == killed
    file = tmp_path / "status.json"
    status = json_of(pgduel("campaign", "status", "nightly", "--json", file), file, 0)
    assert [(run["campaign"], run["seed"]) for run in status["runs"]] == [("1", 1), ("2", 2)]


def _workers(command: psutil.Process) -> list[psutil.Process]:
    return [each for each in command.children() if "spawn_main" in " ".join(each.cmdline())]


def _postmasters(command: psutil.Process) -> list[psutil.Process]:
    servers = [each for each in command.children(recursive=True) if each.name() == "postgres"]
    return [each for each in servers if each.parent() not in servers]


@pytest.mark.parametrize(
    ("victims", "line", "dask"),
    [
        (_workers, "a worker died (exit status -9) and was replaced", ()),
        (_workers, "was lost; its job is assigned again", ("--dask", "local")),
        (_postmasters, "the server of arm only was killed from outside; it is restarted", ()),
        (_postmasters, "the server of arm only was killed from outside; it is restarted", ("--dask", "local")),
    ],
    ids=["workers", "workers-dask", "postmasters", "postmasters-dask"],
)
def test_a_campaign_outlasts_kills_of_its_processes(
    pgduel: Command,
    options: tuple[str | Path, ...],
    expected: Results,
    victims: Callable[[psutil.Process], list[psutil.Process]],
    line: str,
    dask: tuple[str, ...],
) -> None:
    process = pgduel.start("fuzz", *options, *CASES, *dask)
    for _ in range(2):
        await_cases(process, pgduel)
        for each in victims(psutil.Process(process.pid)):
            each.kill()
    done = ended(process)
    assert (done.status, results_of(pgduel.campaigns / "1")) == (0, expected), done.out + done.err
    assert line in done.out


def test_a_campaign_outlasts_a_program_that_locks_the_store(
    pgduel: Command, options: tuple[str | Path, ...], expected: Results
) -> None:
    process = pgduel.start("fuzz", *options, *CASES)
    await_cases(process, pgduel)
    with closing(sqlite3.connect(pgduel.campaigns / "1" / FILE, isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        done = acting(process, "trying again for 10 minutes", other.rollback)
    assert (done.status, results_of(pgduel.campaigns / "1")) == (0, expected), done.out + done.err
    assert "another process uses it" in done.out
    assert "the store answers again" in done.out


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


def test_a_campaign_outlasts_a_full_disk(disk: _Disk, options: tuple[str | Path, ...], expected: Results) -> None:
    process = disk.pgduel.start("fuzz", *options, *CASES)
    await_cases(process, disk.pgduel)
    filling = fill(disk.directory)
    done = acting(process, "trying again for 10 minutes", filling.unlink)
    assert (done.status, results_of(disk.pgduel.campaigns / "1")) == (0, expected), done.out + done.err
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


def test_a_killed_backend_is_no_finding(pgduel: Command, options: tuple[str | Path, ...], expected: Results) -> None:
    process = pgduel.start("fuzz", *options, *CASES)
    for _ in range(3):
        await_cases(process, pgduel)
        _kill_backend(process)
    done = ended(process)
    results = results_of(pgduel.campaigns / "1")
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
    pgduel: Command, options: tuple[str | Path, ...], expected: Results, clock: Path, dask: tuple[str, ...]
) -> None:
    process = pgduel.start("fuzz", *options, *CASES, "--minutes", "600", *dask)
    for seconds in (86400, -86400):
        await_cases(process, pgduel)
        clock.write_text(str(seconds))
    done = ended(process)
    assert (done.status, results_of(pgduel.campaigns / "1")) == (0, expected), done.out + done.err
    with opened(pgduel.campaigns / "1") as store:
        times = [each.at for each in store.samples()]
    assert times != sorted(times)
