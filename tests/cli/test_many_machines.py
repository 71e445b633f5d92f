"""Tests of campaigns on a Dask scheduler with workers of their own, as users start them."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from fuzz import workdir
from fuzz.campaign.dask_pool import connected
from tests.cli.command import Command, acting, addresses_of, await_cases, ended
from tests.cli.known_results import CASES, Results, results_of
from tests.servers.disk import of_limited_size

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(900)]

_HERE, _THERE = "198.51.100.1", "198.51.100.2"  # for documentation (RFC 5737)
_CUT = 60  # seconds without a network, more than Dask's own timeout of 30


class _Machines:
    """A scheduler and a worker, started again after they were killed."""

    def __init__(
        self, pgduel: Command, directory: Path, address: str = "127.0.0.1", scheduling: Command | None = None
    ) -> None:
        """`scheduling` starts the scheduler, which listens at this address."""
        self._pgduel = pgduel
        self._address = address
        self._scheduling = scheduling or pgduel
        self._file = directory / "scheduler.json"
        self._processes: list[subprocess.Popen[str]] = []

    def start(self) -> str:
        """Start both; return the address of the scheduler."""
        self._file.unlink(missing_ok=True)
        here = ("--host", self._address, "--port", "0", "--scheduler-file", str(self._file))
        self._processes.append(self._scheduling.start("campaign", "scheduler", "--", *here))
        while not self._file.exists():
            assert self._processes[-1].poll() is None, self._processes[-1].communicate()
            time.sleep(0.1)
        address: str = json.loads(self._file.read_text())["address"]
        self._processes.append(self._pgduel.start("campaign", "worker", address, "--workers", "1"))
        return address

    @property
    def worker(self) -> psutil.Process:
        """Return the process of the worker."""
        return psutil.Process(self._processes[-1].pid)

    def kill_scheduler(self) -> None:
        self._processes[-2].kill()

    def kill(self) -> None:
        """Kill both, with the children that they started."""
        for process in self._processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        self._processes.clear()


@pytest.fixture
def machines(pgduel: Command, tmp_path: Path) -> Iterator[_Machines]:
    machines = _Machines(pgduel, tmp_path)
    try:
        yield machines
    finally:
        machines.kill()


def test_a_worker_listens_at_the_address_by_which_it_reaches_the_scheduler(machines: _Machines) -> None:
    with connected(machines.start(), 0) as client:
        client.wait_for_workers(1)
        assert addresses_of(machines.worker) == {"127.0.0.1"}


def test_a_worker_without_a_scheduler_ends_with_one_line(pgduel: Command) -> None:
    done = pgduel("campaign", "worker", "tcp://127.0.0.1:1")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert done.err.startswith("pgduel: no Dask scheduler answers at tcp://127.0.0.1:1 (")


def test_a_campaign_whose_scheduler_is_killed_is_resumed_on_another(
    pgduel: Command, machines: _Machines, options: tuple[str | Path, ...], expected: Results
) -> None:
    address = machines.start()
    process = pgduel.start("fuzz", *options, *CASES, "--dask", address)
    await_cases(process, pgduel)
    machines.kill_scheduler()
    done = ended(process)
    assert done.status == 2, done.out + done.err
    assert re.fullmatch(rf"pgduel: the Dask scheduler at {address} is gone \(.*\); start it again\n", done.err)
    assert f"continue with: ./pgduel fuzz --resume 1 --dask {address}\n" in done.out
    machines.kill()
    resumed = pgduel("fuzz", "--resume", "1", "--dask", machines.start())
    assert (resumed.status, results_of(pgduel.campaigns / "1")) == (0, expected), resumed.out + resumed.err


def test_a_killed_campaign_is_resumed_with_the_same_workers(
    pgduel: Command, machines: _Machines, options: tuple[str | Path, ...], expected: Results
) -> None:
    address = machines.start()
    process = pgduel.start("fuzz", *options, *CASES, "--dask", address)
    for _ in range(2):
        await_cases(process, pgduel)
        process.kill()
        process.communicate()
        process = pgduel.start("fuzz", "--resume", "1", "--dask", address)
    done = ended(process)
    assert (done.status, results_of(pgduel.campaigns / "1")) == (0, expected), done.out + done.err


@pytest.fixture
def machine() -> Iterator[str]:
    """Make a machine, a network namespace with the address _THERE, and return its name."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root may make a network namespace, with the package iproute2")
    name = f"pgd{os.getpid()}"
    if _ip("netns", "add", name).returncode:
        pytest.skip("no network namespace can be made here")
    try:
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name, check=True)
        _ip("address", "add", f"{_HERE}/30", "dev", name, check=True)
        _ip("link", "set", name, "up", check=True)
        _ip("-n", name, "address", "add", f"{_THERE}/30", "dev", "eth0", check=True)
        for device in ("lo", "eth0"):
            _ip("-n", name, "link", "set", device, "up", check=True)
        yield name
    finally:
        _ip("link", "delete", name)
        _ip("netns", "delete", name)


def _ip(*arguments: str, check: bool = False) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(["ip", *arguments], check=check)


def test_a_campaign_outlasts_a_network_that_is_cut(
    pgduel: Command, machine: str, tmp_path: Path, options: tuple[str | Path, ...], expected: Results
) -> None:
    machines = _Machines(pgduel, tmp_path, _THERE, replace(pgduel, around=("ip", "netns", "exec", machine)))
    try:
        process = pgduel.start("fuzz", *options, *CASES, "--dask", machines.start())
        await_cases(process, pgduel)
        _ip("-n", machine, "link", "set", "eth0", "down", check=True)
        time.sleep(_CUT)
        _ip("-n", machine, "link", "set", "eth0", "up", check=True)
        done = ended(process)
    finally:
        machines.kill()
    assert (done.status, results_of(pgduel.campaigns / "1")) == (0, expected), done.out + done.err
    assert "was lost;" not in done.out


def _fill_until(directory: Path, room: threading.Event) -> None:
    """Fill a disk, also with the space that others free, until there may be room again."""
    with (directory / "filling").open("wb", buffering=0) as filling:
        while not room.is_set():
            try:
                filling.write(bytes(1 << 12))
            except OSError:
                room.wait(0.01)
    (directory / "filling").unlink()


def test_a_worker_whose_disk_is_full_waits_for_room(
    pgduel: Command, open_directory: Path, tmp_path: Path, options: tuple[str | Path, ...], expected: Results
) -> None:
    home, room = open_directory / "home", threading.Event()
    with of_limited_size(home / "clusters", 400) as disk, ThreadPoolExecutor(1) as pool:
        for each in workdir.root().iterdir():
            if each.name != "clusters":
                (home / each.name).symlink_to(each)
        machines = _Machines(replace(pgduel, home=home), tmp_path, scheduling=pgduel)
        try:
            process = pgduel.start("fuzz", *options, *CASES, "--dask", machines.start())
            await_cases(process, pgduel)
            pool.submit(_fill_until, disk, room)
            done = acting(process, " is full; make room there", room.set)
        finally:
            room.set()
            machines.kill()
    assert (done.status, results_of(pgduel.campaigns / "1")) == (0, expected), done.out + done.err
    assert re.search(r"^worker \S+ waits: the disk of \S+ is full; make room there$", done.out, re.MULTILINE), done.out
