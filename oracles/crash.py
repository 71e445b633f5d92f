"""Crash: no arm may lose a backend to a signal, a failed assertion, a PANIC or a sanitizer's report.

All observed runs are judged, including those that other oracles requested.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.shared_runs import REPEATED, repeated_runs
from oracles.framework.verdicts import findings_of_runs, lost_session
from oracles.model.case import Case
from oracles.model.finding import Finding, as_all_do
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import (
    CONNECTION_LOST,
    Agree,
    Canary,
    More,
    Observations,
    Oracle,
    Sample,
    Verdict,
    duel,
    judged_arms,
)

FRAMES: Final = 3  # of a backtrace, enough to distinguish causes
REPORT_LINES: Final = 60  # quoted in a finding
# Prefix of origins of kills from outside: by an administrator, the system or a postmaster that shuts down.
_KILLED: Final = "killed by "
FROM_OUTSIDE: Final = {"2": "SIGINT", "3": "SIGQUIT", "9": "SIGKILL", "15": "SIGTERM"}

_SANITIZER: Final = re.compile(r"ERROR: \w+Sanitizer: |: runtime error: ")
# a stack frame in the formats of debuggers and sanitizers, glibc, and addr2line
_FRAME: Final = re.compile(
    r"^\s*#\d+\s+(?:0x[0-9a-f]+ in )?(\w+)|\((\w+)\+0x[0-9a-f]+\)|^(\w+) at \S+:[\d?]+", re.MULTILINE
)
_MACHINERY: Final = re.compile(
    r"_*(raise|abort|gsignal|GI_\w+|pthread_kill\w*|errfinish|asan\w*|interceptor\w*|sanitizer\w*|ubsan\w*)"
)


class Crash(Oracle):
    """Backends lost to a signal, a failed assertion, a PANIC or a sanitizer's report."""

    name: ClassVar[str] = "crash"
    needs_another_arm: ClassVar[bool] = False
    origin_is_cause: ClassVar[bool] = True
    judges_lost_servers: ClassVar[bool] = True
    samples: ClassVar[tuple[Sample, ...]] = (REPEATED,)
    actual_title: ClassVar[str] = "backtrace"
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("assert", canary_case(query("SELECT n FROM canary"))),
        Canary("segv", canary_case(query("SELECT n FROM canary"))),
    )

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the plain runs, and repeated runs of a sample of cases.

        Use of memory that was freed too early may crash only in these.
        """
        return duel(case, arms) + repeated_runs(case, arms)

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return a finding for each crash. A crash of all arms is one finding, with the first arm twice in `arms`."""
        findings = findings_of_runs(arms, observations, _faults, _finding)
        if isinstance(findings, More):
            return findings
        suspects = {finding.arms[1] for finding in findings}
        others = [
            _unharmed(arm, self.runs(case, arms), observations) for arm in judged_arms(arms) if arm not in suspects
        ]
        return (*findings, *others)

    def origins(self, seen: CaseObservation) -> Iterator[str]:
        """Yield the origin of the run's crash."""
        if report := crash_report(seen):
            yield crash_origin(report)


def _faults(observed: CaseObservation) -> Iterator[tuple[str, None, CaseObservation]]:
    if report := crash_report(observed):
        yield crash_origin(report), None, observed


def _finding(pair: tuple[str, str], origin: str, observed: CaseObservation) -> Finding:
    lines = crash_report(observed).splitlines()
    lost = [position for position, seen in enumerate(observed.steps) if seen.outcome is Outcome.LOST]
    return Finding(
        oracle=Crash.name,
        arms=pair,
        origin=origin,
        step=lost[0] if lost else None,
        summary=f"{pair[1]} crashes: {origin}{as_all_do(pair)}",
        expected="the server stays up",
        actual="\n".join(lines[:REPORT_LINES]),
    )


def _unharmed(arm: str, runs: Sequence[Run], observations: Observations) -> Verdict:
    seen = [observations[run] for run in runs if run.arm == arm]
    steps = [step for observed in seen for step in observed.steps]
    if any(step.outcome is Outcome.LOST for step in steps):
        origins = sorted(crash_origin(observed.crash) for observed in seen if observed.crash is not None)
        killed = [origin for origin in origins if origin.startswith(_KILLED)]
        return lost_session(*seen, reason=killed[0] if killed else CONNECTION_LOST)
    return Agree(sum(step.has_ended for step in seen[0].steps))


def crash_report(observed: CaseObservation) -> str:
    """Return the report of a crash that the server caused itself, else the empty string."""
    if observed.crash is None:  # after a sanitizer's report the server may continue
        return "\n".join(line for line in observed.log if _SANITIZER.search(line))
    return "" if crash_origin(observed.crash).startswith(_KILLED) else observed.crash


def crash_origin(report: str) -> str:
    """Return the kind and place of a crash, without addresses and line numbers, which vary between builds."""
    for pattern, named in _KINDS:
        if found := pattern.search(report):
            return named(found, report)
    return f"crash: {_without_numbers(report.strip().partition(chr(10))[0]) or 'no report'}"


def _signal(found: re.Match[str], report: str) -> str:
    if sender := FROM_OUTSIDE.get(found["number"]):
        return f"{_KILLED}{sender}"
    return f"signal {found['number']}{_place(report)}"


def _place(report: str) -> str:
    frames = (next(filter(None, found.groups())) for found in _FRAME.finditer(report))
    own = [frame for frame in frames if not _MACHINERY.fullmatch(frame)]
    return f" in {' < '.join(own[:FRAMES])}" if own else ""


def _source(path: str) -> str:
    """Return a source file's path relative to the top of its source tree."""
    return re.sub(r"^.*?(?=(src|contrib)/)|^.*/(?!.*(src|contrib)/)", "", path, count=1)


def _without_numbers(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+", "N", text)


_KINDS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], str]], ...]] = (
    (
        re.compile(r'failed Assert\("(?P<condition>.*?)"\), File: "(?P<file>[^"]*)"'),
        lambda found, _: f"assertion {found['condition']} in {_source(found['file'])}",
    ),
    (
        re.compile(r"ERROR: (?P<tool>\w+Sanitizer): (?P<what>[\w-]+)"),
        lambda found, report: f"{found['tool']} {found['what']}{_place(report[found.end() :])}",
    ),
    (
        re.compile(r"(?P<file>[^\s:]+):\d+:\d+: runtime error: (?P<what>.*)"),
        lambda found, _: f"undefined behaviour in {_source(found['file'])}: {_without_numbers(found['what'])}",
    ),
    (
        re.compile(r"PANIC:\s+(?:[0-9A-Z]{5}:\s+)?(?P<what>.*)"),
        lambda found, _: f"PANIC {_without_numbers(found['what'])}",
    ),
    (re.compile(r"signal (?P<number>\d+)"), _signal),
)
