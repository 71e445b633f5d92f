"""Tests of `sleeps`."""

import os
import subprocess
import sys
import time

from fuzz.servers.processes import sleeps


def test_a_process_that_waits_sleeps() -> None:
    waiting = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        deadline = time.monotonic() + 60
        while not sleeps(process.pid):
            assert time.monotonic() < deadline
        process.kill()
    assert not sleeps(process.pid)
    assert not sleeps(os.getpid())
