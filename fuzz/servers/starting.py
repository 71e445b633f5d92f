"""Start of a server at fixed addresses, and the reasons for a failed start."""

import functools
import subprocess

from fuzz import workdir

_NO_SHARED_MEMORY = f"there is not enough shared memory; see {workdir.COMMAND} doctor"
_CAUSES = (  # the server's message -> cause and remedy
    ("Address already in use", "the socket or port is in use by another server; stop that server"),
    ("lock file", "the socket or data directory is in use by another server; stop that server"),
    ("could not map anonymous shared memory", _NO_SHARED_MEMORY),
    ("could not create shared memory segment", _NO_SHARED_MEMORY),
    ("could not resize shared memory segment", _NO_SHARED_MEMORY),
    ("No space left on device", "the disk is full; make room there"),
)


@functools.cache
def fixed_addresses() -> tuple[str, ...]:
    """Return the command that starts a program without address space randomization, if the system allows it.

    Servers hash pointers (resowner.c does). With random addresses, a bug may show after one start and not after the
    next, and a finding would replay only sometimes.
    """
    command = ("setarch", "--addr-no-randomize")
    tried = subprocess.run([*command, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return command if tried.returncode == 0 else ()


def why(log: str) -> str:
    """Return the cause of a failed start from the server's log, and a remedy."""
    for symptom, cause in _CAUSES:
        if symptom in log:
            return f"{cause} ({next(line for line in log.splitlines() if symptom in line)})"
    return " / ".join(line for line in log.splitlines()[-3:]) or "its log is empty"
