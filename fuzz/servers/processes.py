"""Processes of a server, found by their working directory, which is the data directory for all of them.

Unlike a search by parents, this finds backends that outlive a killed postmaster. Processes with another root directory,
such as those of containers, are left out: their paths name other files.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil


def _processes() -> Iterator[psutil.Process]:
    """Yield all processes whose root directory is that of this process."""
    for process in psutil.process_iter():
        try:
            if os.path.samefile(f"/proc/{process.pid}/root", "/"):
                yield process
        except OSError:
            continue  # ended meanwhile, or another user's


def processes_in(directory: Path) -> list[psutil.Process]:
    """Return all live processes with this working directory, even if it has been deleted."""
    found = []
    for process in _processes():
        try:
            if process.cwd().removesuffix(" (deleted)") == str(directory):
                found.append(process)
        except psutil.Error:
            continue  # ended meanwhile, or another user's
    return found


def runs_in(pid: int, directory: Path) -> bool:
    """Return whether a process is alive and belongs to the directory; its ID may have been reused."""
    try:
        return bool(psutil.Process(pid).cwd().removesuffix(" (deleted)") == str(directory))
    except psutil.Error:
        return False


def runs_from(directory: Path) -> bool:
    """Return whether a program of the directory runs."""
    for process in _processes():
        try:
            if process.exe().startswith(f"{directory}/"):
                return True
        except psutil.Error:
            continue  # ended meanwhile, or another user's
    return False


def kill_all_of(program: Path) -> None:
    """Kill all processes of a program."""
    for process in _processes():
        try:
            if process.exe() == str(program):
                process.kill()
        except psutil.Error:
            continue  # ended meanwhile, or another user's


def kill_all_in(directory: Path, seconds: float = 10) -> None:
    """Kill all processes of the directory, and wait for their end for at most `seconds`."""
    deadline = time.monotonic() + seconds
    while (living := processes_in(directory)) and time.monotonic() < deadline:
        for process in living:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(living, timeout=0.5)


def kill_family(pid: int) -> None:
    """Kill a process and all processes that it started."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                each.kill()


def sleeps(pid: int) -> bool:
    """Return whether a process waits for something other than a processor. One that has ended does not."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_SLEEPING)
    except psutil.Error:
        return False


def cpu_seconds_of(pid: int) -> float:
    """Return user and system time of a process; 0 if it has ended."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def cpu_seconds_in(directory: Path) -> float:
    """Return user and system time of the directory's processes and of the children that they waited for."""
    total = 0.0
    for process in processes_in(directory):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
