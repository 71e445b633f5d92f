"""Starting a server: at fixed addresses; and where it does not start, why."""

import functools
import subprocess

from fuzz import workdir

_NO_SHARED_MEMORY = f"there is not enough shared memory; see {workdir.COMMAND} doctor"
_CAUSES = (  # what the server says, and what the user can do about it
    ("Address already in use", "the socket or port is in use by another server"),
    ("lock file", "the socket or data directory is in use by another server"),
    ("could not map anonymous shared memory", _NO_SHARED_MEMORY),
    ("could not create shared memory segment", _NO_SHARED_MEMORY),
    ("could not resize shared memory segment", _NO_SHARED_MEMORY),
    ("No space left on device", "the disk is full, make room there"),
)


@functools.cache
def fixed_addresses() -> tuple[str, ...]:
    """Return the command that starts a program without address space randomization, where the system allows it.

    Servers hash pointers (resowner.c does), so that with random addresses a bug may show in one start and not in the
    next, and a finding would replay only now and then.
    """
    command = ("setarch", "--addr-no-randomize")
    tried = subprocess.run([*command, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return command if tried.returncode == 0 else ()


def why(said: str) -> str:
    """Return what a server's log tells of why it did not start, and what to do about it."""
    for symptom, cause in _CAUSES:
        if symptom in said:
            return f"{cause} ({next(line for line in said.splitlines() if symptom in line)})"
    return " / ".join(line for line in said.splitlines()[-3:]) or "it said nothing"
