"""The case in the form in which one of its runs executed it.

Crashes and internal errors may occur only in a run that another oracle requested, with other queries or modes.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pglast

from oracles.crash import Crash, crash_origin, crash_report
from oracles.internal_error import InternalError, internal_errors, origin_of
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Observations

_AROUND: Final = ("SET ", "RESET ", "BEGIN", "ROLLBACK")  # statements around a query


def as_executed(case: Case, finding: Finding, observations: Observations) -> tuple[Case, Finding]:
    """Return a case that shows the finding by itself, and the finding with its step in that case.

    It is this case, unless the finding occurred only with replaced queries or other modes.
    """
    runs = [run for run, seen in observations.items() if _shows(finding, run, seen)]
    if not runs or any(run.modes == case.modes and not run.instead for run in runs):
        return case, finding
    chosen = min(runs, key=lambda run: (run.explain or run.plannings > 0, len(run.modes), run.repetition, repr(run)))
    replacements = dict(chosen.instead)
    begin = len(case.scene)
    steps: list[Step] = []
    shown = finding.step
    for position, step in enumerate(case.steps, start=begin):
        if position == finding.step:
            shown = begin + len(steps)
        steps += _statements(step, replacements[position]) if position in replacements else (step,)
    return replace(case, steps=tuple(steps), modes=chosen.modes), replace(finding, step=shown)


def _shows(finding: Finding, run: Run, seen: CaseObservation) -> bool:
    return run.arm == finding.arms[1] and finding.origin in _origins(finding.oracle, seen)


def _origins(oracle: str, seen: CaseObservation) -> Iterator[str]:
    """Yield the origins of the findings of an oracle that judges the runs of all oracles."""
    if oracle == Crash.name and (report := crash_report(seen)):
        yield crash_origin(report)
    if oracle == InternalError.name:
        yield from (origin_of(error.message) for error in internal_errors(seen))


def _statements(step: Step, sql: str) -> Iterator[Step]:
    """Yield the steps that replace one: a query, and statements around it, which reduction may drop."""
    for statement in pglast.split(sql):
        yield Step(statement) if statement.startswith(_AROUND) else replace(step, sql=statement)
