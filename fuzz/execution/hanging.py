"""State of a session that does not answer: waits and stacks of its backend and parallel workers."""

import shutil
import subprocess
from collections.abc import Iterator
from typing import Final

from fuzz.execution.exchanges import Exchange
from fuzz.execution.worker_database import WorkerDatabase

_WAITS: Final = """
SELECT pid::text, backend_type, coalesce(state, 'no state'), coalesce(wait_event_type || ': ' || wait_event, 'no wait')
FROM pg_stat_activity WHERE $1::int IN (pid, leader_pid) ORDER BY leader_pid IS NOT NULL, pid"""
_FRAMES: Final = 30  # maximum frames per stack
_SECONDS: Final = 20  # timeout of gdb per process


def hang_report(worker_db: WorkerDatabase, pid: int) -> Exchange[tuple[str, ...]]:
    """Return lines on the backend and its parallel workers, with stacks if gdb is installed. Raises ServerError."""
    rows = yield from worker_db.admin_query(_WAITS, (str(pid),))
    lines: list[str] = []
    for process, kind, state, wait in rows:
        lines += [f"{kind}, {state}, {wait}", *_stack(int(process or 0))]
    return tuple(lines)


def _stack(pid: int) -> Iterator[str]:
    """Yield the frames of a process, innermost first, without addresses and process numbers."""
    gdb = shutil.which("gdb")
    if gdb is None:
        yield "  install gdb to see stacks of processes that hang"
        return
    command = [gdb, "--batch", "--nx", "-p", str(pid), "-ex", "bt"]
    try:
        output = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL
        ).stdout
    except subprocess.TimeoutExpired:
        yield "  gdb did not end"
        return
    frames = [line for line in output.splitlines() if line.startswith("#")]
    yield from (f"  {frame}" for frame in frames[:_FRAMES])
