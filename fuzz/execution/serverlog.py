"""A server's log, read as it grows: assignment of lines to processes, and crashes.

Lines start with `%p|%a|` (log_line_prefix in fuzz/servers/settings.py). Some output bypasses the logger: failed
assertions, backtraces, sanitizer reports. It has no prefix; its first line contains the process number.

A foreign server may lead back to the same server. The sessions behind it are separate backends. Their application name
contains the process number of the backend that opened them.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from fuzz.generators.loopback import LED_BY
from fuzz.servers.account import server_account
from fuzz.servers.cluster import log_text
from oracles.model.observation import Message, Remote

# An application name may have bars, so it ends before a severity. Without one, it ends at the first bar.
_PREFIX = re.compile(rf"^(\d+)\|(?:{LED_BY}(\d+)\b)?(?:.*?\|(?=[A-Z]+:  )|[^|]*\|)(.*)$", re.DOTALL)
_PROBE = re.compile(r"^pgduel_probe: signal \d+ in process (\d+) led by (\d+)")
_NAMES_PROCESS = (_PROBE, re.compile(r"^TRAP: .*PID: (\d+)"), re.compile(r"^==(\d+)=="))
_DIED = re.compile(r"\(PID (\d+)\) (?:was terminated by signal|exited with exit code (?![01]$))")
# The postmaster's line about a process whose session can claim it: a backend or its parallel worker.
_OF_SESSION = re.compile(r'LOG:  (server process|client backend|background worker "parallel worker") \(PID')
_REPORT = re.compile(r"^(TRAP: |pgduel_probe: signal|==\d+==ERROR: |PANIC:  )|: runtime error: ")
# With log_error_verbosity=verbose; LOCATION is an entry of its own.
_ERROR = re.compile(r"(ERROR|FATAL|PANIC):  ([0-9A-Z]{5}): (.*)", re.DOTALL)
_LOCATION = re.compile(r"LOCATION:  (\w+),")
_FRAME = re.compile(r"^(?P<file>.*)\(\+(?P<address>0x[0-9a-f]+)\) ?\[0x[0-9a-f]+\]$")


@dataclass(frozen=True, slots=True)
class Entry:
    """A log message with its continuation lines. The pid is 0 if the process is unknown."""

    pid: int
    text: str
    raw: bool = False  # output that bypasses the logger
    # process that opened this session through a foreign server, or 0
    leader: int = 0


@dataclass(frozen=True, slots=True)
class Deaths:
    """Abnormally ended processes with the postmaster's line about each, and leaders of parallel workers."""

    lines: dict[int, str]
    leaders: dict[int, int]


class ServerLog:
    """A log file, read from a mark to its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.mark()

    def mark(self) -> None:
        """Set the mark to the current end of the file."""
        self._offset = self._path.stat().st_size if self._path.exists() else 0

    def entries(self) -> list[Entry]:
        """Return the messages since the mark."""
        if not self._path.exists() or self._path.stat().st_size <= self._offset:
            return []
        return split(log_text(self._path, self._offset))


def split(text: str) -> list[Entry]:
    """Return the entries of log text. Messages may have any character at which text may break except a line feed."""
    found: list[tuple[int, list[str], bool, int]] = []
    for line in text.removesuffix("\n").split("\n") if text else ():
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
    """Return the abnormally ended processes, according to the postmaster."""
    lines, leaders = {}, {}
    for entry in entries:
        if died := _DIED.search(entry.text):
            lines[int(died[1])] = entry.text
        for line in entry.text.split("\n"):
            if entry.raw and (seen := _PROBE.match(line)):
                leaders[int(seen[1])] = int(seen[2])
    return Deaths(lines, leaders)


def located_errors(entries: Iterable[Entry]) -> Iterator[Message]:
    """Yield the errors of sessions that log with log_error_verbosity=verbose, which names the C function."""
    latest: dict[int, Message] = {}
    for entry in entries:
        if raised := _ERROR.match(entry.text):
            latest[entry.pid] = Message(raised[1], raised[2], raised[3])
        elif (located := _LOCATION.match(entry.text)) and entry.pid in latest:
            yield replace(latest.pop(entry.pid), routine=located[1])


def about(pid: int, entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return the messages of a backend and its parallel workers, and raw lines of unknown processes."""
    listed = list(entries)
    leaders = deaths(listed).leaders
    return tuple(entry.text for entry in listed if _is_about(pid, entry, leaders))


