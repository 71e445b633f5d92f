"""Tests of limits: the time of a build's servers, and the memory of a process and its children."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fuzz.errors import ServerError
from fuzz.servers.build import Build
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.limits import memory_limited, programs_limited, time_limit

LIMIT = 64  # MB
PARENT = """
import subprocess, sys
for line in sys.stdin:
    child = subprocess.run([sys.executable, "-c", "b'x' * (" + line + " << 20)"])
    print(child.returncode, flush=True)
"""


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Return a build whose server is any program: the limit is that of processes."""
    build = Build("0" * 12, tmp_path, "0" * 40, FLAVORS["assert"], (), "17.99")
    build.bindir.mkdir()
    shutil.copy(shutil.which("sleep") or "", build.bindir / "postgres")
    return build


def test_servers_that_run_after_the_limit_are_killed(build: Build) -> None:
    with time_limit(build, 0.1):
        servers = [subprocess.Popen([build.bindir / "postgres", "60"]) for _ in range(2)]
        assert [server.wait(30) for server in servers] == [-9, -9]


def test_servers_before_the_limit_and_after_the_context_live(build: Build) -> None:
    with time_limit(build, 60), subprocess.Popen([build.bindir / "postgres", "0.1"]) as server:
        assert server.wait(30) == 0
    with time_limit(build, 0):
        time.sleep(0.1)
    with subprocess.Popen([build.bindir / "postgres", "0.1"]) as server:
        assert server.wait(30) == 0


def test_programs_of_a_directory_are_killed_after_the_limit(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        with programs_limited([tmp_path], 0.1) as over, subprocess.Popen(["sleep", "60"], cwd=tmp_path) as limited:
            limited.wait(30)  # its exit status is lost if the thread that kills it waits for it first
        assert over.is_set()
        assert other.poll() is None
        other.kill()


def test_programs_that_end_before_the_limit_are_not_reported(tmp_path: Path) -> None:
    with programs_limited([tmp_path], 60) as over, subprocess.Popen(["sleep", "0.1"], cwd=tmp_path) as program:
        assert program.wait(30) == 0
    assert not over.is_set()


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """Yield a process that starts a child for each line of its input, the MB that the child takes."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        yield parent
        parent.kill()


def status_of_child(parent: subprocess.Popen[str], megabytes: int) -> int:
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(f"{megabytes}\n")
    parent.stdin.flush()
    return int(parent.stdout.readline())


@pytest.mark.servers
def test_children_are_limited_within_the_context(parent: subprocess.Popen[str]) -> None:
    before = Path(f"/proc/{parent.pid}/cgroup").read_text()
    assert status_of_child(parent, 2 * LIMIT) == 0
    with ExitStack() as stack:
        try:
            stack.enter_context(memory_limited(parent.pid, LIMIT))
        except ServerError as error:
            pytest.skip(str(error))
        assert f"pgduel-{parent.pid}" in Path(f"/proc/{parent.pid}/cgroup").read_text()
        assert status_of_child(parent, 1) == 0
        assert status_of_child(parent, 2 * LIMIT) != 0
    assert Path(f"/proc/{parent.pid}/cgroup").read_text() == before
    assert status_of_child(parent, 2 * LIMIT) == 0


@pytest.mark.servers
def test_an_invalid_limit_is_refused(parent: subprocess.Popen[str]) -> None:
    with pytest.raises(ServerError, match="cannot limit memory"):
        memory_limited(parent.pid, -(1 << 50)).__enter__()
