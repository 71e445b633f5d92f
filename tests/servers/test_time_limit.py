"""Test of the time limit of a build's servers."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from fuzz.servers.build import Build
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.time_limit import time_limit


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
