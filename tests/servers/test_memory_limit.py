"""Tests of the limit on memory of a process and its children."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fuzz.errors import ServerError
from fuzz.servers.memory_limit import memory_limited

pytestmark = pytest.mark.servers

LIMIT = 64  # MB
PARENT = """
import subprocess, sys
for line in sys.stdin:
    child = subprocess.run([sys.executable, "-c", "b'x' * (" + line + " << 20)"])
    print(child.returncode, flush=True)
"""


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


def test_an_invalid_limit_is_refused(parent: subprocess.Popen[str]) -> None:
    with pytest.raises(ServerError, match="cannot limit memory"):
        memory_limited(parent.pid, -(1 << 50)).__enter__()
