"""A limit on memory holds for a process and its children, and is gone afterwards."""

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
FEEDER = """
import subprocess, sys
for line in sys.stdin:
    child = subprocess.run([sys.executable, "-c", "b'x' * (" + line + " << 20)"])
    print(child.returncode, flush=True)
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """A process that starts children, each of which takes as many MB as it is told."""
    with subprocess.Popen(
        [sys.executable, "-c", FEEDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        yield parent
        parent.kill()


def fed(parent: subprocess.Popen[str], megabytes: int) -> int:
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(f"{megabytes}\n")
    parent.stdin.flush()
    return int(parent.stdout.readline())


def test_children_are_limited_as_long_as_it_lasts(parent: subprocess.Popen[str]) -> None:
    before = Path(f"/proc/{parent.pid}/cgroup").read_text()
    assert fed(parent, 2 * LIMIT) == 0
    with ExitStack() as stack:
        try:
            stack.enter_context(memory_limited(parent.pid, LIMIT))
        except ServerError as error:
            pytest.skip(str(error))
        assert f"pgduel-{parent.pid}" in Path(f"/proc/{parent.pid}/cgroup").read_text()
        assert fed(parent, 1) == 0
        assert fed(parent, 2 * LIMIT) != 0
    assert Path(f"/proc/{parent.pid}/cgroup").read_text() == before
    assert fed(parent, 2 * LIMIT) == 0


def test_what_is_not_allowed_is_said(parent: subprocess.Popen[str]) -> None:
    with pytest.raises(ServerError, match="cannot limit memory"):
        memory_limited(parent.pid, -(1 << 50)).__enter__()
