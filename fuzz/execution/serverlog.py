"""A server's log, read as it grows: which lines are about which process, and who crashed.

Lines start with `%p|%a|` (log_line_prefix of fuzz/servers/settings.py). What processes write past the logger, such as
failed assertions, backtraces and sanitizer reports, has no prefix; its first line names the process.

A foreign server may lead back to the same server. The sessions behind it are backends of their own; their application
name says which backend opened them.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.generators.loopback import LED_BY
from fuzz.servers.account import server_account
from oracles.model.observation import Remote

_PREFIX = re.compile(rf"^(\d+)\|(?:{LED_BY}(\d+)\b)?[^|]*\|(.*)$", re.DOTALL)
_PROBE = re.compile(r"^pgduel_probe: signal \d+ in process (\d+) led by (\d+)")
_NAMES_PROCESS = (_PROBE, re.compile(r"^TRAP: .*PID: (\d+)"), re.compile(r"^==(\d+)=="))
_DIED = re.compile(r"\(PID (\d+)\) (?:was terminated by signal|exited with exit code (?![01]$))")
_REPORT = re.compile(r"^(TRAP: |pgduel_probe: signal|==\d+==ERROR: |PANIC:  )|: runtime error: ")
_FRAME = re.compile(r"^(?P<file>.*)\(\+(?P<address>0x[0-9a-f]+)\) ?\[0x[0-9a-f]+\]$")


@dataclass(frozen=True, slots=True)
class Entry:
    """A message of the log with its continuation lines; pid 0 where nothing says whose it is."""

    pid: int
    text: str
    raw: bool = False  # written past the logger
    leader: int = 0  # the process that opened this session through a foreign server, if one did


@dataclass(frozen=True, slots=True)
class Deaths:
    """Processes that died other than by exiting, with the postmaster's line about it; leaders of parallel workers."""

    lines: dict[int, str]
    leaders: dict[int, int]


class ServerLog:
    """The tail of one log file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.mark()

    def mark(self) -> None:
        """Forget all that is there by now."""
        self._offset = self._path.stat().st_size if self._path.exists() else 0

    def entries(self) -> list[Entry]:
        """Return the messages since the mark."""
        if not self._path.exists() or self._path.stat().st_size <= self._offset:
            return []
        with self._path.open("rb") as log:
            log.seek(self._offset)
            return split(log.read().decode("utf-8", "replace"))


def split(text: str) -> list[Entry]:
    """Split log text into entries."""
    found: list[tuple[int, list[str], bool, int]] = []
    for line in text.splitlines():
        if prefixed := _PREFIX.match(line):
            found.append((int(prefixed[1]), [prefixed[3]], False, int(prefixed[2] or 0)))
        elif line.startswith("\t") and found:
            found[-1][1].append(line)
        elif (named := _named_process(line)) or not found or not found[-1][2]:
            found.append((named, [line], True, 0))
        else:
            found[-1][1].append(line)
    return [Entry(pid, "\n".join(lines), raw, leader) for pid, lines, raw, leader in found]


def _named_process(line: str) -> int:
    return next((int(match[1]) for pattern in _NAMES_PROCESS if (match := pattern.match(line))), 0)


def deaths(entries: Iterable[Entry]) -> Deaths:
    """Return who died, as the postmaster saw it."""
    lines, leaders = {}, {}
    for entry in entries:
        if died := _DIED.search(entry.text):
            lines[int(died[1])] = entry.text
        for line in entry.text.split("\n"):
            if entry.raw and (seen := _PROBE.match(line)):
                leaders[int(seen[1])] = int(seen[2])
    return Deaths(lines, leaders)


def about(pid: int, entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return what a backend and its parallel workers said, and raw lines of nobody in particular."""
    listed = list(entries)
    leaders = deaths(listed).leaders
    return tuple(entry.text for entry in listed if _is_about(pid, entry, leaders))


def _is_about(pid: int, entry: Entry, leaders: Mapping[int, int]) -> bool:
    return entry.pid == pid or leaders.get(entry.pid) == pid or not entry.pid


def remote(pid: int, entries: Iterable[Entry]) -> tuple[Remote, ...]:
    """Return what sessions said that a backend opened through foreign servers, or that those opened in turn."""
    said: list[Remote] = []
    numbers: dict[int, int] = {}
    listed = list(entries)
    led, leaders = _led(pid, listed), deaths(listed).leaders
    before = 0
    for entry in listed:
        if entry.pid in led:
            said.append(Remote(numbers.setdefault(entry.pid, len(numbers) + 1), before, entry.text))
        before += _is_about(pid, entry, leaders)
    return tuple(said)


def _led(pid: int, entries: Iterable[Entry]) -> set[int]:
    """Return the sessions that a backend opened through foreign servers, and those that these opened."""
    led: set[int] = set()
    for entry in entries:  # a session says nothing before the one that opened it
        if entry.leader == pid or entry.leader in led:
            led.add(entry.pid)
    return led


def crash_of(pid: int, entries: Iterable[Entry], executable: Path) -> str | None:
    """Return the report of a crash of this backend, a parallel worker it led or a session it opened, or None.

    It holds the postmaster's line, if the process died, and all reports of assertions, signals, PANIC and sanitizers,
    with backtraces in which addresses of static functions are given names.
    """
    listed = list(entries)
    dead = deaths(listed)
    mine = {pid} | _led(pid, listed)
    mine |= {follower for follower, leader in dead.leaders.items() if leader in mine}
    lines = [line for process, line in dead.lines.items() if process in mine]
    reports = [entry.text for entry in listed if entry.pid in mine | {0} and _REPORT.search(entry.text)]
    if not lines and not reports:
        return None
    return "\n".join(symbolised(reports, executable) + lines)


def symbolised(reports: Iterable[str], executable: Path) -> list[str]:
    """Return the reports with functions and lines where glibc could give an address only, if binutils are there.

    An address is where a call returns to, so the call itself is what lies before.
    """
    lines = [line for report in reports for line in report.split("\n")]
    if shutil.which("addr2line") is None:
        return lines
    wanted: dict[str, list[str]] = {}
    for frame in filter(None, map(_FRAME.match, lines)):
        wanted.setdefault(_file_of(frame, executable), []).append(frame["address"])
    names = {(file, address): name for file in wanted for address, name in _named(file, wanted[file])}
    found = ((line, _FRAME.match(line)) for line in lines)
    return [
        names.get((_file_of(frame, executable), frame["address"]), line) if frame else line for line, frame in found
    ]


def _file_of(frame: re.Match[str], executable: Path) -> str:
    """Return the file that a frame is in; of the server itself, glibc tells the process title."""
    file = frame["file"]
    return str(executable) if file.startswith("postgres: ") or file.endswith("/postgres") else file


def _named(file: str, addresses: Sequence[str]) -> list[tuple[str, str]]:
    """Return addresses with function and line, as far as the file has symbols."""
    calls = [hex(int(address, 16) - 1) for address in addresses]
    command = ["addr2line", "-f", "-p", "-s", "-e", file, *calls]
    done = subprocess.run(command, capture_output=True, text=True, **server_account().options())
    named = zip(addresses, done.stdout.splitlines(), strict=False)
    return [(address, name) for address, name in named if not name.startswith("??")]
