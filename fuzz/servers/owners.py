"""Who owns a cluster: its directory holds a file that the owner keeps locked, so the kernel tells when it is gone.

A watchdog outlives an owner that is killed, and then stops its servers. It is a shell that waits for the end of a pipe
whose other end the owner and the processes that it forks have; run as a program, this file is what the shell starts.
"""

import atexit
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from filelock import FileLock

from fuzz import workdir
from fuzz.servers.processes import kill_all_in
from fuzz.servers.shared_memory import remove_segment_of

_FILE = "owner"


@dataclass(frozen=True, slots=True)
class Owner:
    """A claim to a directory, by one process and the children that it forks."""

    home: Path
    file: IO[str]
    pid: int
    destroy: Callable[[], None]


_claims: list[Owner] = []
_watchdogs: dict[int, subprocess.Popen[bytes]] = {}  # by process number of the owner
_WATCHDOG: Final = ("sh", "-c", 'trap "" INT TERM HUP; read -r done || exec "$@"', "pgduel-watchdog")


def claim(name: str, directory: Path, destroy: Callable[[], None]) -> Owner:
    """Make and own a cluster's home in a directory; `destroy` runs when this process ends without having done so.

    Clusters whose owner died are killed and deleted first. Raises StorageError.
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
    """Start this process's watchdog, once. Forked children keep the pipe open; programs that they start do not."""
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
    """Give a claim up."""
    if owner in _claims:
        _claims.remove(owner)
    owner.file.close()


def clean_up() -> None:
    """Kill and delete clusters whose owner died."""
    with registry():
        _clean_up()


def registry() -> FileLock:
    """Return the lock under which directories come and get their owner."""
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


if __name__ == "__main__":
    clean_up()
