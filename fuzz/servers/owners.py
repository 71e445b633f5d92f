"""Ownership of clusters: a file in a cluster's directory that the owner keeps locked. The kernel unlocks it at its end.

A watchdog outlives an owner that is killed, and then stops its servers. It is a shell that waits for the end of a pipe,
which the owner and its forked processes hold open. The shell then runs this file as a program.

System V segments outlive a killed postmaster, so they are removed. Dynamic shared memory needs no care, because
settings.FUZZING keeps it in the data directory.
"""

import atexit
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from filelock import FileLock

from fuzz import workdir
from fuzz.servers.account import server_account
from fuzz.servers.processes import kill_all_in

_FILE = "owner"
# line of postmaster.pid, from 0, with key and ID (LOCK_FILE_LINE_SHMEM_KEY of utils/pidfile.h, minus one)
_SEGMENT_LINE = 6


@dataclass(frozen=True, slots=True)
class Owner:
    """A directory's ownership by one process and its forked children."""

    home: Path
    file: IO[str]
    pid: int
    destroy: Callable[[], None]


_claims: list[Owner] = []
_watchdogs: dict[int, subprocess.Popen[bytes]] = {}  # by the owner's process ID
_WATCHDOG: Final = ("sh", "-c", 'trap "" INT TERM HUP; read -r done || exec "$@"', "pgduel-watchdog")


def claim(name: str, directory: Path, destroy: Callable[[], None]) -> Owner:
    """Create and own a cluster's directory. `destroy` runs at the end of this process unless it ran before.

    Clusters of dead owners are killed and deleted first. Raises StorageError.
    """
    with registry():
        _clean_up()
        with workdir.writing(directory):
            home = Path(tempfile.mkdtemp(prefix=f"{name[:20]}-", dir=directory)).resolve()
            file = (home / _FILE).open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
    owner = Owner(home, file, os.getpid(), destroy)
    _claims.append(owner)
    _ensure_watchdog()
    return owner


def _ensure_watchdog() -> None:
    """Start this process's watchdog, once. Forked children hold the pipe open, other programs do not."""
    if os.getpid() in _watchdogs:
        return
    program = (sys.executable, "-P", "-m", "fuzz.servers.owners")
    _watchdogs[os.getpid()] = subprocess.Popen(
        [*_WATCHDOG, *program],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=os.environ | {"PYTHONPATH": str(workdir.PROJECT)},
        start_new_session=True,
    )


def release(owner: Owner) -> None:
    """Give up ownership."""
    if owner in _claims:
        _claims.remove(owner)
    owner.file.close()


def clean_up() -> None:
    """Kill and delete clusters of dead owners."""
    with registry():
        _clean_up()


def registry() -> FileLock:
    """Return the lock for changes of ownership."""
    return FileLock(workdir.clusters_on_disk() / "registry.lock")


def _clean_up() -> None:
    directories = {workdir.clusters(), workdir.clusters_on_disk()}
    for home in sorted(path for directory in directories for path in directory.iterdir() if path.is_dir()):
        if _is_orphan(home / _FILE):
            kill_all_in((home / "data").resolve())
            remove_segment_of(home / "data")
            shutil.rmtree(home, ignore_errors=True)


def _is_orphan(file: Path) -> bool:
    try:
        with file.open() as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return True
    return True


@atexit.register
def _destroy_all() -> None:
    for owner in [claimed for claimed in _claims if claimed.pid == os.getpid()]:
        owner.destroy()
    if watchdog := _watchdogs.pop(os.getpid(), None):
        watchdog.communicate(b"done\n")


def remove_segment_of(data: Path) -> None:
    """Remove the segment of a killed server. A server that ends by itself removes its own.

    The account of servers does it, because it wrote the number: root could remove other users' segments.
    """
    account = server_account()
    with suppress(OSError, ValueError, IndexError):
        with account.file_access():
            line = (data / "postmaster.pid").read_text().splitlines()[_SEGMENT_LINE]
        subprocess.run(["ipcrm", "--shmem-id", line.split()[1]], capture_output=True, **account.options())


if __name__ == "__main__":
    clean_up()
