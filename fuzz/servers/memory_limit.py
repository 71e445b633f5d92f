"""Memory limit: a control group for one server, whose cached files count as its memory.

What the server writes to temporary files has to go to the disk then, and be read from there again.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fuzz.errors import ServerError

# Where groups are made, and the file that takes the limit in bytes: of the first and of the second version.
_HIERARCHIES: Final = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)


@contextmanager
def memory_limited(pid: int, megabytes: int) -> Iterator[None]:
    """Limit a process and those that it starts from now on. Raises ServerError where that is not allowed."""
    top, file = next(((top, file) for top, file in _HIERARCHIES if _controls_memory(top, file)), (None, ""))
    if top is None:
        raise ServerError("memory cannot be limited: no control groups for memory in /sys/fs/cgroup")
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
            f"memory cannot be limited: {error.strerror} for {error.filename or group}; be root"
        ) from error
    try:
        yield
    finally:
        _dissolve(group, home)


def _controls_memory(top: Path, file: str) -> bool:
    controllers = top / "cgroup.controllers"  # of the second version only
    return "memory" in controllers.read_text().split() if controllers.exists() else (top / file).exists()


def _group_of(top: Path, pid: int) -> Path:
    """Return the group that a process is in: its line is N:memory:/PATH, or 0::/PATH in the second version."""
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    wanted = "memory" if top.name == "memory" else ""
    return next((top / path.lstrip("/") for _, name, path in lines if name == wanted), top)


def _dissolve(group: Path, home: Path) -> None:
    """Move what still runs back to where it came from, and remove the group."""
    with suppress(OSError):
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):  # it ended meanwhile
                (home / "cgroup.procs").write_text(pid)
        group.rmdir()
