"""Tests of campaigns on a Dask scheduler with workers of their own, as users start them."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fuzz.campaign.dask_pool import connected
from tests.cli.command import EQUALS, Command, addresses_of, await_cases, ended, json_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


class _Machines:
    """A scheduler and a worker, started again after they were killed."""

    def __init__(self, pgduel: Command, directory: Path) -> None:
        self._pgduel = pgduel
        self._file = directory / "scheduler.json"
        self._processes: list[subprocess.Popen[str]] = []

    def start(self) -> str:
        """Start both; return the address of the scheduler."""
        self._file.unlink(missing_ok=True)
        here = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self._file))
        self._processes.append(self._pgduel.start("campaign", "scheduler", "--", *here))
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


def test_a_campaign_whose_scheduler_is_killed_is_resumed_on_another(
    pgduel: Command, machines: _Machines, tmp_path: Path
) -> None:
    address = machines.start()
    cases = ("--cases", "16", "--generator", "partitioned_joins")
    process = pgduel.start("fuzz", *EQUALS, *cases, "--dask", address)
    await_cases(process, pgduel)
    machines.kill_scheduler()
    done = ended(process)
    assert done.status == 2, done.out + done.err
    assert re.fullmatch(rf"pgduel: the Dask scheduler at {address} is gone \(.*\); start it again\n", done.err)
    assert f"continue with: ./pgduel fuzz --resume 1 --dask {address}\n" in done.out
    machines.kill()
    file = tmp_path / "summary.json"
    ended_again = pgduel("fuzz", "--resume", "1", "--dask", machines.start(), "--json", file)
    assert json_of(ended_again, file, 0)["cases"] == 16
