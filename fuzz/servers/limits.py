"""Limits of servers: the time of all servers of a build, or of programs in a directory; the memory of one server.

A build may hang anywhere: in initdb, at its start, in any query. The memory limit is a control group, in which cached
files count as memory. So the server's temporary files must go to the disk, and must be read from there again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Final

from fuzz.errors import ServerError
from fuzz.servers.build import Build
from fuzz.servers.processes import kill_all_in, kill_all_of
from fuzz.servers.timers import ended_after, repeated_after

# Directory of groups, and file of the limit in bytes: for control groups of version 1 and 2.
_HIERARCHIES: Final = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)


@contextmanager
def time_limit(build: Build, seconds: float) -> Iterator[None]:
    """Kill all servers of a build that run after `seconds`, also new ones, until this context ends.

    So whoever waits for them gets an error.
    """
    with repeated_after(seconds, lambda: kill_all_of(build.bindir / "postgres")):
        yield


@contextmanager
def programs_limited(directories: Sequence[Path], seconds: float) -> Iterator[Event]:
    """Kill all programs that run in these directories after `seconds`, until this context ends.

    Yield an event that is set then.
    """

    def kill() -> None:
        for directory in directories:
            kill_all_in(directory)

    with ended_after(seconds, kill) as over:
        yield over


@contextmanager
def memory_limited(pid: int, megabytes: int) -> Iterator[None]:
    """Limit the memory of a process and its future child processes. Raises ServerError if that is not permitted."""
    top, file = next(((top, file) for top, file in _HIERARCHIES if _controls_memory(top, file)), (None, ""))
    if top is None:
        raise ServerError("cannot limit memory: no control groups for memory in /sys/fs/cgroup; leave the option out")
    group = top / f"pgduel-{pid}"
    home = _group_of(top, pid)
    try:
        group.mkdir(exist_ok=True)
        (group / file).write_text(str(megabytes << 20))
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        with suppress(OSError):
            group.rmdir()
        raise ServerError(
            f"cannot limit memory: {error.strerror} for {error.filename or group}; run pgduel as root"
        ) from error
    try:
        yield
    finally:
        _dissolve(group, home)


def _controls_memory(top: Path, file: str) -> bool:
    controllers = top / "cgroup.controllers"  # version 2 only
    return "memory" in controllers.read_text().split() if controllers.exists() else (top / file).exists()


def _group_of(top: Path, pid: int) -> Path:
    """Return the group of a process, from its line N:memory:/PATH, or 0::/PATH in version 2."""
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    wanted = "memory" if top.name == "memory" else ""
    return next((top / path.lstrip("/") for _, name, path in lines if name == wanted), top)


def _dissolve(group: Path, home: Path) -> None:
    """Move the processes that still run to the group above, and remove the group."""
    with suppress(OSError):
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):  # it has ended in the meantime
                (home / "cgroup.procs").write_text(pid)
        group.rmdir()
