"""Usage of the machine by a campaign: the memory and open files of its processes, and the disk space of its files."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

_SERVER: Final = "postgres"
_BLOCK: Final = 512  # bytes, the unit of st_blocks


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory and disk space in bytes, and a number of open files. Shared memory counts once."""

    memory: int = 0
    disk: int = 0
    files: int = 0


UNKNOWN: Final = Usage()


def size_of(directory: Path) -> int:
    """Return the bytes on disk of a directory; 0 if it does not exist."""
    total = 0
    for parent, directories, files in os.walk(directory):  # leaves out directories that vanish, unlike Path.rglob
        for name in (*directories, *files):
            with suppress(FileNotFoundError):  # it was deleted in the meantime
                total += os.lstat(os.path.join(parent, name)).st_blocks * _BLOCK
    return total


def usage_of(campaign: Path) -> Usage:
    """Return the usage of this process, its descendants, the data directories of their servers, and a directory.

    Descendants are workers, servers and external fuzzers, but not workers on other machines.
    """
    memory = files = 0
    directories = {campaign}
    process = psutil.Process(os.getpid())
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):  # it ended meanwhile
            memory += each.memory_full_info().pss
            files += each.num_fds()
            if each.name() == _SERVER:
                directories.add(Path(each.cwd()))
    return Usage(memory, sum(map(size_of, directories)), files)
