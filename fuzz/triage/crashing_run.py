"""A case as it was played when it crashed: some crashes show only in runs that other oracles asked for."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pglast

from oracles.crash import Crash, crash_origin, crash_report
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Observations

_AROUND: Final = ("SET ", "RESET ", "BEGIN", "ROLLBACK")  # a query


def as_it_crashed(case: Case, finding: Finding, observations: Observations) -> tuple[Case, Finding]:
    """Return a case that shows a crash by itself: this one, unless only other queries, or other modes, do."""
    runs = [run for run, seen in observations.items() if finding.oracle == Crash.name and _shows(finding, run, seen)]
    if not runs or any(run.modes == case.modes and not run.instead for run in runs):
        return case, finding
    played = min(runs, key=lambda run: (run.explain or run.plannings > 0, len(run.modes), repr(run)))
    asked = dict(played.instead)
    begin = len(case.scene)
    steps: list[Step] = []
    shown = finding.step
    for position, step in enumerate(case.steps, start=begin):
        if position == finding.step:
            shown = begin + len(steps)
        steps += _statements(step, asked[position]) if position in asked else (step,)
    return replace(case, steps=tuple(steps), modes=played.modes), replace(finding, step=shown)


def _shows(finding: Finding, run: Run, seen: CaseObservation) -> bool:
    report = crash_report(seen)
    return run.arm == finding.arms[1] and bool(report) and crash_origin(report) == finding.origin


def _statements(step: Step, sql: str) -> Iterator[Step]:
    """Yield what is asked in the place of a step: a query, and settings around it, which reduction may drop."""
    for statement in pglast.split(sql):
        yield Step(statement) if statement.startswith(_AROUND) else replace(step, sql=statement)
