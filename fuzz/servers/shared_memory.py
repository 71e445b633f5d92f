"""Shared memory that a killed postmaster leaves behind: System V segments outlive their processes.

Dynamic segments need no care, as settings.FUZZING keeps them in the data directory.
"""

import subprocess
from contextlib import suppress
from pathlib import Path

from fuzz.servers.account import server_account

_SEGMENT_LINE = 6  # of postmaster.pid, from 0: key and number (LOCK_FILE_LINE_SHMEM_KEY of utils/pidfile.h, less one)


def remove_segment_of(data: Path) -> None:
    """Remove the segment of a server that was killed; one that ended by itself has done so.

    The account of servers does it, since it wrote the number: root could remove other users' segments.
    """
    account = server_account()
    with suppress(OSError, ValueError, IndexError):
        with account.file_access():
            line = (data / "postmaster.pid").read_text().splitlines()[_SEGMENT_LINE]
        subprocess.run(["ipcrm", "--shmem-id", line.split()[1]], capture_output=True, **account.options())