def _is_about(pid: int, entry: Entry, leaders: Mapping[int, int]) -> bool:
    return entry.pid == pid or leaders.get(entry.pid) == pid or not entry.pid


def remote(pid: int, entries: Iterable[Entry]) -> tuple[Remote, ...]:
    """Return the messages of sessions that a backend opened through foreign servers, directly or indirectly."""
    remote: list[Remote] = []
    numbers: dict[int, int] = {}
    listed = list(entries)
    led, leaders = _led(pid, listed), deaths(listed).leaders
    before = 0
    for entry in listed:
        if entry.pid in led:
            remote.append(Remote(numbers.setdefault(entry.pid, len(numbers) + 1), before, entry.text))
        before += _is_about(pid, entry, leaders)
    return tuple(remote)


def _led(pid: int, entries: Iterable[Entry]) -> set[int]:
    """Return the sessions that a backend opened through foreign servers, directly or indirectly."""
    led: set[int] = set()
    for entry in entries:  # a session logs nothing before the session that opened it
        if entry.leader and (entry.leader == pid or entry.leader in led):
            led.add(entry.pid)
    return led


def reports_of(pids: Set[int], entries: Iterable[Entry]) -> list[str]:
    """Return the reports of these processes on failed assertions, signals, PANIC and sanitizers, in order."""
    return [entry.text for entry in entries if entry.pid in pids and _REPORT.search(entry.text)]


def crash_of(pid: int, entries: Iterable[Entry], executable: Path, postmaster: int = 0) -> str | None:
    """Return the report of a crash of this backend, a parallel worker of it or a session that it opened, or None.

    A crash of a process that serves all sessions, such as the checkpointer or the postmaster, counts for each session
    (pid not 0) during which it occurs, because no log line tells which one caused it.

    The report has the postmaster's line if the process died. It also has all reports of assertions, signals, PANIC and
    sanitizers. In backtraces, addresses of static functions are replaced by names.
    """
    listed = list(entries)
    dead = deaths(listed)
    mine = {pid, postmaster} | _led(pid, listed)
    mine |= {follower for follower, leader in dead.leaders.items() if leader in mine}
    mine |= {process for process, line in dead.lines.items() if pid and not _OF_SESSION.match(line)}
    lines = [line for process, line in dead.lines.items() if process in mine]
    reports = reports_of(mine | {0}, listed)
    if not lines and not reports:
        return None
    return "\n".join(symbolised(reports, executable) + lines)


def symbolised(reports: Iterable[str], executable: Path) -> list[str]:
    """Return the reports with function names and lines for bare addresses, if addr2line is available.

    A return address is after its call, so the preceding address is looked up.
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
    """Return the file of a frame. For the server itself, glibc reports the process title, so use `executable`."""
    file = frame["file"]
    return str(executable) if file.startswith("postgres: ") or file.endswith("/postgres") else file


def _named(file: str, addresses: Sequence[str]) -> list[tuple[str, str]]:
    """Return the addresses that have symbols, with function and line."""
    calls = [hex(int(address, 16) - 1) for address in addresses]
    command = ["addr2line", "-f", "-p", "-s", "-e", file, *calls]
    done = subprocess.run(command, capture_output=True, text=True, **server_account().options())
    named = zip(addresses, done.stdout.splitlines(), strict=False)
    return [(address, name) for address, name in named if not name.startswith("??")]
