"""Tests of the search for processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz.servers.processes import processes_in, sleeps


def wait_for_sleep(pid: int) -> None:
    deadline = time.monotonic() + 60
    while not sleeps(pid):
        assert time.monotonic() < deadline


def test_a_process_that_waits_sleeps() -> None:
    waiting = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        wait_for_sleep(process.pid)
        process.kill()
    assert not sleeps(process.pid)
    assert not sleeps(os.getpid())


@pytest.mark.skipif(os.getuid() != 0, reason="only root may change the root directory of a process")
@pytest.mark.parametrize("changed_root", [False, True])
def test_processes_with_another_root_directory_are_left_out(tmp_path: Path, *, changed_root: bool) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    root = tmp_path / "root" if changed_root else Path("/")
    (root / directory.relative_to("/")).mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if not child:
        os.chroot(root)
        os.chdir(directory)
        signal.pause()
    try:
        wait_for_sleep(child)
        assert [process.pid for process in processes_in(directory)] == ([] if changed_root else [child])
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
