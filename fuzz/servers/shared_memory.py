"""Shared memory of a killed postmaster: System V segments outlive their processes.

Dynamic segments need no care, because settings.FUZZING keeps them in the data directory.
"""

import subprocess
from contextlib import suppress
from pathlib import Path

from fuzz.servers.account import server_account

_SEGMENT_LINE = (
    6  # line of postmaster.pid, from 0, with key and ID (LOCK_FILE_LINE_SHMEM_KEY of utils/pidfile.h, minus one)
)


def remove_segment_of(data: Path) -> None:
    """Remove the segment of a killed server. A server that ends by itself removes its own.

    The account of servers does it, because it wrote the number: root could remove other users' segments.
    """
    account = server_account()
    with suppress(OSError, ValueError, IndexError):
        with account.file_access():
            line = (data / "postmaster.pid").read_text().splitlines()[_SEGMENT_LINE]
        subprocess.run(["ipcrm", "--shmem-id", line.split()[1]], capture_output=True, **account.options())
