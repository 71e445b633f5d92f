"""A case as it was played when it crashed: some crashes show only in runs that other oracles asked for."""

from dataclasses import replace

from oracles.case import Case
from oracles.crash import Crash, crash_origin, crash_report
from oracles.finding import Finding
from oracles.observation import CaseObservation, Run
from oracles.oracle import Observations


def as_it_crashed(case: Case, finding: Finding, observations: Observations) -> Case:
    """Return a case that shows a crash by itself: this one, unless only other queries, or other modes, do."""
    runs = [run for run, seen in observations.items() if finding.oracle == Crash.name and _shows(finding, run, seen)]
    if not runs or any(run.modes == case.modes and not run.instead for run in runs):
        return case
    played = min(runs, key=lambda run: (run.explain or run.plannings > 0, len(run.modes), repr(run)))
    asked = dict(played.instead)
    steps = [replace(step, sql=asked.get(position, step.sql)) for position, step in enumerate(case.all_steps)]
    begin = len(case.scene)
    return replace(case, scene=tuple(steps[:begin]), steps=tuple(steps[begin:]), modes=played.modes)


def _shows(finding: Finding, run: Run, seen: CaseObservation) -> bool:
    report = crash_report(seen)
    return run.arm == finding.arms[1] and bool(report) and crash_origin(report) == finding.origin
